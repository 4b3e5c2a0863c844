//! One life of a platform: it is brought up, changed and taken down, in the weather and with the kills that a seed draws.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use plinth_cluster::embedded::{Acting, AtWork, Embedded, Options};
use plinth_controller::Handle;
use plinth_run::Outcome;
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    audit::Deletions,
    clock::SimulatedClock,
    operator::{self, Pace},
    planted::Plant,
    platform::{Platform, SAMPLE, SMALL, Values, documents},
    process::{Process, World},
    random::Random,
    state::{self, Raw, State},
    weather::Climate,
};

/// Runs until one is well, in weather that gets better; far more than it ever takes.
const ATTEMPTS: u64 = 12;
/// How often a platform that is up is changed. Thousands of short lives find more in the same time than hundreds of long ones: it
/// is at the beginning of a life that seeds differ most.
const CHANGES: [u64; 5] = [0, 0, 0, 1, 2];
/// Longest that anything may take, in simulated time.
const PATIENCE: Duration = Duration::from_hours(2);
/// How long the loop may need after the instance says that it is ready, to remove what nobody wants any more.
const SETTLES: u32 = 120;

/// How a life went.
pub(crate) struct Report {
    pub(crate) digest: u64,
    pub(crate) broken: Vec<String>,
    pub(crate) writes: usize,
}

/// Every so many seeds it is the sample distribution that is lived, which takes as long as ten others.
const SAMPLED: u64 = 100;

/// The platform that a seed is about.
fn platform(seed: u64) -> &'static Platform {
    if seed % SAMPLED == SAMPLED / 2 { &SAMPLE } else { &SMALL }
}

/// Lives through what a seed draws.
pub(crate) fn live(seed: u64, plant: Plant) -> Report {
    let platform = platform(seed);
    in_paused_time(async {
        let mut random = Random::new(seed);
        let mut life = Life::begin(platform, &mut random, plant).await;
        if timeout(PATIENCE, life.all(&mut random)).await.is_err() {
            life.world.trace.broken("the run ends", "it did not");
        }
        let trace = &life.world.trace;
        Report { digest: trace.digest(), broken: trace.all_broken(), writes: life.world.audit.writes() }
    })
}

/// What the platform is with these values where nothing goes wrong.
fn undisturbed(values: &Values) -> Arc<State> {
    static KNOWN: Mutex<BTreeMap<Values, Arc<State>>> = Mutex::new(BTreeMap::new());
    if let Some(known) = KNOWN.lock().unwrap().get(values) {
        return Arc::clone(known);
    }
    // In a thread of its own, because one runtime cannot wait inside another.
    let state = std::thread::scope(|scope| scope.spawn(|| in_paused_time(calm(values))).join().unwrap());
    let state = Arc::new(state);
    KNOWN.lock().unwrap().insert(values.clone(), Arc::clone(&state));
    state
}

async fn calm(values: &Values) -> State {
    let mut random = Random::new(0);
    let life = Life::begin(values.platform(), &mut random, Plant::Nothing).await;
    let process = life.world.process(Climate::default(), random.fork(), None);
    let outcome = process.up(values).await;
    assert_eq!(outcome, Some(Outcome::Done), "{}", process.message());
    life.state().await
}

/// Runs a simulation; time jumps to what is due next.
pub(crate) fn in_paused_time<T>(simulation: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(simulation)
}

/// Whatever runs on the cluster; it ends when it is dropped.
enum Programs {
    /// The operators of the small platform.
    Own { _tasks: JoinSet<()> },
    /// A distribution's scenario.
    Scenario { _at_work: AtWork },
}

struct Life {
    world: World,
    /// The programs of the cluster.
    _programs: Programs,
    /// What was there before, which is to stay as it is.
    foreign: Raw,
    /// The operator of the platform never brings its kind.
    is_stuck: bool,
}

