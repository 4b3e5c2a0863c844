use super::*;

const TWO: &str = "
apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: u, user: {token: secret-token}}]
contexts:
- {name: two, context: {cluster: c, user: u, namespace: apps}}
- {name: one, context: {cluster: c, user: u}}
- {name: broken, context: {cluster: missing, user: u}}
";

fn bytes(text: &str) -> Source {
    Source::Bytes { name: "test".into(), text: text.into() }
}

async fn message(source: &Source, context: Option<&str>) -> String {
    configuration(source, context).await.unwrap_err().to_string()
}

#[tokio::test]
async fn the_current_context_counts_unless_one_is_asked_for() {
    let config = configuration(&bytes(TWO), None).await.unwrap();
    assert_eq!((config.default_namespace.as_str(), config.default_retry), ("default", false));
    let config = configuration(&bytes(TWO), Some("two")).await.unwrap();
    assert_eq!(config.default_namespace, "apps");
}

#[tokio::test]
async fn an_unknown_context_lists_the_contexts() {
    assert_eq!(message(&bytes(TWO), Some("three")).await, "the kubeconfig has no context \"three\"; it has broken, one, two");
    let none = TWO.replace("current-context: one", "");
    assert_eq!(
        message(&bytes(&none), None).await,
        "the kubeconfig has no current context; choose one with --context: broken, one, two"
    );
    assert!(message(&bytes(TWO), Some("broken")).await.contains("context \"broken\""));
}

#[tokio::test]
async fn a_file_that_is_not_there_is_named() {
    let error = message(&Source::Files(vec!["/nonexistent/kubeconfig".into()]), None).await;
    assert_eq!(error, "the kubeconfig /nonexistent/kubeconfig cannot be read");
}

#[tokio::test]
async fn broken_text_is_named_without_its_secrets() {
    let error = message(&bytes(&TWO.replace("token: secret-token", "token: secret-token: [")), None).await;
    assert!(error.starts_with("the kubeconfig test cannot be understood: line 6"), "{error}");
    assert!(!error.contains("secret-token"), "{error}");
}

#[tokio::test]
async fn files_merge_and_the_first_current_context_wins() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("a"), dir.path().join("b"));
    std::fs::write(&first, TWO).unwrap();
    std::fs::write(&second, TWO.replace("current-context: one", "current-context: extra").replace("name: two", "name: extra"))
        .unwrap();
    let source = Source::Files(vec![first, second]);
    assert_eq!(configuration(&source, None).await.unwrap().default_namespace, "default");
    assert_eq!(configuration(&source, Some("extra")).await.unwrap().default_namespace, "apps");
}

/// What a kubeconfig says of its one cluster, and why no client comes of it.
async fn client_error(cluster: &str) -> String {
    let text = TWO.replace("server: 'https://127.0.0.1:1'", cluster);
    let (config, context) = named_configuration(&bytes(&text), None).await.unwrap();
    let made = crate::Cluster::new(plinth_api::ClusterKey::host(), config);
    made.err().unwrap().of_context(context.as_deref()).to_string()
}

#[tokio::test]
async fn the_login_of_a_proxy_is_hidden_and_the_context_named() {
    let error = client_error("server: 'https://127.0.0.1:1', proxy-url: 'http://u:PROXYPW@127.0.0.1:3128'").await;
    assert!(error.starts_with("context \"one\" of the kubeconfig cannot be used") && error.contains("…@127.0.0.1"), "{error}");
    assert!(!error.contains("PROXYPW"), "{error}");
    let malformed = TWO.replace("https://127.0.0.1:1", "https://bob:SECRET PW@127.0.0.1:1");
    let error = message(&bytes(&malformed), None).await;
    assert!(!error.contains("SECRET"), "{error}");
}

#[tokio::test]
async fn a_servers_address_keeps_no_login() {
    let text = TWO.replace("https://127.0.0.1:1", "https://bob:SECRETPW@127.0.0.1:1/below");
    let config = configuration(&bytes(&text), None).await.unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://127.0.0.1:1/below");
}
