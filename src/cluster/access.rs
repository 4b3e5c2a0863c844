//! Where the API server is and who we are: kubeconfig from a flag, the environment, bytes, or the pod we run in.

use std::{
    env,
    path::{Path, PathBuf},
};

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use plinth_api::login;
use thiserror::Error;

/// Where the configuration of an API server comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// These files, merged as kubectl merges the list in `KUBECONFIG`.
    Files(Vec<PathBuf>),
    /// A kubeconfig's text, such as the value of a Secret, with a name for error messages.
    Bytes {
        /// What holds the text, such as `Secret plinth-system/provider`.
        name: String,
        /// The text.
        text: Vec<u8>,
    },
    /// The service account of the pod.
    InCluster,
}

impl Source {
    /// What kubectl would take: the flag, else `KUBECONFIG`, else `~/.kube/config`, else the pod's service account.
    pub fn infer(flag: Option<&Path>) -> Result<Self, AccessError> {
        if let Some(path) = flag {
            return Ok(Self::Files(vec![path.to_owned()]));
        }
        if let Some(list) = env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
            return Ok(Self::Files(env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect()));
        }
        let home = env::home_dir().map(|home| home.join(".kube/config"));
        match home {
            Some(path) if path.exists() => Ok(Self::Files(vec![path])),
            _ if env::var_os("KUBERNETES_SERVICE_HOST").is_some() => Ok(Self::InCluster),
            _ => Err(AccessError::NoConfiguration),
        }
    }
}

/// Why there is no usable configuration. None of these goes away by trying again.
#[derive(Debug, Error)]
pub enum AccessError {
    /// Neither a flag nor `KUBECONFIG`, nor `~/.kube/config`, nor a pod's service account.
    #[error("no kubeconfig: neither --kubeconfig nor KUBECONFIG is set, and there is no ~/.kube/config")]
    NoConfiguration,
    /// A file cannot be read.
    #[error("the kubeconfig {} cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no kubeconfig.
    #[error("the kubeconfig {name} cannot be understood: {message}")]
    Malformed {
        /// The file, or what holds the text.
        name: String,
        /// Why; never a part of the text, which holds credentials.
        message: String,
    },
    /// The context asked for is not there.
    #[error("the kubeconfig has no context {context:?}; it has {}", listed(.contexts))]
    UnknownContext {
        /// Asked for.
        context: String,
        /// What there is, sorted.
        contexts: Vec<String>,
    },
    /// No context was asked for, and the file names none as current.
    #[error("the kubeconfig has no current context; choose one with --context: {}", listed(.contexts))]
    NoCurrentContext {
        /// What there is, sorted.
        contexts: Vec<String>,
    },
    /// The context is there, but what it points to is not, or is unusable.
    #[error("context {context:?} of the kubeconfig cannot be used: {message}")]
    Unusable {
        /// The context.
        context: String,
        /// Why.
        message: String,
    },
    /// There is an address, but no client for it can be made.
    #[error("the API server {server} cannot be used: {message}")]
    Client {
        /// Its address.
        server: String,
        /// Why.
        message: String,
    },
    /// The pod has no service account to use.
    #[error("the in-cluster configuration cannot be used: {0}")]
    InCluster(String),
}

impl AccessError {
    /// The same error, naming the context that led to it.
    #[must_use]
    pub fn of_context(self, context: Option<&str>) -> Self {
        match (self, context) {
            (Self::Client { message, .. }, Some(context)) => Self::Unusable { context: context.to_owned(), message },
            (error, _) => error,
        }
    }
}

fn listed(contexts: &[String]) -> String {
    if contexts.is_empty() { "none".to_owned() } else { contexts.join(", ") }
}

/// Reads the configuration of one API server; contacts nothing.
///
/// `context` chooses among the contexts of a kubeconfig, else its `current-context` counts.
pub async fn configuration(source: &Source, context: Option<&str>) -> Result<kube::Config, AccessError> {
    named_configuration(source, context).await.map(|(config, _)| config)
}

/// The same, and the name of the context that it is of; a pod's service account is of none.
pub async fn named_configuration(source: &Source, context: Option<&str>) -> Result<(kube::Config, Option<String>), AccessError> {
    let kubeconfig = match source {
        Source::Files(paths) => merged(paths)?,
        Source::Bytes { name, text } => parsed(name, text)?,
        Source::InCluster => {
            let config = kube::Config::incluster().map_err(|error| AccessError::InCluster(login::hidden(&error.to_string())))?;
            return Ok((tuned(config), None));
        }
    };
    let context = chosen(&kubeconfig, context)?;
    let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
    match kube::Config::from_custom_kubeconfig(kubeconfig, &options).await {
        Ok(config) => Ok((tuned(config), Some(context))),
        Err(error) => Err(AccessError::Unusable { context, message: login::hidden(&error.to_string()) }),
    }
}

/// Retries are ours to make and to show, so the client's own are switched off. A login in the server's address was never sent, and
/// would be in every message about that server: it goes.
fn tuned(mut config: kube::Config) -> kube::Config {
    config.default_retry = false;
    config.cluster_url = without_login(config.cluster_url);
    config
}

fn without_login(url: http::Uri) -> http::Uri {
    let bare = url.authority().and_then(|authority| authority.as_str().rsplit_once('@')).map(|(_, host)| host.to_owned());
    let Some(authority) = bare.and_then(|host| host.parse().ok()) else { return url };
    let mut parts = url.into_parts();
    parts.authority = Some(authority);
    http::Uri::from_parts(parts).expect("another authority leaves a URL whole")
}

fn chosen(kubeconfig: &Kubeconfig, asked: Option<&str>) -> Result<String, AccessError> {
    let mut contexts: Vec<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    contexts.sort();
    let current = kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
    match asked.or(current) {
        None => Err(AccessError::NoCurrentContext { contexts }),
        Some(name) if contexts.iter().any(|context| context == name) => Ok(name.to_owned()),
        Some(name) => Err(AccessError::UnknownContext { context: name.to_owned(), contexts }),
    }
}

fn merged(paths: &[PathBuf]) -> Result<Kubeconfig, AccessError> {
    let mut all = Kubeconfig::default();
    for path in paths {
        // Read through kube, which makes paths inside the file relative to it.
        let next = Kubeconfig::read_from(path).map_err(|error| reading(path, error))?;
        all = all.merge(next).map_err(|error| reading(path, error))?;
    }
    Ok(all)
}

fn reading(path: &Path, error: KubeconfigError) -> AccessError {
    match error {
        KubeconfigError::ReadConfig(source, path) => AccessError::Unreadable { path, source },
        error => malformed(&path.display().to_string(), &error),
    }
}

fn parsed(name: &str, text: &[u8]) -> Result<Kubeconfig, AccessError> {
    let text = std::str::from_utf8(text)
        .map_err(|error| AccessError::Malformed { name: name.to_owned(), message: error.to_string() })?;
    Kubeconfig::from_yaml(text).map_err(|error| malformed(name, &error))
}

fn malformed(name: &str, error: &KubeconfigError) -> AccessError {
    let message = match error {
        // The parser's text quotes lines of the file, and those may be keys and tokens.
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => format!("line {}, column {}: not the YAML of a kubeconfig", at.line(), at.column()),
            None => "not the YAML of a kubeconfig".to_owned(),
        },
        error => login::hidden(&error.to_string()),
    };
    AccessError::Malformed { name: name.to_owned(), message }
}

#[cfg(test)]
mod tests;
