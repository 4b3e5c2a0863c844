//! `plinth up`: load the channel, open a session, let bootstrap plan and act, and present what happens.

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use jiff::Timestamp;
use plinth_api::{Object, ObjectKey, platform::PlatformSpec};
use plinth_bootstrap::{
    Approver, Choice, Content, Distribution, Manifest, Request, Settings, distribution, plan, ports::Always, runner, wanted,
};
use plinth_engine::schema::builtin;
use plinth_releasechannel::{Channel, Options, RunMemory};
use plinth_run::{Event, History, Outcome, Plan, RunId, Sink};
use plinth_tui::{Effect, Message, Model, app};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{install, own_image::Purpose};
use crate::{
    args::{Global, RunOutput, SelectionArgs, SourceArgs, Up},
    config::Config,
    exit::Failure,
    load,
    out::Out,
    present::Teller,
    saved, screen,
    wire::{self, Ask, AskInText, Contexts, Fetcher, Host, Session, Turn, Wanted, before_the_run, connect, interrupted, listen},
};

/// A channel, what was chosen of it, and what the operator wants.
pub(crate) struct Loaded {
    pub(crate) content: Content,
    pub(crate) distribution: Distribution,
    pub(crate) settings: Settings,
    /// The Platform file that SOURCE was.
    pub(super) asked: Option<PlatformSpec>,
    /// The text of the distribution's scenario.
    pub(crate) scenario: Option<String>,
    /// The plan that is to be carried out exactly.
    saved: Option<Plan>,
    /// What was read of the channel: the loop of this run asks no registry for it again.
    memory: Arc<RunMemory>,
}

impl Loaded {
    /// A run for it, where an earlier one ended.
    pub(super) fn request(&self, resumed: Option<RunId>) -> Request<'_> {
        Request {
            content: &self.content,
            distribution: &self.distribution,
            settings: &self.settings,
            saved: self.saved.as_ref(),
            resumed,
        }
    }

    /// What the loop needs of the channel.
    pub(crate) fn delivery(&self, source: &SourceArgs) -> wire::Delivery {
        let mut repositories = Options { run: Some(Arc::clone(&self.memory)), ..load::options(source) };
        repositories.ca_pem.extend(self.asked.as_ref().and_then(|platform| platform.source.ca.clone()));
        let hands_over = self.settings.controller.is_some();
        let images = self.content.images.clone();
        wire::Delivery { repositories, images, hands_over, ..wire::Delivery::default() }
    }
}

/// Resolves SOURCE and chooses the distribution; reads only.
pub(crate) async fn load(source: &SourceArgs, selection: &SelectionArgs, out: Out) -> Result<Loaded, Failure> {
    load_with(source, selection, BTreeMap::new(), Duration::MAX, out).await
}

/// The same with the keys that the cluster has for signatures, and no longer than this.
pub(crate) async fn load_with(
    source: &SourceArgs,
    selection: &SelectionArgs,
    keys: BTreeMap<String, String>,
    patience: Duration,
    out: Out,
) -> Result<Loaded, Failure> {
    let late = |_| {
        let message = format!("reading {} did not end within {}", source.source, said(patience));
        Failure::new(Outcome::Deadline, message).hint("--timeout gives it longer")
    };
    tokio::time::timeout(patience, read(source, selection, keys, patience, out)).await.map_err(late)?
}

fn said(time: Duration) -> String {
    plinth_run::duration::short(jiff::SignedDuration::try_from(time).unwrap_or(jiff::SignedDuration::MAX))
}

async fn read(
    source: &SourceArgs,
    selection: &SelectionArgs,
    keys: BTreeMap<String, String>,
    patience: Duration,
    out: Out,
) -> Result<Loaded, Failure> {
    let platform = load::platform::read(&source.source)?;
    let mut options = load::options(source);
    options.limits = options.limits.within(patience);
    let (memory, remarks) = RunMemory::new(options.cache.as_ref());
    remarks.iter().for_each(|remark| out.talk(&format!("note: {remark}")));
    options.run = Some(Arc::clone(&memory));
    // A key that was given by a flag wins.
    options.key_texts = keys.into_iter().filter(|(name, _)| !options.keys.contains_key(name)).collect();
    options.verify = selection.verify.map(load::policy);
    let channel = load::resolved(source, &load::selection(selection)?, &options).await?;
    load::tell_remarks(&channel, out);
    let images = Arc::new(load::images(source, &channel).await?);
    let mut content = Content { images, ..Content::from(&channel) };
    let settings = load::settings(source, selection, &channel, platform.as_ref()).await?;
    let choice = selection.distribution.as_deref().map(Choice::parse);
    let distribution = distribution::choose(&content, choice.as_ref()).map_err(|error| wire::refused(&error))?;
    content.manifests = manifests(&channel, &content, &distribution, &settings, out).await;
    let is_its = |scenario: &&plinth_releasechannel::ComponentText| {
        scenario.component.name == distribution.component.name && scenario.component.version == distribution.component.version
    };
    let scenario = channel.scenarios.iter().find(is_its).map(|scenario| scenario.text.clone());
    Ok(Loaded { content, distribution, settings, asked: channel.platform, scenario, saved: None, memory })
}

