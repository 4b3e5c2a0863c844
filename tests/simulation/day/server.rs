//! The API server of a long day, as its clients reach it: it restarts, its etcd is slow for spells, and it ends watches with 410. Every
//! write is held against the Lease: who does not hold it, does not write.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use plinth_api::{ClusterKey, Object};
use plinth_cluster::{
    Cluster,
    embedded::{Answered, Embedded, Service, api::rbac::User},
};
use plinth_controller::journal;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};
use tower::ServiceExt;

use crate::{
    audit::{Asked, Audit},
    door::Door,
    random::Random,
    trace::Trace,
    weather::{Answer, Last, Lost, Spells, cut, lossless, refusal},
};

/// Where the Lease of every writer is.
pub(super) const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/plinth-system/leases/plinth";
/// Of a thousand watches, how many end with 410 by themselves; others lag behind the history.
const EXPIRES: u64 = 100;
/// Of a thousand requests while etcd is slow, how many it does not answer in its time.
const TIMES_OUT: u64 = 20;
/// How long it takes until the API server gives up on etcd.
const ETCD_PATIENCE: Duration = Duration::from_secs(7);

/// What happens to the API server, and when.
#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    /// It restarts: nobody is answered.
    pub(super) away: Spells,
    /// Its etcd is slow.
    pub(super) slow: Spells,
    /// Whether it ends watches.
    pub(super) expires: bool,
}

/// What a day came to.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) renewals: u64,
    /// Who held the Lease, one after the other.
    pub(super) leaders: Vec<String>,
    pub(super) expired: u64,
    pub(super) slow: u64,
    pub(super) timed_out: u64,
    /// Without those of the Lease.
    pub(super) writes: u64,
    /// The longest time from one renewal to the next, with the server there and its etcd as fast as ever.
    pub(super) longest: Duration,
    /// The same, whatever the server does.
    pub(super) longest_of_all: Duration,
    renewed: Option<Instant>,
}

/// The API server, for all of its clients.
pub(super) struct Server {
    plane: Embedded,
    door: Door,
    /// Past all faults.
    truth: Arc<Cluster>,
    began: Instant,
    schedule: Schedule,
    audit: Arc<Audit>,
    trace: Arc<Trace>,
    figures: Mutex<Figures>,
    random: Mutex<Random>,
}

impl Server {
    pub(super) fn new(plane: Embedded, schedule: Schedule, audit: Arc<Audit>, trace: Arc<Trace>, random: Random) -> Arc<Self> {
        let (door, truth) = (Door::to(&plane), plane.cluster(&ClusterKey::host()));
        let (figures, random) = (Mutex::default(), Mutex::new(random));
        Arc::new(Self { plane, door, truth, began: Instant::now(), schedule, audit, trace, figures, random })
    }

    /// As a process reaches it that calls itself so.
    pub(super) fn client(self: &Arc<Self>, who: &str) -> Client {
        Client(Arc::new(Reach { server: Arc::clone(self), inner: self.plane.service(User::admin()), who: who.to_owned() }))
    }

    pub(super) fn figures<T>(&self, look: impl FnOnce(&mut Figures) -> T) -> T {
        look(&mut self.figures.lock().unwrap())
    }

    fn is_away(&self) -> bool {
        self.schedule.away.hold(self.began, Duration::ZERO)
    }

    /// How long etcd takes for a request, and whether it answers.
    fn etcd(&self) -> (Duration, bool) {
        let mut random = self.random.lock().unwrap();
        let (fast, slow, times_out) = (random.millis(1, 20), random.millis(300, 4_000), random.chance(TIMES_OUT));
        if !self.schedule.slow.hold(self.began, Duration::ZERO) {
            return (fast, true);
        }
        self.figures(|figures| {
            figures.slow += 1;
            figures.timed_out += u64::from(times_out);
        });
        if times_out { (ETCD_PATIENCE, false) } else { (slow, true) }
    }

    /// The end of a watch: with 410, or when the server goes away.
    fn ending(&self) -> (Option<Instant>, Last) {
        let mut random = self.random.lock().unwrap();
        let (expires, after) = (random.chance(EXPIRES), random.millis(0, 240_000));
        let expired = (self.schedule.expires && expires).then(|| Instant::now() + after);
        match (expired, self.schedule.away.next(self.began)) {
            (Some(expired), away) if away.is_none_or(|away| expired < away) => {
                self.figures(|figures| figures.expired += 1);
                (Some(expired), Last::Expired)
            }
            (_, away) => (away, Last::Broken),
        }
    }

