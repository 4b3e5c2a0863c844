//! What a shell offers while a command line is typed: verbs and flags from the table of arguments, contexts from the kubeconfig, and
//! objects of the platform.
//!
//! The script that `plinth completion SHELL` prints asks plinth itself, by the variable `COMPLETE`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use clap::CommandFactory;
use clap_complete::{CompleteEnv, CompletionCandidate, env::Shells};
use plinth_api::ObjectKey;
use plinth_run::RunState;

use crate::{
    args::{Cli, Global},
    journal, platform, runtime,
    tree::Tree,
    wire::{Contexts, Host, connect, journals},
};

/// The variable by which a shell asks.
const VARIABLE: &str = "COMPLETE";
/// How long a cluster is waited for: whoever presses tab wants an answer at once, or none.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers a shell that asks, and says whether one did.
pub(crate) fn answered() -> Result<bool, clap::Error> {
    let folder = std::env::current_dir().ok();
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).try_complete(std::env::args_os(), folder.as_deref())
}

/// The script by which a shell asks.
pub(crate) fn script(shell: clap_complete::Shell) -> std::io::Result<Vec<u8>> {
    let shells = Shells::builtins();
    let shell = shells.completer(&shell.to_string()).expect("both lists are of the same five shells");
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "plinth", "plinth", "plinth", &mut script)?;
    Ok(script)
}

/// Contexts of the kubeconfig.
pub(crate) fn contexts() -> Vec<CompletionCandidate> {
    let known = Contexts::read(typed("--kubeconfig").map(PathBuf::from).as_deref()).unwrap_or_default();
    known.names.into_iter().map(CompletionCandidate::new).collect()
}

/// Objects of the platform as `why` takes them. Where the cluster does not answer, those of its last run on this machine.
pub(crate) fn subjects() -> Vec<CompletionCandidate> {
    let asked = typed("--platform");
    let tree = from_the_cluster(async |host| {
        let name = platform::find(asked.as_deref(), host.0.as_ref()).await.ok()??;
        Tree::load(&name, host.0.as_ref(), &host).await.ok()
    });
    let keys: BTreeSet<ObjectKey> = match tree {
        Some(tree) => tree.leaves.into_keys().collect(),
        None => recorded(asked.as_deref()),
    };
    names(keys.iter()).into_iter().map(CompletionCandidate::new).collect()
}

/// Objects that the journals of this server say are there.
fn recorded(platform: Option<&str>) -> BTreeSet<ObjectKey> {
    let Some(server) = in_time(async |global| Some(connect(&global).await.ok()?.1)) else { return BTreeSet::new() };
    let known = journals(&server).unwrap_or_default().into_iter();
    let meant = known.filter(|(name, _)| platform.is_none_or(|asked| asked == name));
    let states = meant.filter_map(|(_, path)| Some(RunState::replay(&journal::read(&path).ok()?.events)));
    let there = states.flat_map(|state| state.subjects.into_iter().filter(|(_, known)| !known.is_gone()));
    there.map(|(key, _)| key).collect()
}

/// Platforms of the cluster. One that does not answer offers nothing.
pub(crate) fn platforms() -> Vec<CompletionCandidate> {
    let names = from_the_cluster(async |host| plinth_bootstrap::platforms(host.0.as_ref()).await.ok());
    names.unwrap_or_default().into_iter().map(CompletionCandidate::new).collect()
}

/// What the cluster of the command line says, if it says it at once.
fn from_the_cluster<T>(ask: impl AsyncFnOnce(Host) -> Option<T>) -> Option<T> {
    in_time(async |global| {
        let (host, _) = connect(&global).await.ok()?;
        ask(host).await
    })
}

/// What can be found out by what the command line says of the cluster, in the time that somebody waits for a tab.
fn in_time<T>(ask: impl AsyncFnOnce(Global) -> Option<T>) -> Option<T> {
    let global = Global {
        kubeconfig: typed("--kubeconfig").map(PathBuf::from),
        context: typed("--context"),
        color: None,
        plain: false,
        quiet: true,
        verbose: 0,
    };
    let runtime = runtime().ok()?;
    let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, ask(global)).await.ok().flatten() });
    // What is still being asked is not waited for.
    runtime.shutdown_background();
    answer
}

/// `Kind/name`, and everything where several objects share that.
fn names<'a>(keys: impl Iterator<Item = &'a ObjectKey>) -> Vec<String> {
    let mut known: BTreeMap<String, Vec<&ObjectKey>> = BTreeMap::new();
    for key in keys {
        known.entry(format!("{}/{}", key.gvk.kind, key.name)).or_default().push(key);
    }
    let several = |key: &&ObjectKey| {
        let namespace = key.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{}/{namespace}{}", key.gvk.group_kind(), key.name)
    };
    let name =
        |(name, keys): (String, Vec<&ObjectKey>)| if keys.len() == 1 { vec![name] } else { keys.iter().map(several).collect() };
    known.into_iter().flat_map(name).collect()
}

/// What was typed behind a flag: what is offered for another word depends on it.
fn typed(flag: &str) -> Option<String> {
    let words: Vec<String> = std::env::args().collect();
    let value = |(index, word): (usize, &String)| match word.strip_prefix(flag)? {
        "" => words.get(index + 1).cloned(),
        rest => rest.strip_prefix('=').map(str::to_owned),
    };
    words.iter().enumerate().find_map(value)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use plinth_api::{ClusterKey, GroupVersionKind};

    use super::*;

    #[test]
    fn every_shell_has_a_script_and_is_offered_every_verb() {
        for shell in clap_complete::Shell::value_variants() {
            let script = String::from_utf8(script(*shell).unwrap()).unwrap();
            assert!(script.contains(VARIABLE) && script.contains("plinth"), "{shell}: {script}");
        }
        let words = ["plinth", ""].map(Into::into).to_vec();
        let offered = clap_complete::engine::complete(&mut Cli::command(), words, 1, None).unwrap();
        for verb in Cli::command().get_subcommands() {
            assert!(offered.iter().any(|offer| offer.get_value() == verb.get_name()), "{} is not offered", verb.get_name());
        }
    }

    #[test]
    fn names_that_several_share_are_said_whole() {
        let key = |group: &str, namespace: Option<&str>, name: &str| ObjectKey {
            cluster: ClusterKey::host(),
            gvk: GroupVersionKind::new(group, "v1", "Thing"),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        let keys = [key("a.dev", None, "x"), key("b.dev", Some("n"), "x"), key("a.dev", None, "y")];
        assert_eq!(names(keys.iter()), ["Thing.a.dev/x", "Thing.b.dev/n/x", "Thing/y"]);
    }
}