/// What Deployers will apply, for its images. A manifest that cannot be read here is said: its Deployer will say so again.
async fn manifests(
    channel: &Channel,
    content: &Content,
    distribution: &Distribution,
    settings: &Settings,
    out: Out,
) -> BTreeMap<Manifest, Vec<Value>> {
    let mut manifests = BTreeMap::new();
    // What the cluster serves beside this defines no delivery objects, and other nodes do not matter here.
    let served = Arc::new(builtin().clone());
    for (component, resource) in plan::manifests(content, distribution, settings, served) {
        match channel.documents(&component, &resource).await {
            Ok(documents) => drop(manifests.insert((component, resource), documents)),
            Err(error) => out.talk(&format!("note: images in the resource {resource} of {component} are not known: {error}")),
        }
    }
    manifests
}

/// Runs `plinth up`.
pub(crate) async fn run(global: &Global, args: &Up, out: Out) -> Result<Outcome, Failure> {
    let config = Config::load(global);
    // Whoever asked for text on a terminal is asked in text.
    let in_text = !args.apply && config.plain.value && std::io::stdin().is_terminal();
    if !args.apply {
        if !in_text {
            can_show(&config)?;
        }
        if args.output != RunOutput::Lines || global.quiet {
            return Err(Failure::new(Outcome::Usage, "-o and --quiet are for runs without a terminal view").hint("add --apply"));
        }
    }
    let saved = args.plan.as_deref().map(saved::read).transpose()?;
    let source = source(args, saved.as_ref());
    let signals = listen()?;
    let (host, server) = before_the_run(&signals, connect(global)).await?;
    host.give_up_after(args.timeout);
    let keys = before_the_run(&signals, wire::keys(&host, &source.source)).await?;
    let mut loaded = before_the_run(&signals, load_with(&source, &args.selection, keys, args.timeout, out)).await?;
    loaded.settings.timeout = args.timeout;
    loaded.settings.take_over = args.take_over;
    loaded.saved = saved;
    let chosen = install::choose(&args.controller, (&source, &args.selection), &mut loaded, Purpose::Up, out);
    before_the_run(&signals, chosen).await?;
    let journal = wire::journal(args.journal.as_deref(), &loaded.settings.platform, &server)?;
    let platform = &loaded.settings.platform;
    let leaves = before_the_run(&signals, async { Ok(wire::leaves(&host).await) }).await?;
    let delivery = wire::Delivery { turn: turn(args, platform), leaves, ..loaded.delivery(&source) };
    // Resolving took its own time.
    host.give_up_after(args.timeout);
    if args.apply || in_text {
        config.tell(out);
        let teller: Arc<dyn Sink> = Arc::new(Teller::of_run(args.output, out));
        let session = Session::open(host, journal, vec![teller], platform, delivery, signals)?;
        let approver: &dyn Approver = if in_text { &AskInText::new(out, global) } else { &Always("--apply".to_owned()) };
        let outcome = bring_up(&loaded, &session, approver, CancellationToken::new()).await;
        session.tell(outcome, out);
        return Ok(outcome);
    }
    let past = journal.load().map(|replay| History::learn(&replay.events)).unwrap_or_default();
    let (view, sink) = View::new(global, &host, &loaded, past);
    let view = view.at(&Contexts::chosen(global).unwrap_or_default());
    let session = Session::open(host, journal, vec![sink], platform, delivery, signals)?;
    view.review(&loaded, &session, None, out).await
}

/// SOURCE, or the one that the saved plan was made from.
fn source(args: &Up, saved: Option<&Plan>) -> SourceArgs {
    let of_plan = saved.filter(|_| args.source.source.is_empty()).map(|plan| plan.source.clone());
    SourceArgs { source: of_plan.unwrap_or_else(|| args.source.source.clone()), access: args.source.access.clone() }
}

fn turn(args: &Up, platform: &str) -> Turn {
    Turn::Lease { break_lock: args.break_lock, platform: Some(platform.to_owned()) }
}

/// The terminal's side of a run: what it is told, what it asks with, and what it shows.
pub(super) struct View {
    messages: mpsc::Receiver<Message>,
    host: Host,
    fetcher: Fetcher,
    model: Model,
}

