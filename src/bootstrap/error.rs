//! Why a platform cannot be planned, brought up or removed.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use plinth_api::{ObjectKey, Permission, lock::LockedRef};
use plinth_engine::{
    Diagnostic,
    naming::keys,
    ports::{ReadError, WriteError},
};
use plinth_run::{ClusterIdentity, Outcome, ports::JournalError};
use thiserror::Error;

use crate::{held::Held, plan::owner::Owner};

/// What went wrong. [`Error::outcome`] gives the exit code, [`Error::hint`] the next step.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Error {
    /// A document of a component is wrong; one finding a line.
    #[error("{resource} of component {}:{}:{}", .component.name, .component.version, lines(&quoted(.findings)))]
    Document {
        /// The component version.
        component: LockedRef,
        /// Name of the resource, such as `rgd`.
        resource: String,
        /// What is wrong, with line and column.
        findings: Vec<Diagnostic>,
    },
    /// The channel has nothing that could be brought up.
    #[error("{0} holds no ResourceGraphDefinition, so there is no distribution to bring up")]
    NoDistribution(String),
    /// Every definition's kind is made by another one.
    #[error("no definition is the top-level one, each of these kinds is made by another: {}", .0.join(", "))]
    Circular(Vec<String>),
    /// Several answers are possible.
    #[error("{question}; choose one of: {}", .choices.join(", "))]
    Choice {
        /// What is open.
        question: String,
        /// The possible answers.
        choices: Vec<String>,
        /// The flag that chooses.
        flag: &'static str,
    },
    /// The choice names nothing in the channel.
    #[error("{asked} is not a distribution of this channel; it has: {}", .choices.join(", "))]
    UnknownDistribution {
        /// What was asked for.
        asked: String,
        /// What there is.
        choices: Vec<String>,
    },
    /// The values do not fit the distribution's schema.
    #[error("the values do not fit {kind}:{}", lines(.findings))]
    Values {
        /// The top-level kind.
        kind: String,
        /// What is wrong.
        findings: Vec<Placed>,
    },
    /// A name that no server takes.
    #[error(
        "{kind} {name:?} is no name that Kubernetes takes: lower-case letters, digits and -{dot}, a letter or digit at both ends, 1 to {longest} of them"
    )]
    Name {
        /// What is called so.
        kind: String,
        /// The name.
        name: String,
        /// What may be in it besides.
        dot: &'static str,
        /// Longest name.
        longest: usize,
    },
    /// A name in a graph that no server takes.
    #[error("node {node} of {rgd}: {kind} {name:?} is no name that Kubernetes takes: {rule}")]
    ChildName {
        /// The node.
        node: String,
        /// Name of the RGD.
        rgd: String,
        /// What is called so.
        kind: String,
        /// The name.
        name: String,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// The platform has a place already.
    #[error("platform {platform} lives in {} ({object}), it cannot come up as {wanted} as well", home(.object))]
    Elsewhere {
        /// Name of the platform.
        platform: String,
        /// What is there.
        object: Box<ObjectKey>,
        /// What was wanted.
        wanted: Box<ObjectKey>,
    },
    /// Kinds that are installed would change so that their objects break; what changes, by definition.
    #[error("the installed kinds would change so that their objects break:{}", broken(.0))]
    Breaking(BTreeMap<String, Vec<String>>),
    /// A move to another release stopped at a component that did not turn ready.
    #[error(
        "{} {} did not turn ready, and what comes after it is as it was{}: {why}", .component.name, .component.version, listed(.rest)
    )]
    Stopped {
        /// The component version whose definition moved last.
        component: LockedRef,
        /// The definition.
        definition: String,
        /// What is missing.
        why: String,
        /// The definitions that did not move.
        rest: Vec<String>,
        /// Time was up, rather than that something failed.
        is_late: bool,
    },
    /// Another controller would write the same objects.
    #[error("{deployment} of {tool} runs in this cluster and would write what the definitions make, too")]
    Beside {
        /// Which.
        tool: String,
        /// Its Deployment.
        deployment: Box<ObjectKey>,
    },
    /// A graph asks for a component that the lock does not have (contracts 4).
    #[error("node {node} of {rgd} asks for component {component} {version}, which is not in the release lock")]
    OutsideLock {
        /// Name of the RGD.
        rgd: String,
        /// The node.
        node: String,
        /// OCM component name.
        component: String,
        /// Version or range.
        version: String,
    },
    /// An archive cannot be handed over to a cluster (contracts 5).
    #[error("{0}")]
    Unusable(String),
    /// Images are not where they would be pulled from.
    #[error("the mirror {mirror} is not complete:\n  {}", .missing.join("\n  "))]
    Incomplete {
        /// The mirror.
        mirror: String,
        /// What is missing, each with its reason.
        missing: Vec<String>,
    },
    /// The API server did not answer until the deadline.
    #[error("the cluster did not answer within {waited}: {message}")]
    Unreachable {
        /// How long it was tried.
        waited: String,
        /// What the last attempt said.
        message: String,
    },
    /// It is another cluster than the journal's or the plan's.
    #[error("this is cluster {found}, but the {whose} was made for cluster {expected}")]
    OtherCluster {
        /// `journal` or `plan`.
        whose: &'static str,
        /// Identity in there.
        expected: ClusterIdentity,
        /// Identity here.
        found: ClusterIdentity,
    },
    /// Permissions are missing.
    #[error("the identity lacks {} permission{}:\n  {}", .0.len(), if .0.len() == 1 { "" } else { "s" }, .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  "))]
    Permissions(Vec<Permission>),
    /// The saved plan does not fit the world any more.
    #[error("the plan is stale: {0}")]
    Stale(String),
    /// Another one has the turn to write.
    #[error("{holder} writes on this cluster{}", .since.map(|since| format!(" since {since}")).unwrap_or_default())]
    Locked {
        /// Who.
        holder: String,
        /// Since when, by its clock.
        since: Option<Timestamp>,
    },
    /// The plan was declined.
    #[error("the plan was not approved")]
    Declined,
    /// An object belongs to another tool.
    #[error("{object} belongs to {owner}")]
    Foreign {
        /// The object.
        object: String,
        /// Who owns it.
        owner: String,
        /// Whether `--take-over` takes it.
        can_be_taken: bool,
    },
    /// An object belongs to another platform.
    #[error("{object} belongs to platform {owner}, and this is platform {platform}")]
    OtherPlatform {
        /// The object.
        object: String,
        /// The platform that has it.
        owner: String,
        /// The platform that was wanted.
        platform: String,
    },
    /// An object of ours was changed by somebody else, where it is to be changed now.
    #[error("{object} was changed by somebody else, who holds {}", .fields.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Held {
        /// The object.
        object: String,
        /// The fields, with who holds them.
        fields: Vec<Held>,
    },
    /// The platform is another distribution's.
    #[error("platform {platform} is {found}, and this channel would bring {wanted} up beside it")]
    OtherDistribution {
        /// Name of the platform.
        platform: String,
        /// The top-level instance that is there.
        found: Box<ObjectKey>,
        /// The one that was wanted.
        wanted: Box<ObjectKey>,
    },
    /// Something failed for good.
    #[error("{0}")]
    Failed(String),
    /// The deadline passed.
    #[error("{0}")]
    Deadline(String),
    /// A write failed for good.
    #[error("write {0}")]
    Write(#[from] WriteError),
    /// A read failed for good.
    #[error("read from the cluster: {0}")]
    Read(#[from] ReadError),
    /// Another one may write now, so this run does not any more.
    #[error("{0}")]
    LostTurn(String),
    /// The journal does not keep events.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The loop cannot be started.
    #[error("start the controller: {0}")]
    Loop(String),
}

impl Error {
    /// The first line, for where the rest is said elsewhere.
    pub(crate) fn headline(&self) -> String {
        let message = self.to_string();
        match message.split_once('\n') {
            Some((first, _)) => first.trim_end_matches(':').to_owned(),
            None => message,
        }
    }

    /// An object of somebody else than `platform`.
    pub(crate) fn foreign(object: &ObjectKey, owner: &Owner, platform: &str, can_be_taken: bool) -> Self {
        let object = object.to_string();
        match &owner.platform {
            Some(other) => Self::OtherPlatform { object, owner: other.clone(), platform: platform.to_owned() },
            None => Self::Foreign { object, owner: owner.name.clone(), can_be_taken },
        }
    }

    /// How the run ends by it.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Unreachable { .. } | Self::Deadline(_) | Self::Stopped { is_late: true, .. } => Outcome::Deadline,
            Self::Failed(_) | Self::Stopped { .. } | Self::LostTurn(_) | Self::Loop(_) | Self::Journal(_) => Outcome::Failed,
            Self::Write(error) => match error {
                WriteError::Unavailable { .. } => Outcome::Deadline,
                WriteError::Forbidden { .. } | WriteError::Denied { .. } | WriteError::Unauthenticated { .. } => Outcome::Refused,
                _ => Outcome::Failed,
            },
            Self::Read(error) => match error {
                ReadError::Unavailable(_) => Outcome::Deadline,
                ReadError::Forbidden { .. } | ReadError::Unauthenticated(_) => Outcome::Refused,
                ReadError::NotServed(_) => Outcome::Failed,
            },
            Self::Document { .. }
            | Self::NoDistribution(_)
            | Self::Circular(_)
            | Self::Choice { .. }
            | Self::UnknownDistribution { .. }
            | Self::Values { .. }
            | Self::Breaking(_)
            | Self::Beside { .. }
            | Self::OutsideLock { .. }
            | Self::Name { .. }
            | Self::ChildName { .. }
            | Self::Elsewhere { .. }
            | Self::OtherDistribution { .. }
            | Self::Unusable(_)
            | Self::Incomplete { .. }
            | Self::OtherCluster { .. }
            | Self::Permissions(_)
            | Self::Stale(_)
            | Self::Declined
            | Self::Locked { .. }
            | Self::Foreign { .. }
            | Self::OtherPlatform { .. }
            | Self::Held { .. } => Outcome::Refused,
        }
    }

    /// The next step, where something general can be said.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Choice { flag, .. } => format!("choose with {flag}"),
            Self::UnknownDistribution { .. } => "choose with --distribution NAME[@RANGE]".to_owned(),
            Self::OutsideLock { .. } => {
                "add a component reference to the distribution, so that the channel carries it".to_owned()
            }
            Self::Stopped { .. } => "plinth rollback goes back to the release before; run again to go on".to_owned(),
            Self::Beside { .. } => "scale it to zero; --take-over then goes on with what it made, under its names".to_owned(),
            Self::Breaking(_) => format!(
                "keep the fields as they are, or let the change through by --allow-breaking-changes of plinth upgrade, or by {}=true on the definition",
                keys::ALLOW_BREAKING_CHANGES
            ),
            Self::Elsewhere { platform, object, .. } => match &object.namespace {
                Some(namespace) => format!("-n {namespace} goes on with it there, {} removes it from there", down(platform)),
                None => format!("{} removes it", down(platform)),
            },
            Self::OtherCluster { .. } => "use the kubeconfig and context of that cluster, or another --journal".to_owned(),
            Self::Permissions(_) => "bind a role with these rules to the identity of the kubeconfig".to_owned(),
            Self::Locked { .. } => "let it end; --break-lock takes the Lease of a run that is dead".to_owned(),
            Self::Stale(_) => "plan again".to_owned(),
            Self::Incomplete { .. } => "plinth bundle push brings an archive to the mirror".to_owned(),
            Self::Foreign { can_be_taken: true, .. } => {
                "--take-over takes it, and then plinth down removes it; else give it another name, or remove it".to_owned()
            }
            Self::Foreign { .. } => "two controllers must not write one object: remove it there first".to_owned(),
            Self::Held { .. } => {
                "--take-over writes it over; what should stay belongs into the channel or into the values".to_owned()
            }
            Self::OtherPlatform { owner, .. } => {
                format!("metadata.name: {owner} in the Platform file goes on with that one, {} removes it", down(owner))
            }
            Self::OtherDistribution { platform, .. } => {
                format!("{} removes what is there; a channel of its next version goes on with it", down(platform))
            }
            Self::Unreachable { .. } | Self::Deadline(_) | Self::LostTurn(_) => "run again to go on".to_owned(),
            _ => return None,
        };
        Some(hint)
    }
}

