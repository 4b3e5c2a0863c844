//! `plinth demo`: the bundled sample comes up in the embedded control plane, with nothing else needed.

use std::{path::Path, sync::Arc};

use plinth_bootstrap::{ports::Always, rehearsal};
use plinth_cluster::embedded::{Serving, act::ImageList};
use plinth_manager::Shutdown;
use plinth_run::{EventKind, History, Journal, Outcome, Recorder, memory::VecJournal};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::up::{self, Loaded, View};
use crate::{
    args::{AccessArgs, Demo, Global, RunOutput, SelectionArgs, SourceArgs, VersionArgs},
    config::Config,
    exit::Failure,
    out::Out,
    present::Teller,
    sample, screen,
    wire::{self, AT_ONCE, Plane, Session, listen},
};

/// What the scenario's seconds are multiplied by for somebody who watches: about a minute in all.
const TO_WATCH: f64 = 12.0;

/// Runs `plinth demo`.
pub(crate) async fn run(global: &Global, args: &Demo, out: Out) -> Result<Outcome, Failure> {
    let config = Config::load(global);
    // Nothing is asked here, so that text will do wherever nothing can be drawn.
    let in_text = args.apply || args.output.is_some() || screen::obstacle(&config).is_some();
    let folder = TempDir::with_prefix("plinth-demo-").map_err(|error| broken("make a folder", &error))?;
    let (loaded, source) = load_sample(folder.path(), out).await?;
    let pace = if args.fast { AT_ONCE } else { TO_WATCH };
    let images = ImageList::new(rehearsal::images(&loaded.content));
    let plane = Plane::open(loaded.own_scenario()?, pace, images);
    let serving = match args.serve {
        Some(address) => Some(plane.serve(address).await?),
        None => None,
    };
    let journal: Arc<dyn Journal> = match &args.journal {
        Some(path) => wire::journal(Some(path), &loaded.settings.platform, HERE)?,
        None => Arc::new(VecJournal::default()),
    };
    let (platform, delivery) = (&loaded.settings.platform, loaded.delivery(&source));
    let approver = Always("demo".to_owned());
    if in_text {
        config.tell(out);
        let teller = Arc::new(Teller::of_run(args.output.unwrap_or(RunOutput::Lines), out));
        let session = Session::open(plane.host(), journal, vec![teller], platform, delivery, listen()?)?;
        let outcome = up::bring_up(&loaded, &session, &approver, CancellationToken::new()).await;
        session.tell(outcome, out);
        return match serving {
            Some(serving) if outcome == Outcome::Done => stay(&serving, folder.path(), out).await,
            _ => Ok(outcome),
        };
    }
    let (view, sink) = View::new(global, &plane.host(), &loaded, History::default());
    let session = Session::open(plane.host(), journal, vec![sink], platform, delivery, listen()?)?;
    if let Some(serving) = &serving {
        let message = told(serving, folder.path())?;
        out.talk(&message);
        session.log.record(EventKind::Warning { subject: None, reason: "Serving".to_owned(), message });
    }
    view.at(HERE).review(&loaded, &session, Some(&approver), out).await
}

/// Where a demo runs: in none of the clusters that a kubeconfig names.
const HERE: &str = "in this process";

/// The sample as a SOURCE in a folder, chosen and with its settings.
async fn load_sample(folder: &Path, out: Out) -> Result<(Loaded, SourceArgs), Failure> {
    sample::unpack(folder).map_err(|error| broken("unpack the sample", &error))?;
    let source = SourceArgs { source: folder.display().to_string(), access: AccessArgs::default() };
    let selection =
        SelectionArgs { distribution: None, versions: VersionArgs::default(), namespace: None, values: None, verify: None };
    let mut loaded = up::load(&source, &selection, out).await?;
    sample::NAME.clone_into(&mut loaded.settings.source);
    Ok((loaded, source))
}

/// Stays for whoever looks at it, until a signal.
async fn stay(serving: &Serving, folder: &Path, out: Out) -> Result<Outcome, Failure> {
    out.data(&told(serving, folder)?);
    out.talk("until ctrl-c");
    let signals = Shutdown::on_signals().map_err(|error| broken("listen for signals", &error))?;
    signals.token().cancelled().await;
    Ok(Outcome::Done)
}

/// Writes the kubeconfig and says where it is.
fn told(serving: &Serving, folder: &Path) -> Result<String, Failure> {
    let path = folder.join("kubeconfig");
    std::fs::write(&path, serving.kubeconfig()).map_err(|error| broken("write the kubeconfig", &error))?;
    Ok(format!("kubectl --kubeconfig {} get all", path.display()))
}

fn broken(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(Outcome::Internal, format!("{what}: {error}"))
}