impl View {
    /// A view, and the sink by which it is told.
    pub(super) fn new(global: &Global, host: &Host, loaded: &Loaded, past: History) -> (Self, Arc<dyn Sink>) {
        let (sender, messages) = mpsc::channel();
        let _open = sender.send(Message::History(Box::new(past)));
        let fetcher = Fetcher::new(host.clone(), Wanted::Run(Arc::new(wanted(loaded))), sender.clone());
        let model = screen::model(&Config::load(global));
        (Self { messages, host: host.clone(), fetcher, model }, Arc::new(Forward(sender)))
    }

    /// Names the cluster that is looked at, as the header says it.
    pub(super) fn at(mut self, place: &str) -> Self {
        place.clone_into(&mut self.model.ui.place);
        self
    }

    /// Shows the run and, where nobody else approves the plan, asks; stays open until the person leaves.
    pub(super) async fn review(
        self,
        loaded: &Loaded,
        session: &Session,
        approver: Option<&dyn Approver>,
        out: Out,
    ) -> Result<Outcome, Failure> {
        let (ask, answer) = Ask::new();
        review(loaded, session, self, (approver.unwrap_or(&ask), answer), out).await
    }
}

/// What the run itself writes, for comparing. What cannot be assembled is said by the run.
fn wanted(loaded: &Loaded) -> BTreeMap<ObjectKey, Object> {
    let wanted = wanted::assemble(&loaded.distribution, &loaded.settings).unwrap_or_default();
    wanted.into_iter().map(|wanted| (wanted.key, wanted.object)).collect()
}

/// Plans, asks, and brings up.
pub(super) async fn bring_up(loaded: &Loaded, session: &Session, approver: &dyn Approver, stop: CancellationToken) -> Outcome {
    let request = loaded.request(session.resumed.clone());
    let outcome = interrupted(session, stop, runner::up(&request, &session.ports, approver)).await;
    session.ports.control.stop().await;
    outcome
}

async fn review(
    loaded: &Loaded,
    session: &Session,
    view: View,
    (approver, answer): (&dyn Approver, oneshot::Sender<bool>),
    out: Out,
) -> Result<Outcome, Failure> {
    let View { messages, host, fetcher, model } = view;
    let stop = CancellationToken::new();
    let interrupt = stop.clone();
    let close = Arc::new(AtomicBool::new(false));
    let closing = Arc::clone(&close);
    let screen = tokio::task::spawn_blocking(move || {
        let mut answer = Some(answer);
        let perform = |effect| match effect {
            Effect::Approve | Effect::Decline => {
                // The run may have ended while the question was open; then nobody waits for the answer.
                let _nobody = answer.take().map(|answer| answer.send(effect == Effect::Approve));
            }
            Effect::Interrupt => interrupt.cancel(),
            Effect::Fetch(ask) => fetcher.ask(ask),
            // The run reads what it needs, and stays on its cluster; a copy and the end are the loop's own.
            Effect::Refresh | Effect::Contexts | Effect::Connect(_) | Effect::Copy(_) | Effect::Suspend | Effect::Quit => {}
        };
        app::run(model, &messages, &closing, Timestamp::now, perform)
    });
    let outcome = bring_up(loaded, session, approver, stop).await;
    // Whoever looks around afterwards has no time limit.
    host.0.give_up_at(None);
    if outcome == Outcome::Interrupted {
        close.store(true, Ordering::Relaxed);
    }
    let signal = session.signals.token();
    let last_signal = tokio::spawn(async move {
        signal.cancelled().await;
        close.store(true, Ordering::Relaxed);
    });
    let shown = screen.await;
    last_signal.abort();
    let shown = shown.map_err(|error| Failure::new(Outcome::Internal, format!("the terminal view ended: {error}")))?;
    shown.map_err(|error| Failure::failed(format!("draw on the terminal: {error}")))?;
    session.log.read(|state| {
        let told = state.finished.as_ref().map(|finished| finished.message.clone()).filter(|message| !message.is_empty());
        out.talk(&format!("{outcome}{}", told.map(|message| format!(": {message}")).unwrap_or_default()));
    });
    Ok(outcome)
}

/// Passes events to the terminal's thread. A terminal that is gone takes none.
struct Forward(mpsc::Sender<Message>);

impl Sink for Forward {
    fn take(&self, event: &Event) {
        let _gone = self.0.send(Message::Run(Box::new(event.clone())));
    }
}

/// Whether there is somebody to review a plan, and a terminal to show it on.
fn can_show(config: &Config) -> Result<(), Failure> {
    let Some(obstacle) = screen::obstacle(config) else { return Ok(()) };
    let message = format!("up shows its plan on a terminal and asks, but {obstacle}");
    Err(Failure::new(Outcome::Usage, message).hint("plinth plan shows the plan, plinth up --apply applies it without a question"))
}
