//! The command line as the user typed it. Nothing is looked up or decided here.

mod channel;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

pub use channel::{
    Bundle, BundleCreate, BundleList, BundlePush, BundleVerify, Channel, ChannelDiff, ChannelList, ChannelLock, ChannelNormalise,
    ChannelRead, ChannelVerify,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;

use crate::{complete, platform};

/// Brings up a platform cluster from one OCM component and keeps it up.
#[derive(Debug, Parser)]
#[command(name = "plinth", version, disable_help_subcommand = true, max_term_width = 100)]
pub struct Cli {
    /// Flags of all verbs.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Flags of all verbs.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Kubeconfig file (default: KUBECONFIG, then ~/.kube/config, then the pod's service account)
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig (default: its current context)
    #[arg(long, global = true, value_name = "NAME", add = ArgValueCandidates::new(complete::contexts))]
    pub context: Option<String>,
    /// When to use colour (default: auto)
    #[arg(long, global = true, value_enum)]
    pub color: Option<Color>,
    /// Append-only text, no cursor movement, for screen readers
    #[arg(long, global = true)]
    pub plain: bool,
    /// Only errors and the result
    #[arg(long, global = true)]
    pub quiet: bool,
    /// More of what plinth does, on standard error (twice for more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Bring a platform up: resolve, plan, review, apply, watch
    Up(Up),
    /// Show what `up` would do; writes nothing
    Plan(Plan),
    /// Bring a platform up in a control plane inside this process, and tell what would be missing
    Rehearse(Rehearse),
    /// Watch the bundled sample come up, with nothing else needed
    Demo(Demo),
    /// Show the platform's health
    Status(Status),
    /// Explain why something is not ready
    Why(Why),
    /// Look at a platform on day 2; reads only
    Dash(Dash),
    /// Follow a run that goes on elsewhere: another process on this machine, or the controller in the cluster
    Attach(Attach),
    /// Show a past run again
    Replay(Replay),
    /// Show what of a platform is not as its release wants it, and who holds it so
    Diff(Diff),
    /// Move a platform to another release of its channel
    Upgrade(Upgrade),
    /// Go back to the release before
    Rollback(Rollback),
    /// Show the rights that the controller in the cluster lacks, and add them
    Grant(Grant),
    /// Remove a platform in order
    Down(Down),
    /// Keep a platform: the loop, in the cluster
    Controller(Controller),
    /// Look at a release channel
    Channel {
        /// Which question.
        #[command(subcommand)]
        verb: Channel,
    },
    /// Carry a channel over an air gap
    Bundle {
        /// What to do.
        #[command(subcommand)]
        verb: Bundle,
    },
    /// Check, draw and render ResourceGraphDefinitions offline
    Rgd {
        /// Which question.
        #[command(subcommand)]
        verb: Rgd,
    },
    /// Ask for a derived name
    Name {
        /// Which name.
        #[command(subcommand)]
        verb: Name,
    },
    /// Print a shell completion script
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man {
        /// Write a page for every verb into this folder instead.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Show the help of a verb, or a page: exit-codes, filter, keys
    Help {
        /// The verb or the page.
        topic: Option<String>,
    },
    /// Look at the configuration
    Config {
        /// Which question.
        #[command(subcommand)]
        verb: Config,
    },
}

/// Which platform, for verbs of day 2.
#[derive(Clone, Debug, Default, Args)]
pub struct PlatformArgs {
    /// Which platform (default: the only one that there is)
    #[arg(long, value_name = "NAME", value_parser = platform_name, add = ArgValueCandidates::new(complete::platforms))]
    pub platform: Option<String>,
}

/// Where a channel is and how to get there.
#[derive(Clone, Debug, Args)]
pub struct SourceArgs {
    /// REGISTRY//COMPONENT[:VERSION], ctf::PATH//COMPONENT:VERSION, an archive, a distribution folder, or a Platform file
    #[arg(value_name = "SOURCE")]
    pub source: String,
    /// How to get there.
    #[command(flatten)]
    pub access: AccessArgs,
}

/// How repositories are reached, and what is trusted there.
#[derive(Clone, Debug, Default, Args)]
pub struct AccessArgs {
    /// OCM configuration with credentials
    #[arg(long, value_name = "FILE")]
    pub ocm_config: Option<PathBuf>,
    /// Registry host that speaks plain HTTP (repeatable)
    #[arg(long, value_name = "HOST", value_parser = registry_host)]
    pub plain_http: Vec<String>,
    /// Further certificate authority, PEM (repeatable)
    #[arg(long, value_name = "PATH")]
    pub ca: Vec<PathBuf>,
    /// Registry that holds everything: SOURCE only says which channel, and no other host is contacted
    #[arg(long, value_name = "REGISTRY")]
    pub mirror: Option<String>,
    /// Public key or certificate that proves a signature, PEM (repeatable)
    #[arg(long, value_name = "SIGNATURE=PATH", value_parser = signature_key)]
    pub key: Vec<(String, PathBuf)>,
    /// Keep nothing that was fetched for the next run
    #[arg(long)]
    pub no_cache: bool,
}

/// What is required of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Verify {
    /// At least one signature must be proven.
    Required,
    /// Every signature that there is a key for must be proven.
    IfSigned,
    /// Signatures are not looked at.
    Off,
}

/// Which versions of components are wanted.
#[derive(Clone, Debug, Default, Args)]
pub struct VersionArgs {
    /// Version range of a component (repeatable)
    #[arg(long, value_name = "COMPONENT=RANGE")]
    pub select: Vec<String>,
    /// Label that a component reference must have, where references to its component have it at all (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    pub label: Vec<String>,
}

/// What of a channel is wanted, and how.
#[derive(Clone, Debug, Args)]
pub struct SelectionArgs {
    /// Which distribution, where the channel holds several
    #[arg(long, value_name = "NAME[@RANGE]")]
    pub distribution: Option<String>,
    /// Which versions.
    #[command(flatten)]
    pub versions: VersionArgs,
    /// Namespace of the instance and its delivery objects
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// YAML merged over the distribution's instance, as helm does: null takes a default of the instance away
    #[arg(long, value_name = "FILE")]
    pub values: Option<PathBuf>,
    /// What is required of signatures (default: what the Platform says, else if-signed)
    #[arg(long, value_enum, value_name = "POLICY")]
    pub verify: Option<Verify>,
}

/// Arguments of `up`.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("source", |source| source.required(false).required_unless_present("plan").default_value("").hide_default_value(true)))]
pub struct Up {
    /// The channel.
    #[command(flatten)]
    pub source: SourceArgs,
    /// What of it.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Apply without a question and without the terminal UI
    #[arg(long)]
    pub apply: bool,
    /// Carry out exactly the plan that `plan -f` saved, with the same flags, or nothing; SOURCE may be left out
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Take over objects that are there already and belong to somebody else; `down` will remove them
    #[arg(long)]
    pub take_over: bool,
    /// How long to wait for Ready, 0s for as long as it takes
    #[arg(long, default_value = "10m", value_parser = duration)]
    pub timeout: Duration,
    /// Who keeps the platform.
    #[command(flatten)]
    pub controller: ControllerArgs,
    /// Take the Lease of a run that is dead
    #[arg(long)]
    pub break_lock: bool,
    /// Where the run is recorded (default: under the user's state folder, one file a platform)
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// How the run is told
    #[arg(short, long, value_enum, default_value_t = RunOutput::Lines)]
    pub output: RunOutput,
}

/// Whether a controller is installed in the cluster.
#[derive(Clone, Debug, Default, Args)]
pub struct ControllerArgs {
    /// Who keeps the platform: a controller in the cluster, or nobody (default: a controller where there is an image of it)
    #[arg(long, value_enum, value_name = "WHO")]
    pub controller: Option<ControllerMode>,
    /// Image of the controller by digest (default: the component plinth.dev/plinth of the channel or the mirror; with a mirror that has none, this executable is sent there)
    #[arg(long, value_name = "REF@DIGEST")]
    pub controller_image: Option<String>,
}

/// Who keeps a platform once it is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ControllerMode {
    /// A controller in the cluster.
    Auto,
    /// Nobody: the loop runs in this process only.
    None,
}

