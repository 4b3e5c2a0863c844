//! A long day in the life of a platform that two controllers keep, one after the other: the Lease is renewed all the time, watches end with
//! 410, the API server restarts, its etcd is slow, somebody deletes and changes what the platform consists of, the pods are replaced, and
//! a version is published that the platform moves to when its window opens.
//!
//! In simulated time, as every life here; the controllers are those of `plinth controller`, from the Lease on.

mod drift;
mod pods;
mod server;
mod sources;

use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use jiff::SignedDuration;
use plinth_api::{Object, crds};
use plinth_cluster::embedded::{Embedded, Options};
use plinth_engine::ports::Clock;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    audit::Audit,
    clock::SimulatedClock,
    door::Door,
    life::in_paused_time,
    operator::{self, Pace},
    platform::SMALL,
    random::Random,
    state::{self, State},
    trace::Trace,
    weather::Spells,
};
use drift::Drift;
use pods::Pods;
use server::{Figures, Schedule, Server};
use sources::{COMPONENT, FIRST, Published, SECOND};

/// The Platform.
const PLATFORM: &str = "/apis/plinth.dev/v1alpha1/platforms/default";
/// How long anything may take that is not waited for by itself.
const PATIENCE: Duration = Duration::from_mins(20);
/// How long the Lease may be nobody's with nothing in the way: a process ended, and the next one looks every other second.
const UNRENEWED: Duration = Duration::from_secs(20);
/// How long the window is open.
const WINDOW: Duration = Duration::from_mins(90);

/// What happens on a day.
struct Plan {
    /// How long it is.
    length: Duration,
    schedule: Schedule,
    /// When somebody changes something.
    drifts: Vec<Duration>,
    /// When the second version is published.
    published: Duration,
    /// When the window opens.
    opens: Duration,
    /// When the pods are replaced.
    replaced: Vec<Duration>,
}

impl Plan {
    /// Five restarts, spells of a slow etcd, and somebody who cannot leave things alone.
    fn rough(length: Duration, random: &mut Random) -> Self {
        let at = |share: u32| length * share / 1000;
        let away = [(110, 3), (270, 8), (430, 45), (690, 90), (850, 300)].map(|(share, seconds)| {
            let from = at(share) + random.millis(0, 60_000);
            (from, from + Duration::from_secs(seconds))
        });
        let slow =
            [60, 180, 350, 580, 760, 930].map(|share| (at(share), at(share) + random.millis(120_000, 1_200_000).min(at(30))));
        let mut drifts = Vec::new();
        let mut next = Duration::from_mins(10);
        while next + PATIENCE < length {
            drifts.push(next);
            next += random.millis(600_000, 2_400_000);
        }
        let schedule = Schedule { away: Spells(away.into()), slow: Spells(slow.into()), expires: true };
        Self { length, schedule, drifts, published: at(250), opens: at(500), replaced: vec![at(300), at(650), at(900)] }
    }

    /// The same without anything that disturbs, and in an hour.
    fn calm() -> Self {
        let minutes = Duration::from_mins;
        let (schedule, drifts, replaced) = (Schedule::default(), Vec::new(), Vec::new());
        Self { length: minutes(60), schedule, drifts, published: minutes(10), opens: minutes(20), replaced }
    }
}

/// How a day went.
pub(crate) struct Report {
    figures: Figures,
    /// How long each change of somebody's was there.
    repairs: Vec<Duration>,
    restarts: usize,
    pub(crate) broken: Vec<String>,
    state: State,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { figures, repairs, restarts, broken, .. } = self;
        let (slow, vain, expired, writes) = (figures.slow, figures.timed_out, figures.expired, figures.writes);
        write!(f, "the Lease renewed {} times, ", figures.renewals)?;
        let (longest, of_all) = (figures.longest.as_secs_f64(), figures.longest_of_all.as_secs_f64());
        write!(f, "at most {longest:.1} s apart ({of_all:.1} s while the API server was away or slow), ")?;
        write!(
            f,
            "by {} processes in {} turns; {restarts} restarts of the API server, ",
            figures.processes(),
            figures.leaders.len()
        )?;
        write!(f, "{expired} watches ended with 410, {slow} requests slow and {vain} of them in vain; ")?;
        let undone = repairs.iter().max().map_or(0.0, Duration::as_secs_f64);
        write!(
            f,
            "{} changes of others undone, each within {undone:.1} s, 1 upgrade, {writes} writes, {} broken",
            repairs.len(),
            broken.len()
        )
    }
}

/// Lives through a day, and holds what it comes to against a day on which nothing happened.
pub(crate) fn live(seed: u64, length: Duration) -> Report {
    LazyLock::force(&SMALL);
    let undisturbed = in_paused_time(Day::lived(Plan::calm(), Random::new(seed)));
    assert!(undisturbed.broken.is_empty(), "on a calm day: {:#?}", undisturbed.broken);
    let mut random = Random::new(seed);
    let plan = Plan::rough(length, &mut random);
    let mut report = in_paused_time(Day::lived(plan, random));
    let differences = state::differences(&report.state, &undisturbed.state);
    report.broken.extend(differences.into_iter().map(|how| format!("the state is that of a calm day: {how}")));
    let longest = report.figures.longest;
    if longest > UNRENEWED {
        report.broken.push(format!("the Lease is renewed all the time: not for {longest:?} with nothing in the way"));
    }
    report
}

