//! Arguments of `plinth channel` and `plinth bundle`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{AccessArgs, Output, SourceArgs, Verify, VersionArgs};

/// Questions about a channel.
#[derive(Debug, Subcommand)]
pub enum Channel {
    /// List the components of a channel, or its artifacts with versions, registries and pull secrets
    Ls(ChannelList),
    /// Show components, references and resources as a tree
    Show(ChannelRead),
    /// Prove signatures and digests: 0 proven, 4 refused
    Verify(ChannelVerify),
    /// Compare two releases
    Diff(ChannelDiff),
    /// Print the release lock
    Lock(ChannelLock),
    /// Print the exact bytes of a component version that signatures cover
    Normalise(ChannelNormalise),
    /// Pack a folder into an archive
    Pack {
        /// The folder.
        dir: PathBuf,
        /// The archive: a folder, .tar or .tgz.
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
    },
}

/// Arguments of a question about a channel.
#[derive(Clone, Debug, Args)]
pub struct ChannelRead {
    /// The channel.
    #[command(flatten)]
    pub source: SourceArgs,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// Arguments of `channel ls`.
#[derive(Clone, Debug, Args)]
pub struct ChannelList {
    /// The channel.
    #[command(flatten)]
    pub source: SourceArgs,
    /// List artifacts instead of components
    #[arg(long)]
    pub artifacts: bool,
    /// Only the artifact of this name, in all its versions
    #[arg(long, value_name = "NAME")]
    pub artifact: Option<String>,
    /// Only artifacts of this component version or range
    #[arg(long, value_name = "RANGE")]
    pub version: Option<String>,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// Arguments of `channel verify`.
#[derive(Clone, Debug, Args)]
pub struct ChannelVerify {
    /// The channel.
    #[command(flatten)]
    pub source: SourceArgs,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// Arguments of `channel diff`.
#[derive(Clone, Debug, Args)]
pub struct ChannelDiff {
    /// A SOURCE or a saved release lock
    pub old: String,
    /// Another one
    pub new: String,
    /// How to get there.
    #[command(flatten)]
    pub access: AccessArgs,
    /// Exit with 2 where they differ
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// Arguments of `channel normalise`.
#[derive(Clone, Debug, Args)]
pub struct ChannelNormalise {
    /// The component version.
    #[command(flatten)]
    pub source: SourceArgs,
    /// jsonNormalisation/v1, /v2, /v3 or /v4alpha1
    #[arg(long, value_name = "NAME")]
    pub algorithm: String,
}

/// Arguments of `channel lock`.
#[derive(Clone, Debug, Args)]
pub struct ChannelLock {
    /// The channel.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Which versions.
    #[command(flatten)]
    pub versions: VersionArgs,
    /// Where to save it instead of printing
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// The air gap.
#[derive(Debug, Subcommand)]
pub enum Bundle {
    /// Collect a channel with everything that it names into one archive
    Create(BundleCreate),
    /// Push an archive to a mirror
    Push(BundlePush),
    /// Say whether an archive or mirror has everything of a lock: 0 complete, 4 something is missing
    Verify(BundleVerify),
    /// List what is, or would be, in an archive
    Ls(BundleList),
}

/// Arguments of `bundle create`.
#[derive(Clone, Debug, Args)]
pub struct BundleCreate {
    /// The channel; a saved release lock is one too.
    #[command(flatten)]
    pub source: SourceArgs,
    /// The archive: a folder, .tar or .tgz
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Which versions.
    #[command(flatten)]
    pub versions: VersionArgs,
    /// Only images of this platform (repeatable; default: all)
    #[arg(long, value_name = "OS/ARCHITECTURE")]
    pub platform: Vec<String>,
    /// Static plinth executable that goes into the bundle (default: this one)
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// What is required of signatures
    #[arg(long, value_enum, value_name = "POLICY")]
    pub verify: Option<Verify>,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// Arguments of `bundle push`.
#[derive(Clone, Debug, Args)]
pub struct BundlePush {
    /// The archive
    pub file: PathBuf,
    /// REGISTRY[/PATH]
    pub registry: String,
    /// Move tags that lead to other content there; without it nothing is sent where there are any
    #[arg(long)]
    pub move_tags: bool,
    /// Read what is there already, and send again what is damaged
    #[arg(long)]
    pub mend: bool,
    /// How to get there.
    #[command(flatten)]
    pub access: AccessArgs,
}

/// Arguments of `bundle verify`.
#[derive(Clone, Debug, Args)]
pub struct BundleVerify {
    /// An archive, or REGISTRY[/PATH]
    #[arg(value_name = "FILE|REGISTRY")]
    pub place: String,
    /// The lock that must be complete (default: the one that the place itself brings, which nobody has signed)
    #[arg(long, value_name = "LOCK")]
    pub lock: Option<PathBuf>,
    /// Only images of this platform (repeatable; default: all)
    #[arg(long, value_name = "OS/ARCHITECTURE")]
    pub platform: Vec<String>,
    /// How to get there.
    #[command(flatten)]
    pub access: AccessArgs,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// Arguments of `bundle ls`.
#[derive(Clone, Debug, Args)]
pub struct BundleList {
    /// The channel, in an archive or anywhere else.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Only images of this platform (repeatable; default: all)
    #[arg(long, value_name = "OS/ARCHITECTURE")]
    pub platform: Vec<String>,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}