/// How a run is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunOutput {
    /// One line a change.
    Lines,
    /// One JSON event a line.
    Json,
    /// A JUnit report at the end.
    Junit,
    /// GitHub workflow commands.
    Github,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Human,
    /// For machines.
    Json,
}

/// Arguments of `plan`.
#[derive(Clone, Debug, Args)]
pub struct Plan {
    /// The channel.
    #[command(flatten)]
    pub source: SourceArgs,
    /// What of it.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Who keeps the platform.
    #[command(flatten)]
    pub controller: ControllerArgs,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
    /// Also save the plan into this file, for `up --plan`
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Plan to take over objects that are there already and belong to somebody else
    #[arg(long)]
    pub take_over: bool,
    /// Exit with 2 where something would change
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// How long to try to reach the cluster, 0s for as long as it takes
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub timeout: Duration,
}

/// Arguments of `rehearse`.
#[derive(Clone, Debug, Args)]
pub struct Rehearse {
    /// The channel.
    #[command(flatten)]
    pub source: SourceArgs,
    /// What of it.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// What the platform's programs do (default: the distribution's own scenario)
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// How long it may take in all
    #[arg(long, default_value = "10m", value_parser = duration)]
    pub timeout: Duration,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// Arguments of `demo`.
#[derive(Clone, Debug, Args)]
pub struct Demo {
    /// Without the waiting
    #[arg(long)]
    pub fast: bool,
    /// Without the terminal UI
    #[arg(long)]
    pub apply: bool,
    /// Listen on a loopback address such as 127.0.0.1:8001, for kubectl and others
    #[arg(long, value_name = "ADDRESS")]
    pub serve: Option<SocketAddr>,
    /// Where the run is recorded (default: nowhere)
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// How the run is told instead of shown
    #[arg(short, long, value_enum)]
    pub output: Option<RunOutput>,
}

/// Arguments of `status`.
#[derive(Clone, Debug, Args)]
pub struct Status {
    /// Which platform.
    #[command(flatten)]
    pub which: PlatformArgs,
    /// Only what this lets through, such as 'kind:helm !state:ready'; the exit code is of the whole
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// Wait until Ready
    #[arg(long)]
    pub wait: bool,
    /// How long to wait, 0s for as long as it takes
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub timeout: Duration,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// Arguments of `why`.
#[derive(Clone, Debug, Args)]
pub struct Why {
    /// Which platform.
    #[command(flatten)]
    pub which: PlatformArgs,
    /// KIND/NAME, or the page that a hint names
    #[arg(add = ArgValueCandidates::new(complete::subjects))]
    pub subject: String,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// Arguments of `dash`.
#[derive(Clone, Debug, Args)]
pub struct Dash {
    /// Which platform.
    #[command(flatten)]
    pub which: PlatformArgs,
    /// Only what this lets through, such as 'kind:helm !state:ready'
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// How it is told instead of shown
    #[arg(short, long, value_enum)]
    pub output: Option<RunOutput>,
}

/// Arguments of `attach`.
#[derive(Clone, Debug, Args)]
pub struct Attach {
    /// Which platform.
    #[command(flatten)]
    pub which: PlatformArgs,
    /// Where a run on this machine is recorded (default: where `up` records it, and then the cluster)
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// How it is told instead of shown
    #[arg(short, long, value_enum)]
    pub output: Option<RunOutput>,
}

/// Arguments of `replay`.
#[derive(Clone, Debug, Args)]
pub struct Replay {
    /// The journal; - is standard input
    pub file: PathBuf,
    /// Which run of it (default: the newest)
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// How many times faster than it was; text is told at once
    #[arg(long, default_value = "10", value_parser = speed)]
    pub speed: f64,
    /// How it is told instead of shown
    #[arg(short, long, value_enum)]
    pub output: Option<RunOutput>,
}

/// Arguments of `down`.
#[derive(Clone, Debug, Args)]
pub struct Down {
    /// Which platform.
    #[command(flatten)]
    pub which: PlatformArgs,
    /// Remove without a question
    #[arg(long)]
    pub apply: bool,
    /// Take the Lease of a run that is dead
    #[arg(long)]
    pub break_lock: bool,
    /// How long to wait, 0s for as long as it takes
    #[arg(long, default_value = "10m", value_parser = duration)]
    pub timeout: Duration,
    /// How the run is told
    #[arg(short, long, value_enum, default_value_t = RunOutput::Lines)]
    pub output: RunOutput,
}

/// Arguments of `diff`.
#[derive(Clone, Debug, Args)]
pub struct Diff {
    /// Which platform.
    #[command(flatten)]
    pub which: PlatformArgs,
    /// How its channel is reached.
    #[command(flatten)]
    pub access: AccessArgs,
    /// Exit with 2 where something differs
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// How long to try to reach the cluster, 0s for as long as it takes
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub timeout: Duration,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// How a platform is moved to another release.
#[derive(Clone, Debug, Args)]
pub struct MoveArgs {
    /// Which platform.
    #[command(flatten)]
    pub which: PlatformArgs,
    /// How its channel is reached.
    #[command(flatten)]
    pub access: AccessArgs,
    /// Move without a question
    #[arg(long)]
    pub apply: bool,
    /// Take the Lease of a run that is dead
    #[arg(long)]
    pub break_lock: bool,
    /// How long to wait for Ready, 0s for as long as it takes
    #[arg(long, default_value = "10m", value_parser = duration)]
    pub timeout: Duration,
    /// Where the run is recorded (default: where `up` records it)
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// How the run is told
    #[arg(short, long, value_enum, default_value_t = RunOutput::Lines)]
    pub output: RunOutput,
}

/// Arguments of `upgrade`.
#[derive(Clone, Debug, Args)]
pub struct Upgrade {
    /// The release (default: the newest that the Platform allows)
    #[arg(long, value_name = "VERSION")]
    pub to: Option<String>,
    /// Let kinds change so that objects of them may break
    #[arg(long)]
    pub allow_breaking_changes: bool,
    /// How.
    #[command(flatten)]
    pub how: MoveArgs,
}

/// Arguments of `rollback`.
#[derive(Clone, Debug, Args)]
pub struct Rollback {
    /// How.
    #[command(flatten)]
    pub how: MoveArgs,
}

/// Arguments of `grant`.
#[derive(Clone, Debug, Args)]
pub struct Grant {
    /// How the channel of its Platform is reached.
    #[command(flatten)]
    pub access: AccessArgs,
    /// Add what is missing, by the identity of the kubeconfig
    #[arg(long)]
    pub apply: bool,
    /// Exit with 2 where something is missing and was not added
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// For people or machines
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// Arguments of `controller`.
#[derive(Clone, Debug, Args)]
pub struct Controller {
    /// Name of the platform
    #[arg(long, value_name = "NAME", default_value = plinth_bootstrap::settings::DEFAULT_PLATFORM, value_parser = platform_name)]
    pub platform: String,
    /// Where /healthz and /readyz are served, 0 for nowhere
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: String,
    /// Where /metrics is served, 0 for nowhere
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    pub metrics_bind_address: String,
    /// Wait for the Lease that every writer holds; it cannot be switched off
    #[arg(long, default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub leader_elect: bool,
    /// Namespace of the Lease; it is where every writer looks for it
    #[arg(long, value_name = "NAMESPACE", default_value = plinth_bootstrap::rights::NAMESPACE)]
    pub leader_election_namespace: String,
    /// Write children by the rights of this service account in each instance's namespace, unless their definition names one
    #[arg(long, value_name = "NAME")]
    pub default_service_account: Option<String>,
    /// Tell an instance's conditions as Kubernetes events too
    #[arg(long)]
    pub instance_condition_events: bool,
    /// How repositories are reached.
    #[command(flatten)]
    pub access: AccessArgs,
}

/// Questions about ResourceGraphDefinitions.
#[derive(Debug, Subcommand)]
pub enum Rgd {
    /// Find everything that is wrong with files or folders
    Check {
        /// Folder with CRDs to check against, besides Kubernetes' own kinds (or those of --context's cluster; repeatable)
        #[arg(long, value_name = "DIR")]
        schemas: Vec<PathBuf>,
        /// Files or folders; - is standard input.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// For people or machines
        #[arg(short, long, value_enum, default_value_t = Output::Human)]
        output: Output,
    },
    /// Print the CRD that a definition generates
    Crd {
        /// Folder with CRDs to check against, besides Kubernetes' own kinds (or those of --context's cluster; repeatable)
        #[arg(long, value_name = "DIR")]
        schemas: Vec<PathBuf>,
        /// The file; - is standard input.
        file: PathBuf,
    },
    /// Show nodes, what they read, what is deferred, and planes
    Graph {
        /// Folder with CRDs to check against, besides Kubernetes' own kinds (or those of --context's cluster; repeatable)
        #[arg(long, value_name = "DIR")]
        schemas: Vec<PathBuf>,
        /// Files or folders; - is standard input.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Lines for people, a drawing for Graphviz, or for machines
        #[arg(short, long, value_enum, default_value_t = GraphOutput::Text)]
        output: GraphOutput,
    },
    /// Show what an instance becomes: its children as YAML, in the order of their application
    Render {
        /// Folder with CRDs to check against, besides Kubernetes' own kinds (or those of --context's cluster; repeatable)
        #[arg(long, value_name = "DIR")]
        schemas: Vec<PathBuf>,
        /// The definition's file; - is standard input.
        file: PathBuf,
        /// The instance; - is standard input
        #[arg(long, value_name = "FILE")]
        instance: PathBuf,
        /// File or folder with recorded objects, read in the place of examples (repeatable)
        #[arg(long, value_name = "DIR")]
        observed: Vec<PathBuf>,
    },
}

/// How a graph is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphOutput {
    /// A line for each node.
    Text,
    /// A drawing for Graphviz.
    Dot,
    /// For machines.
    Json,
}

/// Questions about the configuration.
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Print every setting
    Show {
        /// And where it comes from: a flag, the environment, the file, or the default.
        #[arg(long)]
        origin: bool,
        /// For people or machines
        #[arg(short, long, value_enum, default_value_t = Output::Human)]
        output: Output,
    },
}

/// Derived names.
#[derive(Debug, Subcommand)]
pub enum Name {
    /// The platform namespace of a ControlPlane
    Namespace {
        /// Namespace of the ControlPlane.
        namespace: String,
        /// Its name.
        name: String,
        /// Use the decision record's prefix `mcp-` instead of the code's `mcp--`
        #[arg(long)]
        single_dash: bool,
    },
}

/// Reads a time limit such as `90s`, `10m` or `1h30m`. Zero is no limit, as with kubectl's `--request-timeout`.
fn duration(text: &str) -> Result<Duration, String> {
    let span: jiff::SignedDuration = if text == "0" { Ok(jiff::SignedDuration::ZERO) } else { text.parse() }
        .map_err(|_| format!("'{text}' is no duration such as 90s, 10m or 1h30m"))?;
    match Duration::try_from(span) {
        Ok(Duration::ZERO) => Ok(Duration::MAX),
        limit => limit.map_err(|_| format!("'{text}' is negative")),
    }
}

/// Reads how many times faster: more than nothing, and a number.
fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| format!("'{text}' is no number such as 0.5 or 20"))?;
    if speed.is_finite() && speed >= 0.01 { Ok(speed) } else { Err(format!("'{text}' is no speed; 0.01 is the slowest")) }
}

/// Reads the name of a platform, which is a label's value and part of a file's name.
fn platform_name(text: &str) -> Result<String, String> {
    if platform::is_name(text) { Ok(text.to_owned()) } else { Err(format!("'{text}' is no name: {}", platform::NAME_RULE)) }
}

/// Reads `HOST` or `HOST:PORT`.
fn registry_host(text: &str) -> Result<String, String> {
    let is_host =
        !text.is_empty() && !text.contains(['/', '@', '?', '#']) && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    if is_host {
        Ok(text.to_owned())
    } else {
        Err(format!("'{text}' is no host: write HOST or HOST:PORT, without scheme and path"))
    }
}

/// Reads `SIGNATURE=PATH`.
fn signature_key(text: &str) -> Result<(String, PathBuf), String> {
    let parts = text.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty());
    parts.map(|(name, path)| (name.to_owned(), path.into())).ok_or_else(|| format!("'{text}': write SIGNATURE=PATH"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits_are_read_and_zero_is_none() {
        for (text, expected) in [
            ("90s", Ok(Duration::from_secs(90))),
            ("1h30m", Ok(Duration::from_mins(90))),
            ("0s", Ok(Duration::MAX)),
            ("0", Ok(Duration::MAX)),
            ("-5s", Err("'-5s' is negative")),
            ("5", Err("'5' is no duration such as 90s, 10m or 1h30m")),
        ] {
            assert_eq!(duration(text), expected.map_err(str::to_owned), "{text}");
        }
    }
}
