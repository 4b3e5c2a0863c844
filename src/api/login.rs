//! Logins that stand in URLs. They are hidden before a text reaches an error, a log, an event or a file name.

/// What stands in place of a login.
const HIDDEN: char = '…';

/// The text with the login of every URL in it hidden: `https://user:password@host` becomes `https://…@host`.
///
/// Rather too much is hidden than too little: a password may hold what a URL should not, such as a slash.
pub fn hidden(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at + "://".len());
        let end = url.find(is_outside).unwrap_or(url.len());
        let login = length(&url[..end]);
        shown.push_str(before);
        shown.extend((login > 0).then_some(HIDDEN));
        rest = &url[login..];
    }
    shown + rest
}

/// The same where the text is itself a reference, whose scheme may be missing: `user:password@host//component`.
pub fn hidden_in_reference(text: &str) -> String {
    let text = hidden(text);
    let start = if text.contains("://") { text.len() } else { text.find("::").map_or(0, |at| at + "::".len()) };
    match length(&text[start..]) {
        0 => text,
        login => format!("{}{HIDDEN}{}", &text[..start], &text[start + login..]),
    }
}

/// Characters that end a URL in a message.
fn is_outside(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>')
}

/// How many bytes of a URL without its scheme are a login; its `@` is not counted.
fn length(url: &str) -> usize {
    let Some(last) = url.rfind('@') else { return 0 };
    let authority = &url[..url.find(['/', '?', '#']).unwrap_or(url.len())];
    let port = authority.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    // A port is a number; what is none is the beginning of a password, which goes on behind the slash.
    let is_cut = port.is_some_and(|port| port.parse::<u16>().is_err() && !authority.ends_with(']'));
    if authority.contains('@') || is_cut { last } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_of_urls_are_hidden_wherever_they_stand() {
        for (text, expected) in [
            ("https://ann:hunter2@h.example/x", "https://…@h.example/x"),
            ("configured proxy http://u:pw@10.0.0.1:3128/ cannot", "configured proxy http://…@10.0.0.1:3128/ cannot"),
            ("\"https://token@h\" and 'http://a:b@c'", "\"https://…@h\" and 'http://…@c'"),
            ("https://ann:hun/ter?2@h.example:5000/x", "https://…@h.example:5000/x"),
            ("https://ann:p@ss@h", "https://…@h"),
            ("https://ann:@h", "https://…@h"),
            ("https://ann:geheim\u{e4}@h", "https://…@h"),
        ] {
            assert_eq!(hidden(text), expected);
            assert_eq!(hidden(expected), expected, "twice is as once");
        }
    }

    #[test]
    fn what_is_no_login_is_shown() {
        for text in [
            "",
            "no URL: nginx:1.2@sha256:abc",
            "https://127.0.0.1:6443/api",
            "oci://h.example:5000/a/b@sha256:abc",
            "https://h.example/a/b:1.0@sha256:abc",
            "https://[::1]/a@b",
            "https://[::1]:5000/a@b",
            "https://h.example, mail bob@h.example",
            "://",
            "mail@h.example ://",
        ] {
            assert_eq!(hidden(text), text);
        }
    }

    #[test]
    fn a_reference_needs_no_scheme() {
        for (text, expected) in [
            ("u:pw@h//acme.example/x", "…@h//acme.example/x"),
            ("u:p/w@h/x", "…@h/x"),
            ("token@h/x", "…@h/x"),
            ("oci::u:pw@h/x", "oci::…@h/x"),
            ("oci::https://u:pw@h/x", "oci::https://…@h/x"),
            ("oci://u:pw@h/x", "oci://…@h/x"),
        ] {
            assert_eq!(hidden_in_reference(text), expected);
            assert_eq!(hidden_in_reference(expected), expected, "twice is as once");
        }
        for text in ["./a@b/c", "/srv/a@b/x.tgz", "h.example:5000/x@sha256:abc", "h.example/x//acme.example/y:1.0.0"] {
            assert_eq!(hidden_in_reference(text), text);
        }
    }
}
