//! The pods of the controller: each runs one process after the other, as a kubelet has it.

use std::sync::{Arc, Mutex};

use plinth_api::ClusterKey;
use plinth_cli::{in_cluster::Replica, wire::Host};
use plinth_cluster::Cluster;
use plinth_controller::Options;
use plinth_manager::{Health, Metrics};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{Day, server::Server};
use crate::{audit::Audit, clock::SimulatedClock, random::Random, trace::Trace};

/// All of them.
pub(super) struct Pods {
    tasks: JoinSet<()>,
    over: CancellationToken,
    /// What ends the process that runs in each of them.
    running: Arc<Vec<Mutex<CancellationToken>>>,
}

impl Pods {
    pub(super) fn start(count: usize, day: &Day, mut random: Random) -> Self {
        let over = CancellationToken::new();
        let running: Arc<Vec<_>> = Arc::new((0..count).map(|_| Mutex::new(over.child_token())).collect());
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let pod = Pod {
                number,
                server: Arc::clone(&day.server),
                clock: day.clock,
                options: Options {
                    sources: Arc::clone(&day.sources) as _,
                    delivery: false,
                    clock: Arc::new(day.clock),
                    ..Options::default()
                },
                audit: Arc::clone(&day.audit),
                trace: Arc::clone(&day.trace),
            };
            tasks.spawn(pod.run(over.clone(), Arc::clone(&running), random.fork()));
        }
        Self { tasks, over, running }
    }

    /// The pod of this process gets a signal to end, and another one takes its place.
    pub(super) fn replace(&self, holder: &str) {
        for (number, stop) in self.running.iter().enumerate() {
            if holder.starts_with(&format!("{}/", name(number))) {
                stop.lock().unwrap().cancel();
            }
        }
    }

    pub(super) async fn end(mut self) {
        self.over.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

fn name(number: usize) -> String {
    format!("plinth-{number}")
}

struct Pod {
    number: usize,
    server: Arc<Server>,
    clock: SimulatedClock,
    options: Options,
    audit: Arc<Audit>,
    trace: Arc<Trace>,
}

impl Pod {
    async fn run(self, over: CancellationToken, running: Arc<Vec<Mutex<CancellationToken>>>, mut random: Random) {
        while !over.is_cancelled() {
            let stop = over.child_token();
            running[self.number].lock().unwrap().clone_from(&stop);
            let replica = self.replica();
            let ended = replica.run(&stop).await;
            self.trace.say(&format!("{} ended: {ended:?}", replica.identity));
            sleep(random.millis(500, 10_000)).await;
        }
    }

    fn replica(&self) -> Replica {
        let identity = format!("{}/controller-{}", name(self.number), self.clock.elapsed().as_millis());
        let client = kube::Client::new(self.server.client(&identity), "default");
        let host = Host(Cluster::with_client(ClusterKey::host(), client), "simulated".into());
        Replica {
            host,
            identity,
            platform: "default".into(),
            mirror: None,
            health: Health::default(),
            metrics: Arc::new(Metrics::default()),
            sinks: vec![Arc::clone(&self.trace) as _, Arc::clone(&self.audit) as _],
            options: self.options.clone(),
        }
    }
}
