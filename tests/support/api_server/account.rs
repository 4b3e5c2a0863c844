//! Service accounts: kubeconfig files with tokens that the server issued, and what it answers to them.

use std::{fs, path::PathBuf};

use kube::Client;
use serde_json::{Value, json};

use super::{ApiServer, Identity, client, kubeconfig};

impl ApiServer {
    /// A kubeconfig file for a service account, with a token of the server's for an hour.
    ///
    /// # Panics
    /// Where the account is not there, or the server's own folder cannot be written.
    pub async fn kubeconfig_of(&self, namespace: &str, account: &str) -> PathBuf {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let ask = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}});
        let request = http::Request::post(path).header("content-type", "application/json").body(ask.to_string().into_bytes());
        let admin = self.client(Identity::Cluster).await;
        let answer = admin.request_text(request.expect("the path is one")).await.expect("the account is there");
        let answer: Value = serde_json::from_str(&answer).expect("the server answers in JSON");
        let token = answer["status"]["token"].as_str().expect("it has issued a token");
        let text = kubeconfig::of_token(account, token, self.address(), &self.folder().join("ca.crt"));
        let path = self.folder().join(format!("{namespace}-{account}.kubeconfig"));
        fs::write(&path, text).expect("the server's own folder is writable");
        path
    }

    /// A client for a service account.
    pub async fn client_of(&self, namespace: &str, account: &str) -> Client {
        client(&self.kubeconfig_of(namespace, account).await).await
    }
}

/// The HTTP status of a server's answer to `METHOD PATH`; a body is applied where it patches and posted else. `user` is whom to
/// impersonate.
///
/// # Panics
/// Where the line is no request, or no answer comes.
pub async fn code_of(client: &Client, line: &str, body: Option<&Value>, user: Option<&str>) -> u16 {
    let (method, path) = line.split_once(' ').expect("METHOD PATH");
    let kind = if method == "PATCH" { "application/apply-patch+yaml" } else { "application/json" };
    let mut request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    if let Some(user) = user {
        request = request.header("impersonate-user", user);
    }
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    match client.request_text(request.body(body).expect("METHOD PATH")).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{line}: {error}"),
    }
}
