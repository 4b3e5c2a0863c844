//! Thirty threads in which users of the OCM tools met a consumer's problem (ocm.md section 18), each with what an operator would want
//! instead. A row is a case of this module, or names the tests that hold it.

mod content;
mod places;
mod registries;

use std::path::Path;

use futures::future::BoxFuture;

use crate::channel::Channel;
use crate::ctf::{Contents, Payload};
use crate::error::ResolveError;
use crate::options::Options;
use crate::resolve::inspect;
use crate::selection::Selection;
use crate::source::SourceRef;
use crate::testing::{Seen, data, http, offline};

/// Who shows a row.
enum Shown {
    /// A case of this module.
    Here(fn() -> BoxFuture<'static, ()>),
    /// Tests elsewhere: file below this crate, name.
    By(&'static [(&'static str, &'static str)]),
}

impl Shown {
    /// Names of the tests.
    fn by(&self) -> String {
        match self {
            Here(_) => "a case of this test".to_owned(),
            By(tests) => tests.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", "),
        }
    }
}

use Shown::{By, Here};

const HOSTILE: &str = "registry/tests/hostile.rs";
const LOGINS: &str = "registry/tests/logins.rs";
const REGISTRY: &str = "registry/tests.rs";
const RESOLVE: &str = "resolve/tests.rs";
const CONFIG: &str = "config/tests.rs";

/// Thread, what an operator wants, who shows it.
fn rows() -> Vec<(&'static str, &'static str, Shown)> {
    vec![
        ("omc#3674", "a transfer by value changes no signed digest", By(&[("bundle/tests.rs", "show_04_signatures_survive")])),
        (
            "omc#1789",
            "a blob that no layer names is read, bundled and then named",
            Here(|| Box::pin(content::blob_without_layer())),
        ),
        ("omc#3587", "an attestation pinned by digest travels as it is", Here(|| Box::pin(content::attestation()))),
        ("omc#1394", "docker and OCM credentials work with and without port", Here(|| Box::pin(registries::credentials()))),
        ("ocm#1560", "a missing helper is named", By(&[(LOGINS, "a_missing_helper_is_not_a_missing_component")])),
        ("omc#2990", "two entries of one host are told apart by path", By(&[(CONFIG, "tells_two_paths_on_one_host_apart")])),
        ("ocm#1235", "a version with + is found by version, tag and range", Here(|| Box::pin(places::build_metadata()))),
        (
            "omc#2826",
            "30 versions cost one request to list, two more to read one",
            Here(|| Box::pin(registries::thirty_versions())),
        ),
        ("ocm#1468", "versions beyond the first page are seen", By(&[(HOSTILE, "reads_all_pages_of_tags")])),
        (
            "ocm#1410",
            "images are pulled where the mirror is, whatever host was written",
            By(&[(HOSTILE, "with_a_mirror_no_other_host_is_asked"), ("bundle/tests.rs", "show_04_signatures_survive")]),
        ),
        ("omc#2889", "versions without annotation are listed", Here(|| Box::pin(places::without_annotation()))),
        ("omc#2873", "a single layer of an image is read and bundled", Here(|| Box::pin(content::single_layer()))),
        (
            "omc#957",
            "garbage after an archive's index is refused",
            By(&[("ctf/index.rs", "refuses_trailing_garbage_and_bad_digests")]),
        ),
        (
            "ocm#1505",
            "a child that is not there is an error, with the way to it",
            By(&[(RESOLVE, "a_broken_reference_shows_the_way_to_it")]),
        ),
        ("ocm#1204", "resolvers find a component whose version is not given", Here(|| Box::pin(places::bare_name()))),
        ("omc#798", "children in a private registry need one configuration", Here(|| Box::pin(registries::private_children()))),
        ("omc#2992", "repositoryContexts lead nowhere", Here(|| Box::pin(places::repository_contexts()))),
        (
            "ocm#706",
            "a host with port needs no scheme",
            By(&[("source/tests.rs", "reads_every_spelling_of_a_component_in_a_repository")]),
        ),
        (
            "ocm#755",
            "an untrusted certificate is accepted by authority or by host, said",
            Here(|| Box::pin(registries::untrusted())),
        ),
        ("ocm#842", "both readings of ambiguous resources verify", By(&[("normalise/tests.rs", "show_04_normal_forms")])),
        ("ocm#1172", "a resource's version is any text", Here(|| Box::pin(content::free_versions()))),
        ("ocm#984", "a packaged chart is at a name that can be told beforehand", Here(|| Box::pin(content::chart_by_name()))),
        ("ocm-spec#85", "children that nobody may write into are proven too", Here(|| Box::pin(content::nested_digests()))),
        (
            "rust-oci-client#149",
            "a manifest by digest has that digest",
            By(&[(HOSTILE, "other_bytes_are_refused_as_blob_and_as_manifest")]),
        ),
        ("rust-oci-client#206", "bodies are bounded", By(&[(HOSTILE, "bodies_are_bounded_whatever_their_header_says")])),
        (
            "rust-oci-client#165",
            "a login page is no blob, a redirect carries no password",
            By(&[
                (HOSTILE, "other_bytes_are_refused_as_blob_and_as_manifest"),
                (HOSTILE, "a_blob_may_come_from_elsewhere_but_credentials_stay"),
            ]),
        ),
        (
            "rust-oci-client#17",
            "docker's configuration, helpers and tokens work",
            By(&[
                (REGISTRY, "logs_in_with_docker_configuration_and_never_says_the_password"),
                (HOSTILE, "gets_a_token_and_keeps_it_for_its_repository"),
                (CONFIG, "show_04_credentials"),
            ]),
        ),
        (
            "go-containerregistry#2446",
            "all pages are read, none on another host",
            By(&[(HOSTILE, "reads_all_pages_of_tags"), (HOSTILE, "pages_that_lead_elsewhere_or_nowhere_are_refused")]),
        ),
        ("omc#3534", "one command runs what a component ships", By(&[("../../tests/spine/show.rs", "show_01_archive")])),
        (
            "omc#3200",
            "what a registry or archive holds is listed where that is allowed",
            Here(|| Box::pin(places::everything_there())),
        ),
    ]
}

/// Whether the file has a test of this name.
fn has_test(file: &str, name: &str) -> bool {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_it = |line: &str| line.contains(&format!("fn {name}("));
    let is_attribute = |line: &&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    lines.iter().position(|line| is_it(line)).is_some_and(|at| lines[at.saturating_sub(2)..at].iter().any(is_attribute))
}

#[tokio::test(flavor = "multi_thread")]
async fn show_04_upstream() {
    let rows = rows();
    let mut wrong = Vec::new();
    for (at, (thread, wish, shown)) in rows.iter().enumerate() {
        eprintln!("    {} {thread}: {wish} ({})", at + 1, shown.by());
        match shown {
            Here(case) => {
                if let Err(error) = tokio::spawn(case()).await {
                    wrong.push(format!("{thread}: {wish}: {error}"));
                }
            }
            By(tests) => {
                let missing = tests.iter().filter(|(file, name)| !has_test(file, name));
                wrong.extend(missing.map(|(file, name)| format!("{thread}: there is no test {name} in {file}")));
            }
        }
    }
    eprintln!("SHOW 04 upstream {}/{}", rows.len() - wrong.len(), rows.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(rows.len(), 30);
}

#[test]
fn a_test_that_is_not_there_is_missed() {
    assert!(has_test("upstream.rs", "show_04_upstream"));
    assert!(!has_test("upstream.rs", "has_test") && !has_test("upstream.rs", "nothing") && !has_test("nowhere.rs", "x"));
}

/// A name that ends like an archive is no registry.
#[tokio::test]
async fn an_archive_that_is_not_there_is_named() {
    for source in ["./none.tgz//acme.example/x:1.0.0", "./none.tgz", "ctf::none//acme.example/x:1.0.0"] {
        let error = channel(source, &offline()).await.unwrap_err();
        assert!(error.kind() == crate::ErrorKind::NotFound && error.to_string().contains("none"), "{source}: {error}");
    }
}

/// Where the two tools contradict each other (ocm.md section 17), the document says what plinth does.
#[test]
fn every_contradiction_of_the_tools_is_in_the_document() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/differences.md")).unwrap();
    let missing: Vec<usize> = (1..=14).filter(|row| !has_row(&text, *row)).collect();
    assert!(missing.is_empty(), "rows of section 17 without a word: {missing:?}");
}

fn has_row(text: &str, row: usize) -> bool {
    [")", ","].iter().any(|end| text.contains(&format!("17.{row}{end}")))
}

async fn channel(source: &str, options: &Options) -> Result<Channel, ResolveError> {
    inspect(&SourceRef::parse(source).unwrap(), &Selection::default(), options).await
}

/// An archive of the corpus as a SOURCE.
fn archive(name: &str, component: &str) -> String {
    format!("ctf::{}//{component}", data().join("ocm/ctf").join(name).display())
}

fn corpus(name: &str) -> Contents {
    Contents::open(&data().join("ocm/ctf").join(name), &offline().limits).unwrap()
}

/// A folder with this `channel.yaml`.
fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("channel.yaml"), text).unwrap();
    folder
}

