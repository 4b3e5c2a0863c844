//! Kubernetes' URLs: what Go's `net/url` takes as the URI of a request, so an absolute URL or an absolute path.

use std::collections::{BTreeMap, HashMap};

use cel::common::{
    types::{CelList, CelMap, CelMapKey, Type},
    value::Val,
};

use super::{
    Entry,
    arguments::{Arguments, Outcome, boxed_text, fail, get, give, give_bool, give_text, text},
    opaque::{Kind, Opaque, URL},
    ours,
};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        ours("url", &["url(string) -> kubernetes.URL"], url),
        ours("isURL", &["isURL(string) -> bool"], is_url),
        ours("getScheme", &["kubernetes.URL.getScheme() -> string"], |arguments| part(&arguments, |url| url.scheme.clone())),
        ours("getHost", &["kubernetes.URL.getHost() -> string"], |arguments| part(&arguments, |url| url.host.clone())),
        ours("getHostname", &["kubernetes.URL.getHostname() -> string"], |arguments| part(&arguments, Url::hostname)),
        ours("getPort", &["kubernetes.URL.getPort() -> string"], |arguments| part(&arguments, Url::port)),
        ours("getEscapedPath", &["kubernetes.URL.getEscapedPath() -> string"], |arguments| {
            part(&arguments, |url| url.path.clone())
        }),
        ours("getQuery", &["kubernetes.URL.getQuery() -> map(string, list(string))"], query),
    ]
}

/// The parts that functions ask for, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Url {
    written: String,
    scheme: String,
    /// Name and port, without user.
    host: String,
    path: String,
    query: String,
}

impl Kind for Url {
    fn runtime_type() -> &'static Type {
        &URL
    }
}

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        let bad = |why: &str| format!("URL parse error during conversion from string: parse {text:?}: {why}");
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Err(bad("net/url: invalid control character in URL"));
        }
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
            _ => (String::new(), text),
        };
        if text.is_empty() {
            return Err(bad("empty url"));
        }
        // What follows a scheme without a slash ("mailto:a@b") is opaque and has no path.
        if !rest.starts_with('/') && scheme.is_empty() {
            return Err(bad("invalid URI for request"));
        }
        // A fragment is no part of path and query; in the host it is a letter that does not belong there.
        let authority = rest.strip_prefix("//").filter(|_| !scheme.is_empty());
        let path = authority.map_or(0, |rest| 2 + rest.find(['/', '?']).unwrap_or(rest.len()));
        let rest = rest[path..].find('#').map_or(rest, |at| &rest[..path + at]);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        if !is_host(host) {
            return Err(bad("invalid character in host name or port"));
        }
        if !escapes_are_whole(path) {
            return Err(bad("invalid URL escape"));
        }
        let path = if rest.starts_with('/') { escaped(path) } else { String::new() };
        Ok(Self { written: text.to_owned(), scheme, host: host.to_owned(), path, query: query.to_owned() })
    }

    /// The end of the name: where the port's colon is.
    fn colon(&self) -> Option<usize> {
        self.host.rfind(':').filter(|at| self.host.rfind(']').is_none_or(|bracket| bracket < *at))
    }

    fn hostname(&self) -> String {
        let name = &self.host[..self.colon().unwrap_or(self.host.len())];
        name.trim_start_matches('[').trim_end_matches(']').to_owned()
    }

    fn port(&self) -> String {
        self.colon().map_or(String::new(), |at| self.host[at + 1..].to_owned())
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}

fn is_host(host: &str) -> bool {
    let port = match host.rfind(']') {
        Some(end) if host.starts_with('[') => &host[end + 1..],
        None if !host.starts_with('[') => host.rfind(':').map_or("", |at| &host[at..]),
        _ => return false,
    };
    let port_is_number =
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    port_is_number && !host.contains([' ', '#', '"', '<', '>', '\\', '^', '`', '{', '|', '}']) && escapes_are_whole(host)
}

fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

/// A path with everything escaped that a path must escape.
fn escaped(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*%[]".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// A part of a query with its escapes undone; `None` where they are broken, and Go leaves the pair out.
fn unescaped(text: &str) -> Option<String> {
    if !escapes_are_whole(text) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn url<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match Url::parse(text(&arguments, 0)?) {
        Ok(url) => give(Opaque(url)),
        Err(message) => fail(message),
    }
}

fn is_url<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(Url::parse(text(&arguments, 0)?).is_ok())
}

fn part<'b, 'v>(arguments: &Arguments<'b, 'v>, of: fn(&Url) -> String) -> Outcome<'b, 'v> {
    give_text(of(&get::<Opaque<Url>>(arguments, 0)?.0))
}

fn query<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut values: BTreeMap<String, Vec<Box<dyn Val + 'v>>> = BTreeMap::new();
    for pair in get::<Opaque<Url>>(&arguments, 0)?.0.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Some(name), Some(value)) = (unescaped(name), unescaped(value)) {
            values.entry(name).or_default().push(boxed_text(value));
        }
    }
    let entries = values
        .into_iter()
        .map(|(name, values)| -> (CelMapKey<'v>, Box<dyn Val + 'v>) { (CelMapKey::from(name), Box::new(CelList::from(values))) });
    give(CelMap::from(entries.collect::<HashMap<_, _>>()))
}