struct Day {
    plan: Plan,
    began: Instant,
    clock: SimulatedClock,
    door: Door,
    server: Arc<Server>,
    sources: Arc<Published>,
    audit: Arc<Audit>,
    trace: Arc<Trace>,
    repairs: Vec<Duration>,
}

/// What is to be done at a time.
enum Act {
    Drift,
    Publish,
    /// The window is about to open: nothing has moved before.
    Before,
    /// It is closed again: everything has.
    After,
    Replace,
}

impl Day {
    async fn lived(plan: Plan, mut random: Random) -> Report {
        let clock = SimulatedClock::start();
        let options = Options { history: 300, seed: random.number(), clock: Arc::new(clock), ..Options::default() };
        let plane = Embedded::new(&options);
        let (door, trace) = (Door::to(&plane), Trace::new(clock));
        let audit = Audit::new(door.clone(), Arc::clone(&trace));
        let server = Server::new(plane, plan.schedule.clone(), Arc::clone(&audit), Arc::clone(&trace), random.fork());
        let _programs = operator::start(&door, Pace::drawn(&mut random));
        let sources = Published::new();
        let mut day = Self { plan, began: Instant::now(), clock, door, server, sources, audit, trace, repairs: Vec::new() };
        day.furnish().await;
        let pods = Pods::start(2, &day, random.fork());
        day.pass(&pods, &mut random).await;
        pods.end().await;
        let figures = day.server.figures(std::mem::take);
        let restarts = day.plan.schedule.away.0.len();
        let state = day.state().await;
        Report { figures, repairs: day.repairs, restarts, broken: day.trace.all_broken(), state }
    }

    /// What an operator puts there: the kinds, the namespace, and the Platform.
    async fn furnish(&self) {
        for crd in crds::of_the_chart() {
            self.door.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd.object().as_value()).await;
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "plinth-system"}});
        self.door.create("/api/v1/namespaces", &namespace).await;
        let platform = json!({
            "apiVersion": "plinth.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "default"},
            "spec": {
                "source": {"channel": COMPONENT, "version": "~1.0", "repositories": ["registry.test"]},
                "upgrade": {"policy": "Patch", "window": self.window()},
            },
        });
        self.door.create("/apis/plinth.dev/v1alpha1/platforms", &platform).await;
    }

    fn window(&self) -> String {
        let at = |time: Duration| (self.clock.now() + SignedDuration::try_from(time).unwrap()).strftime("%H:%M").to_string();
        format!("{}-{}", at(self.plan.opens), at(self.plan.opens + WINDOW.min(self.plan.length / 4)))
    }

    fn acts(&self) -> Vec<(Duration, Act)> {
        let Plan { drifts, published, opens, replaced, length, .. } = &self.plan;
        let minute = Duration::from_mins(1);
        let mut acts: Vec<(Duration, Act)> = drifts.iter().map(|at| (*at, Act::Drift)).collect();
        acts.extend(replaced.iter().map(|at| (*at, Act::Replace)));
        acts.extend([
            (*published, Act::Publish),
            (opens.saturating_sub(minute), Act::Before),
            (*opens + *length / 4, Act::After),
        ]);
        acts.sort_by_key(|(at, _)| *at);
        acts
    }

    async fn pass(&mut self, pods: &Pods, random: &mut Random) {
        self.is_at(FIRST, "in the beginning").await;
        for (at, act) in self.acts() {
            sleep_until(self.began + at).await;
            match act {
                Act::Drift => self.drift(random).await,
                Act::Publish => self.sources.publish(),
                Act::Before => self.is_at(FIRST, "before the window opens").await,
                Act::After => self.is_at(SECOND, "after the window").await,
                Act::Replace => pods.replace(&self.server.holder().await),
            }
        }
        sleep_until(self.began + self.plan.length).await;
        self.is_at(SECOND, "in the end").await;
    }

    /// Waits until the Platform is ready, and looks at which version.
    async fn is_at(&self, version: &str, when: &str) {
        let asked = Instant::now();
        let mut platform = Object::default();
        while asked.elapsed() < PATIENCE {
            platform = self.door.get(PLATFORM).await.unwrap_or_default();
            let conditions = platform.status()["conditions"].as_array().cloned().unwrap_or_default();
            if conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True") {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
        let release = &platform.status()["release"]["version"];
        if asked.elapsed() >= PATIENCE || release != version {
            self.trace.broken("the platform is ready", &format!("{when}, at {version}: {}", platform.status()));
        }
    }

    /// Somebody changes something, and it is as it was again.
    async fn drift(&mut self, random: &mut Random) {
        let drift = Drift::drawn(random);
        let Some(was) = drift.look(&self.door).await else {
            return self.trace.broken("drift is repaired", &format!("{drift} is not there"));
        };
        self.audit.moved(drift.path);
        self.trace.say(&format!("somebody changes {drift}"));
        let changed = Instant::now();
        drift.happen(&self.door).await;
        while drift.look(&self.door).await.as_ref() != Some(&was) {
            if changed.elapsed() >= PATIENCE {
                return self.trace.broken("drift is repaired", &format!("{drift} is not as it was after {PATIENCE:?}"));
            }
            sleep(Duration::from_millis(500)).await;
        }
        self.repairs.push(changed.elapsed());
    }

    /// Everything but what a controller keeps for itself.
    async fn state(&self) -> State {
        let mut state = state::normal(&state::raw(&self.door, SMALL.collections).await);
        state.retain(|path, _| !path.contains("/namespaces/plinth-system/"));
        state
    }
}