/// Options for a registry without TLS.
fn plain(host: &str) -> Options {
    Options { plain_http: [host.to_owned()].into(), ..offline() }
}

/// Serves contents as a registry would, tags included.
fn serving(contents: Contents) -> impl Fn(&Seen, usize) -> Vec<u8> + Send + Sync + 'static {
    move |seen, _| {
        let rest = seen.path.strip_prefix("/v2/").unwrap_or_default();
        let of =
            |repository: &str| contents.artifacts.iter().filter(move |entry| entry.repository == repository).collect::<Vec<_>>();
        if let Some((repository, _)) = rest.split_once("/tags/list") {
            let tags: Vec<&String> = of(repository).iter().filter_map(|entry| entry.tag.as_ref()).collect();
            return http("200 OK", &[], serde_json::json!({"name": repository, "tags": tags}).to_string().as_bytes());
        }
        let digest = match (rest.split_once("/manifests/"), rest.split_once("/blobs/")) {
            (Some((repository, reference)), _) => {
                let named = of(repository).into_iter().find(|entry| entry.tag.as_deref() == Some(reference));
                named.map(|entry| entry.digest.clone()).or_else(|| reference.parse().ok())
            }
            (None, Some((_, digest))) => digest.parse().ok(),
            (None, None) => None,
        };
        match digest.and_then(|digest| contents.blobs.get(&digest)) {
            Some(Payload::Bytes(bytes)) => http("200 OK", &[], bytes),
            Some(Payload::File(path)) => http("200 OK", &[], &std::fs::read(path).unwrap()),
            _ => http("404 Not Found", &[], b"{}"),
        }
    }
}