impl Life {
    async fn begin(platform: &'static Platform, random: &mut Random, plant: Plant) -> Self {
        let clock = SimulatedClock::start();
        // A short history makes real `410 Gone` of watches that lag behind.
        let history = random.pick(&[20, 200, 10_000]);
        let options = Options { history, seed: random.number(), clock: Arc::new(clock), ..Options::default() };
        let world = World::new(Embedded::new(&options), clock, platform, plant);
        furnish(&world).await;
        let (pace, is_stuck) = (Pace::drawn(random), random.chance(40) && platform.scenario.is_none());
        let pace = if is_stuck { pace.without_kind() } else { pace };
        let programs = match &platform.scenario {
            Some(scenario) => {
                let acting = Acting { scenario: scenario.clone(), pace: random.pick(&[0.01, 0.3, 1.0]), ..Acting::default() };
                Programs::Scenario { _at_work: world.plane.act(acting) }
            }
            None => Programs::Own { _tasks: operator::start(&world.door, pace) },
        };
        // What the cluster's own programs make in every cluster is there.
        sleep(Duration::from_millis(10)).await;
        let foreign = state::raw(&world.door, platform.collections).await;
        Self { world, _programs: programs, foreign, is_stuck }
    }

    async fn all(&mut self, random: &mut Random) {
        let platform = self.world.platform;
        let mut values = platform.values(random);
        if self.is_stuck {
            self.waits(&values, random).await;
        }
        self.up(&values, Deletions::None, random).await;
        // The sample has nothing that a user would change: it is brought up once more.
        let by_user = random.chance(500) && platform.scenario.is_none();
        for _ in 0..random.pick(&CHANGES) {
            let next = platform.values(random);
            if by_user {
                self.edit(&values, &next, random).await;
            } else {
                self.up(&next, deletions(&values, &next), random).await;
            }
            values = next;
        }
        if random.chance(400) {
            self.down(&values, random).await;
        }
    }

    /// A platform whose operator never brings the kind ends with what it waits for, and without harm.
    async fn waits(&self, values: &Values, random: &mut Random) {
        let process = self.process(Climate::drawn(random), random);
        let outcome = process.up(values).await;
        let message = process.message();
        self.world.trace.say(&format!("ended as {outcome:?}: {message}"));
        if outcome != Some(Outcome::Deadline) || !message.contains("Bucket.storage.test/v1") {
            self.broken("the run says what it waits for", &format!("{outcome:?}: {message}"));
        }
        operator::register(&self.world.door).await;
    }

    async fn up(&self, values: &Values, deletions: Deletions, random: &mut Random) {
        self.world.audit.allow(deletions);
        self.until_done(random, async |process| process.up(values).await).await;
        self.is_as(&undisturbed(values), "after up").await;
        self.world.audit.allow(Deletions::None);
    }

    async fn down(&self, values: &Values, random: &mut Random) {
        self.world.audit.allow(Deletions::All);
        self.until_done(random, async |process| process.down(values).await).await;
        let mut wanted = state::normal(&self.foreign);
        for brought in self.world.platform.brought {
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{brought}");
            let crd = undisturbed(values)[&path].clone();
            wanted.insert(path, crd);
        }
        self.is_as(&wanted, "after down").await;
    }

