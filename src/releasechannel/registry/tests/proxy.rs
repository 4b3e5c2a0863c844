//! Proxies are those of the environment, which belongs to the process: the cases run in one of their own.

use std::process::Command;

use super::*;
use crate::testing::Seen;

/// A name that no server has: only a proxy can answer for it.
const HOST: &str = "registry.invalid";
const ME: &str = "registry::tests::proxy::resolves_by_way_of_the_environment";

#[tokio::test]
#[ignore = "runs in the process that proxies_come_from_the_environment starts"]
async fn resolves_by_way_of_the_environment() {
    let channel = resolve_at(HOST, "", &plain(HOST)).await.unwrap();
    assert_eq!(channel.lock.components.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn proxies_come_from_the_environment() {
    let answer = serving(corpus("v1"));
    let proxy = Stub::start(move |seen, count| {
        let path = seen.path.trim_start_matches(&format!("http://{HOST}")).to_owned();
        answer(&Seen { path, headers: seen.headers.clone() }, count)
    })
    .await;
    let run = |variables: &[(&str, &str)]| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"] {
            command.env_remove(name);
        }
        let output = command.args(["--exact", ME, "--ignored"]).envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(said.contains("running 1 test"));
        (output.status.success(), said)
    };
    let url = format!("http://{}", proxy.host);
    assert!(run(&[("HTTP_PROXY", &url)]).0);
    let requests = proxy.seen();
    assert!(requests.len() > 6 && requests.iter().all(|seen| seen.path.starts_with(&format!("http://{HOST}/v2/"))));
    assert!(!run(&[("HTTP_PROXY", &url), ("NO_PROXY", HOST)]).0 && !run(&[]).0);
    assert_eq!(proxy.seen().len(), requests.len(), "what NO_PROXY names does not go through the proxy");
    // What is no proxy would be passed by in silence.
    let (is_done, said) = run(&[("ALL_PROXY", &url), ("HTTP_PROXY", "ftp://acme:acme-pass@10.0.0.1")]);
    assert!(!is_done && said.contains("the environment variable HTTP_PROXY is not the address of a proxy"), "{said}");
    assert!(!said.contains("acme-pass"), "{said}");
}
