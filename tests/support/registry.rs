//! A real OCI registry (Debian's docker-registry) on 127.0.0.1.

use std::{
    fmt::Write,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    certificates::Authority,
    process::{Process, StartError, free_port, output, with_free_ports},
    programs,
};

/// How a registry is to be.
#[derive(Clone, Debug, Default)]
pub struct RegistryOptions {
    /// TLS with a certificate of [`Registry::ca`].
    pub tls: bool,
    /// The one user and password that it asks for.
    pub login: Option<(String, String)>,
}

/// A running registry; stopped, with its files removed, when dropped.
#[derive(Debug)]
pub struct Registry {
    // Order matters: the process is stopped before the folder is removed.
    _process: Process,
    address: SocketAddr,
    options: RegistryOptions,
    folder: TempDir,
}

impl Registry {
    /// Starts one over plain HTTP that lets everybody in.
    pub fn start() -> Result<Self, StartError> {
        Self::start_with(RegistryOptions::default())
    }

    /// Starts one as `options` say.
    pub fn start_with(options: RegistryOptions) -> Result<Self, StartError> {
        let folder = TempDir::with_prefix("plinth-registry-").map_err(StartError::io("make a folder for a registry"))?;
        let parts = prepare(folder.path(), &options)?;
        let (process, address) = with_free_ports(|| {
            let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), free_port()?);
            Ok((serve(folder.path(), &parts, address)?, address))
        })?;
        Ok(Self { _process: process, address, options, folder })
    }

    /// Starts one over plain HTTP at an address of this machine, which pods reach as well.
    pub fn start_at(address: SocketAddr) -> Result<Self, StartError> {
        let folder = TempDir::with_prefix("plinth-registry-").map_err(StartError::io("make a folder for a registry"))?;
        let process = serve(folder.path(), "", address)?;
        Ok(Self { _process: process, address, options: RegistryOptions::default(), folder })
    }

    /// Where it listens, as image references spell it: `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// `http://…` or `https://…`.
    pub fn url(&self) -> String {
        format!("http{}://{}", if self.options.tls { "s" } else { "" }, self.host())
    }

    /// PEM file of the authority that signed the registry's certificate; only with TLS.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    /// The options it was started with.
    pub fn options(&self) -> &RegistryOptions {
        &self.options
    }

    /// How many requests it has answered so far, by its access log.
    pub fn requests(&self) -> std::io::Result<usize> {
        Ok(self.asked()?.len())
    }

    /// Method and path of every request that it has answered so far, in order.
    pub fn asked(&self) -> std::io::Result<Vec<String>> {
        let log = fs::read_to_string(self.folder.path().join("registry.log"))?;
        let lines = log.lines().filter(|line| line.contains("/v2/"));
        Ok(lines
            .filter_map(|line| line.split(" HTTP/1.1\" ").next().filter(|part| part.len() < line.len())?.rsplit('"').next())
            .map(str::to_owned)
            .collect())
    }

    /// The file that it keeps the bytes of a digest in, `sha256:…`.
    pub fn stored(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        let sums = self.folder.path().join("blobs/docker/registry/v2/blobs/sha256");
        sums.join(&hex[..2]).join(hex).join("data")
    }

    /// An HTTP client that trusts it.
    ///
    /// # Panics
    /// Where the authority's file, written by this registry, cannot be read.
    pub fn client(&self) -> reqwest::Client {
        crate::use_ring();
        let mut builder = reqwest::Client::builder().no_proxy();
        if self.options.tls {
            let pem = fs::read(self.ca()).expect("the registry's own folder is readable");
            builder = builder.tls_certs_only([reqwest::Certificate::from_pem(&pem).expect("we wrote this PEM")]);
        }
        builder.build().expect("ring is the TLS provider")
    }

    /// The request with the registry's login, where it asks for one.
    pub fn authorized(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.options.login {
            Some((user, password)) => request.basic_auth(user, Some(password)),
            None => request,
        }
    }

    /// A folder for `DOCKER_CONFIG` whose `config.json` holds the login in base64, as `docker login` writes it.
    ///
    /// # Panics
    /// Where the file cannot be written into the registry's own folder.
    pub fn docker_config(&self) -> PathBuf {
        let (user, password) = self.options.login.clone().unwrap_or_default();
        let login = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, format!("{user}:{password}"));
        let config = serde_json::json!({"auths": {self.host(): {"auth": login}}});
        let folder = self.folder.path().join("docker");
        fs::create_dir_all(&folder).expect("the registry's own folder is writable");
        fs::write(folder.join("config.json"), config.to_string()).expect("the registry's own folder is writable");
        folder
    }
}

/// Writes certificates and passwords, and gives the parts of the configuration that name them.
fn prepare(folder: &Path, options: &RegistryOptions) -> Result<String, StartError> {
    let mut parts = String::new();
    if options.tls {
        let (certificate, key) = Authority::create(folder)?.issue("registry")?;
        let _ = writeln!(parts, "  tls: {{certificate: \"{}\", key: \"{}\"}}", certificate.display(), key.display());
    }
    if let Some((user, password)) = &options.login {
        programs::from_debian("htpasswd", "apache2-utils")?;
        let line = output(Command::new("htpasswd").args(["-nbB", user, password]), "hash the registry's password")?;
        let path = folder.join("htpasswd");
        fs::write(&path, line).map_err(StartError::io("write the registry's password"))?;
        let _ = writeln!(parts, "auth:\n  htpasswd: {{realm: tests, path: \"{}\"}}", path.display());
    }
    Ok(parts)
}

fn serve(folder: &Path, parts: &str, address: SocketAddr) -> Result<Process, StartError> {
    let config = format!(
        "version: 0.1\nlog: {{level: warn}}\nstorage:\n  filesystem: {{rootdirectory: \"{}\"}}\n  delete: {{enabled: true}}\nhttp:\n  addr: {address}\n{parts}",
        folder.join("blobs").display(),
    );
    let path = folder.join("config.yaml");
    fs::write(&path, config).map_err(StartError::io("write the registry's configuration"))?;
    let mut command = Command::new(programs::from_debian("docker-registry", "docker-registry")?);
    command.arg("serve").arg(&path);
    let mut process = Process::start_with_folder(&command, &folder.join("registry.log"), folder)?;
    process.wait_until(Duration::from_secs(30), || TcpStream::connect(address).is_ok())?;
    Ok(process)
}

#[cfg(test)]
mod tests;