    /// Runs it, and again where it was killed or gave up, until it is done.
    async fn until_done(&self, random: &mut Random, run: impl AsyncFn(&Process<'_>) -> Option<Outcome>) {
        let kills = random.pick(&[0, 0, 1, 1, 2, 4]);
        for attempt in 0..ATTEMPTS {
            let is_last = attempt + 1 == ATTEMPTS;
            let mut climate = if is_last { Climate::default() } else { Climate::drawn(random) };
            let mut torn = None;
            let mut dies_after = None;
            if attempt < kills {
                match random.between(0, 4) {
                    0 => torn = Some(random.between(0, 60)),
                    1 => dies_after = Some(random.millis(0, 20_000)),
                    way => climate.kill = Some((random.between(0, 250), way == 2)),
                }
            }
            let process = self.world.process(climate, random.fork(), torn);
            if let Some(time) = dies_after {
                process.dies_after(time);
            }
            let outcome = run(&process).await;
            self.world.trace.say(&format!("ended as {outcome:?}: {}", process.message()));
            match outcome {
                Some(Outcome::Done) => return,
                Some(_) if process.message().is_empty() => self.broken("the run ends", &format!("{outcome:?} without a word")),
                Some(_) if is_last => self.broken("the run ends", &format!("{outcome:?} in good weather: {}", process.message())),
                _ => {}
            }
            // The dead process's tasks end, and the weather gets better.
            drop(process);
            sleep(random.millis(0, 10_000)).await;
        }
    }

    /// A user changes the instance while the loop keeps it.
    async fn edit(&self, before: &Values, after: &Values, random: &mut Random) {
        self.world.audit.allow(deletions(before, after));
        let wanted = undisturbed(after);
        let restarts = random.pick(&[0, 0, 1, 2]);
        for attempt in 0..=restarts {
            let process = self.process(Climate::drawn(random), random);
            if attempt < restarts {
                process.dies_after(random.millis(0, 15_000));
            }
            let begun = random.millis(0, 3_000);
            process
                .keep(async |handle| {
                    sleep(begun).await;
                    if attempt == 0 {
                        self.world.trace.say(&format!("a user wants {}", Value::Object(after.spec())));
                        self.world.door.merge(self.world.platform.instance, &json!({"spec": after.spec()})).await;
                    }
                    self.settles(handle, &wanted).await;
                })
                .await;
        }
        // Killed before the user's change: the change is made all the same.
        let process = self.process(Climate::default(), random);
        process
            .keep(async |handle| {
                self.world.door.merge(self.world.platform.instance, &json!({"spec": after.spec()})).await;
                self.settles(handle, &wanted).await;
            })
            .await;
        self.is_as(&wanted, "after an edit").await;
        self.world.audit.allow(Deletions::None);
    }

    /// Waits until the loop has nothing left to do and everything is as wanted.
    async fn settles(&self, handle: &Handle, wanted: &State) {
        let mut seen = Raw::new();
        for _ in 0..SETTLES {
            sleep(Duration::from_secs(1)).await;
            if !handle.is_settled() || !self.is_ready().await {
                continue;
            }
            // What was not as wanted is looked at again once something has changed.
            let before = std::mem::replace(&mut seen, self.raw().await);
            if seen != before && state::normal(&seen) == *wanted {
                return;
            }
        }
    }

    async fn is_ready(&self) -> bool {
        let Some(instance) = self.world.door.get(self.world.platform.instance).await else { return false };
        let conditions = instance.status()["conditions"].as_array();
        conditions.into_iter().flatten().any(|condition| {
            condition["type"] == "Ready"
                && condition["status"] == "True"
                && condition["observedGeneration"] == instance.generation()
        })
    }

    fn process(&self, climate: Climate, random: &mut Random) -> Process<'_> {
        self.world.process(climate, random.fork(), None)
    }

    async fn raw(&self) -> Raw {
        state::raw(&self.world.door, self.world.platform.collections).await
    }

    async fn state(&self) -> State {
        state::normal(&self.raw().await)
    }

    /// The final state is that of an undisturbed run, and what is foreign was not touched.
    async fn is_as(&self, wanted: &State, when: &str) {
        let now = self.raw().await;
        for (path, object) in &self.foreign {
            if now.get(path) != Some(object) {
                self.broken("foreign objects are not touched", &format!("{when}: {path}"));
            }
        }
        for difference in state::differences(&state::normal(&now), wanted) {
            self.broken("the state is that of an undisturbed run", &format!("{when}: {difference}"));
        }
    }

    fn broken(&self, promise: &str, how: &str) {
        self.world.trace.broken(promise, how);
    }
}

/// What may go when the values change: what the one has and the other has not, once the rest of its owner is there.
fn deletions(before: &Values, after: &Values) -> Deletions {
    let (before, after) = (undisturbed(before), undisturbed(after));
    let going: BTreeSet<String> = before.keys().filter(|path| !after.contains_key(*path)).cloned().collect();
    let owner = |object: &Value| object["metadata"]["labels"]["kro.run/instance-id"].clone();
    let owners: Vec<Value> = going.iter().map(|path| owner(&before[path])).collect();
    let staying = after.iter().filter(|(_, object)| owners.contains(&owner(object))).map(|(path, _)| path.clone()).collect();
    Deletions::Prune { going, staying }
}

/// Puts there what belongs to others.
async fn furnish(world: &World) {
    for object in documents(include_str!("platform/foreign.yaml")) {
        // Where a scenario is played, Deployments of all kinds are run, and so changed.
        if object["kind"] == "Deployment" && world.platform.scenario.is_some() {
            continue;
        }
        let (root, plural) = match object["kind"].as_str() {
            Some("ConfigMap") => ("/api/v1", "configmaps"),
            _ => ("/apis/apps/v1", "deployments"),
        };
        world.door.create(&format!("{root}/namespaces/default/{plural}"), &object).await;
    }
    // Its controller, where it is there, has seen it.
    let status = json!({"status": {"observedGeneration": 1}});
    world.door.merge("/apis/apps/v1/namespaces/default/deployments/legacy/status", &status).await;
}