    /// Nobody writes but who holds the Lease, and the Lease itself is written by who takes it.
    async fn has_turn(&self, asked: &Asked, who: &str) {
        if !asked.is_write() || asked.is_of(LEASE) {
            return;
        }
        let holder = self.holder().await;
        if holder != who {
            self.trace.broken("one writer at a time", &format!("{asked} of {who} while {holder:?} holds the Lease"));
        }
    }

    /// Who holds the Lease.
    pub(super) async fn holder(&self) -> String {
        let lease = self.door.get(LEASE).await.unwrap_or_default();
        lease.spec()["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    /// Counts, and lets the audit begin anew with each leader: only what the journal in the cluster proves is known to it.
    async fn saw(&self, asked: &Asked, code: u16, answer: Option<&Object>, who: &str) {
        if code == 410 && asked.is_watch() {
            self.figures(|figures| figures.expired += 1);
        }
        if !asked.is_write() || code >= 300 {
            return;
        }
        if !asked.is_of(LEASE) {
            self.trace.say(&format!("{who} {asked} {code}"));
            return self.figures(|figures| figures.writes += 1);
        }
        let holds = answer.is_some_and(|lease| lease.spec()["holderIdentity"] == who);
        if holds && self.renewed(who) {
            self.trace.say(&format!("{who} leads"));
            let known = journal::read(&*self.truth).await.unwrap().unwrap_or_default();
            self.audit.begin(&known);
        }
    }

    /// Whether it is another one who holds the Lease now.
    fn renewed(&self, who: &str) -> bool {
        let disturbed =
            [&self.schedule.away, &self.schedule.slow].iter().any(|spells| spells.hold(self.began, Duration::from_mins(1)));
        self.figures(|figures| {
            let passed = figures.renewed.replace(Instant::now()).map_or(Duration::ZERO, |before| before.elapsed());
            figures.longest_of_all = figures.longest_of_all.max(passed);
            if !disturbed {
                figures.longest = figures.longest.max(passed);
            }
            figures.renewals += 1;
            let is_new = figures.leaders.last().is_none_or(|last| last != who);
            if is_new {
                figures.leaders.push(who.to_owned());
            }
            is_new
        })
    }
}

impl Figures {
    /// How many processes led.
    pub(super) fn processes(&self) -> usize {
        self.leaders.iter().collect::<BTreeSet<_>>().len()
    }
}

/// The service that one process's client talks to.
#[derive(Clone)]
pub(super) struct Client(Arc<Reach>);

struct Reach {
    server: Arc<Server>,
    inner: Service,
    who: String,
}

impl tower::Service<Request<Body>> for Client {
    type Response = Response<Answer>;
    type Error = Lost;
    type Future = BoxFuture<'static, Result<Self::Response, Lost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    /// What was sent is carried out, also where the client waits no longer.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (reach, (answer, answered)) = (Arc::clone(&self.0), oneshot::channel());
        tokio::spawn(async move {
            let carried = reach.carry_out(request).await;
            let (asked, response) = match carried {
                Ok((asked, response)) => (Some(asked), Ok(response)),
                Err(lost) => (None, Err(lost)),
            };
            if let (Err(_), Some(asked)) = (answer.send(response), asked) {
                reach.server.audit.undelivered(&asked);
            }
        });
        Box::pin(async { answered.await.unwrap_or_else(|_| Err("connection reset".into())) })
    }
}

impl Reach {
    async fn carry_out(&self, request: Request<Body>) -> Result<(Asked, Response<Answer>), Lost> {
        let server = &self.server;
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let asked = Asked::new(parts.method.as_str(), &parts.uri, body.clone());
        if server.is_away() {
            return Err("connection refused".into());
        }
        let (takes, answers) = server.etcd();
        sleep(takes).await;
        if server.is_away() {
            return Err("connection reset".into());
        }
        if !answers {
            return Ok((asked, refusal(504)));
        }
        server.has_turn(&asked, &self.who).await;
        server.audit.before(&asked).await;
        let response = self.inner.clone().oneshot(Request::from_parts(parts, Full::<Bytes>::new(body))).await?;
        let code = response.status().as_u16();
        let answer = response.extensions().get().filter(|_| asked.is_write()).and_then(Answered::object);
        server.saw(&asked, code, answer.as_ref(), &self.who).await;
        if asked.is_watch() {
            let (at, last) = server.ending();
            return Ok((asked, cut(response, at, last)));
        }
        server.audit.after(&asked, code, answer, true);
        Ok((asked, lossless(response)))
    }
}