/// The command that removes a platform, whatever else the cluster has.
fn down(platform: &str) -> String {
    format!("plinth down --platform {platform} --apply")
}

/// What did not move, in brackets.
fn listed(rest: &[String]) -> String {
    if rest.is_empty() { String::new() } else { format!(" ({})", rest.join(", ")) }
}

/// A definition a line, with what breaks.
fn broken(changes: &BTreeMap<String, Vec<String>>) -> String {
    let said: Vec<String> = changes.iter().map(|(definition, changes)| format!("{definition}: {}", changes.join("; "))).collect();
    lines(&said)
}

/// The namespace of an object, or the whole cluster.
fn home(object: &ObjectKey) -> String {
    object.namespace.as_ref().map_or_else(|| "the cluster".to_owned(), |namespace| format!("namespace {namespace}"))
}

/// A finding with the text that its place is in.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// What the place begins with: `FILE:` as compilers write it, or the resource of a component as [`Error::Document`] says it; empty
    /// where there is no place.
    pub text: String,
    /// What is wrong there.
    pub finding: Diagnostic,
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, self.finding.quoted())
    }
}

/// One finding a line; a single one stays on the line.
fn lines(findings: &[impl ToString]) -> String {
    match findings {
        [one] => format!(" {}", one.to_string()),
        _ => findings.iter().fold(String::new(), |text, finding| text + "\n  " + &finding.to_string()),
    }
}

/// The findings of one document, each as `line:column path: message (hint)`.
fn quoted(findings: &[Diagnostic]) -> Vec<String> {
    findings.iter().map(Diagnostic::quoted).collect()
}
