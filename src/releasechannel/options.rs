//! How repositories are reached and how far the room goes: credentials, trust, bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// How repositories are reached, and what is trusted. The default asks nobody but the docker config of the current user.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Hosts (`host` or `host:port`) that are spoken to without TLS. Nothing is ever downgraded by itself.
    pub plain_http: BTreeSet<String>,
    /// Hosts (`host` or `host:port`) whose certificate is not looked at. Said wherever it matters.
    pub insecure_tls: BTreeSet<String>,
    /// Files with further certificate authorities, PEM.
    pub ca_files: Vec<PathBuf>,
    /// Further certificate authorities as PEM text.
    pub ca_pem: Vec<String>,
    /// An `.ocmconfig`; where given it replaces the search of the current user's.
    pub ocm_config: Option<PathBuf>,
    /// A docker `config.json`; where given it replaces the current user's.
    pub docker_config: Option<PathBuf>,
    /// Texts of `.ocmconfig` files, from Secrets and ConfigMaps of a cluster.
    pub ocm_config_texts: Vec<String>,
    /// Texts of docker `config.json` files, from Secrets of a cluster.
    pub docker_config_texts: Vec<String>,
    /// Credentials by host, tried before everything else.
    pub credentials: BTreeMap<String, Credential>,
    /// Leaves configuration files of the current user alone: in a cluster, and in tests.
    pub no_user_config: bool,
    /// A registry that holds everything; with it no other host is contacted.
    pub mirror: Option<String>,
    /// Component versions too are read from the mirror: a source only says which channel is meant.
    pub mirror_only: bool,
    /// Public keys or certificates (PEM files) by signature name.
    pub keys: BTreeMap<String, PathBuf>,
    /// Public keys or certificates as PEM text, by signature name; from a cluster.
    pub key_texts: BTreeMap<String, String>,
    /// What is required of signatures; where nothing is said, what the Platform says, else [`Verify::IfSigned`].
    pub verify: Option<Verify>,
    /// Where fetched content is kept for the next run; without one it is kept for this run only.
    pub cache: Option<CacheFolder>,
    /// What this run has read; with it [`Options::cache`] is not looked at. For runs that end: whoever goes on must see a tag move.
    pub run: Option<std::sync::Arc<crate::RunMemory>>,
    /// Bounds.
    pub limits: Limits,
}

/// A folder for content by digest, which several processes may use at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheFolder {
    /// The folder; made where it is missing.
    pub folder: PathBuf,
    /// Bytes that it may have. What was used longest ago goes first.
    pub bytes: u64,
}

/// User and password, or a token. Its `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// HTTP basic.
    Basic {
        /// User name.
        user: String,
        /// Password.
        password: String,
    },
    /// An identity token for the token service.
    IdentityToken(String),
    /// A bearer token used as it is.
    Bearer(String),
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Basic { .. } => "Basic(hidden)",
            Self::IdentityToken(_) => "IdentityToken(hidden)",
            Self::Bearer(_) => "Bearer(hidden)",
        })
    }
}

/// What is required of signatures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Every signature there is must be proven where there is a key for it.
    #[default]
    IfSigned,
    /// At least one signature must be proven.
    Required,
    /// Signatures are not looked at. Digests of bytes always are.
    Off,
}

/// Bounds on everything from outside.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Component versions in one closure.
    pub components: usize,
    /// Length of the longest path of references.
    pub depth: usize,
    /// References of one component version.
    pub references: usize,
    /// Bytes of a manifest, an index or a configuration file.
    pub manifest_bytes: u64,
    /// Bytes of a descriptor.
    pub descriptor_bytes: u64,
    /// Bytes of a resource that is read into memory, such as an RGD, after decompression.
    pub document_bytes: u64,
    /// Bytes of a blob that is passed on as a stream.
    pub blob_bytes: u64,
    /// Entries of an archive.
    pub archive_entries: usize,
    /// Bytes of an archive after decompression.
    pub archive_bytes: u64,
    /// How long unpacking an archive may take.
    pub archive_time: std::time::Duration,
    /// How long the answer to one small request, such as one for a manifest, may take from its first byte to its last.
    pub answer_time: std::time::Duration,
    /// Bytes that a larger body must bring within [`Limits::slow_time`], all the time.
    pub slow_bytes: u64,
    /// How long it may take for them.
    pub slow_time: std::time::Duration,
    /// How long one body may take from its first byte to its last.
    pub body_time: std::time::Duration,
    /// How long a credential helper may take for one answer.
    pub helper_time: std::time::Duration,
    /// Tags of one repository.
    pub tags: usize,
    /// Requests to one host at the same time.
    pub parallel: usize,
    /// Attempts for one request.
    pub attempts: u32,
    /// Pause before the second attempt; doubled for each further one, unless the registry says how long.
    pub backoff: std::time::Duration,
}

impl Verify {
    /// The word of the command line and of a Platform.
    pub fn name(self) -> &'static str {
        match self {
            Self::IfSigned => "if-signed",
            Self::Required => "required",
            Self::Off => "off",
        }
    }
}

impl std::str::FromStr for Verify {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = [Self::IfSigned, Self::Required, Self::Off].into_iter().find(|known| known.name() == text);
        known.ok_or_else(|| format!("`{text}` is none of required, if-signed, off"))
    }
}

impl Limits {
    /// The same for somebody who waits no longer than this in all: what comes too slowly is named before that.
    #[must_use]
    pub fn within(self, time: std::time::Duration) -> Self {
        let part = time / 2;
        let (answer_time, slow_time) = (self.answer_time.min(part), self.slow_time.min(part));
        Self { answer_time, slow_time, body_time: self.body_time.min(time), ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            components: 10_000,
            depth: 64,
            references: 10_000,
            manifest_bytes: 8 * MIB,
            descriptor_bytes: 16 * MIB,
            document_bytes: 32 * MIB,
            blob_bytes: 64 * 1024 * MIB,
            archive_entries: 200_000,
            archive_bytes: 256 * 1024 * MIB,
            archive_time: std::time::Duration::from_mins(30),
            answer_time: std::time::Duration::from_mins(2),
            slow_bytes: 16 << 10,
            slow_time: std::time::Duration::from_secs(90),
            body_time: std::time::Duration::from_hours(6),
            helper_time: std::time::Duration::from_secs(30),
            tags: 100_000,
            parallel: 8,
            attempts: 4,
            backoff: std::time::Duration::from_millis(500),
        }
    }
}
