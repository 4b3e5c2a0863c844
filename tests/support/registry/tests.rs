use super::*;

async fn status(registry: &Registry, login: bool) -> u16 {
    let request = registry.client().get(format!("{}/v2/", registry.url()));
    let request = if login { registry.authorized(request) } else { request };
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn plain_lets_everybody_in() {
    let registry = Registry::start().unwrap();
    assert_eq!(status(&registry, false).await, 200);
}

#[tokio::test]
async fn tls_and_password_are_both_asked_for() {
    let login = Some(("ann".to_owned(), "secret".to_owned()));
    let registry = Registry::start_with(RegistryOptions { tls: true, login }).unwrap();
    assert_eq!(status(&registry, false).await, 401);
    assert_eq!(status(&registry, true).await, 200);
    let config = fs::read_to_string(registry.docker_config().join("config.json")).unwrap();
    assert!(config.contains("YW5uOnNlY3JldA=="), "{config}");
}
