//! What lies between a process and the API server: a tower service that loses, delays, refuses and cuts, as the seed says, and
//! that can kill the process at any request, before or after its effect.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use kube::client::Body;
use plinth_api::Object;
use plinth_cluster::embedded::{Answered, Line, Service, Watched};
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::{
    audit::{Asked, Audit},
    random::Random,
    trace::Trace,
};

/// Errors of a connection.
pub(crate) type Lost = Box<dyn std::error::Error + Send + Sync>;
/// What a client reads.
pub(crate) type Answer = UnsyncBoxBody<Bytes, Lost>;

/// Parts of a time, from and to, since its beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spells(pub(crate) Vec<(Duration, Duration)>);

impl Spells {
    /// Whether it is one of them now, or was one until so long ago.
    pub(crate) fn hold(&self, began: Instant, after: Duration) -> bool {
        let now = began.elapsed();
        self.0.iter().any(|(from, to)| (*from..*to + after).contains(&now))
    }

    /// When the next one begins.
    pub(crate) fn next(&self, began: Instant) -> Option<Instant> {
        let now = began.elapsed();
        self.0.iter().map(|(from, _)| *from).filter(|from| *from > now).min().map(|from| began + from)
    }
}

/// How often, in a thousand requests, and how long.
#[derive(Clone, Debug, Default)]
pub(crate) struct Climate {
    /// The connection breaks before the request has an effect.
    pub(crate) lost: u64,
    /// The connection breaks after it.
    pub(crate) unanswered: u64,
    /// 409 for writes.
    pub(crate) conflict: u64,
    /// 429 and 503 with Retry-After, and 500.
    pub(crate) busy: u64,
    /// An answer that takes seconds, some of them longer than clients wait.
    pub(crate) slow: u64,
    /// Watches that end early, with or without a word.
    pub(crate) cut: u64,
    /// When the API server is away, from and to, since the process began.
    pub(crate) away: Spells,
    /// From when on all is well.
    pub(crate) until: Duration,
    /// The request at which the process dies, and whether the request still has its effect.
    pub(crate) kill: Option<(u64, bool)>,
}

impl Climate {
    /// A climate from nearly calm to rough.
    pub(crate) fn drawn(random: &mut Random) -> Self {
        let most = random.pick(&[0, 5, 20, 60, 150]);
        let mut up_to = |most: u64| if most == 0 { 0 } else { random.between(0, most) };
        let (lost, unanswered, conflict) = (up_to(most), up_to(most), up_to(most));
        let (busy, slow, cut) = (up_to(most), up_to(most / 4), up_to(most * 4));
        let mut away = Spells::default();
        for _ in 0..random.between(0, 3) {
            let from = random.millis(0, 30_000);
            away.0.push((from, from + random.millis(500, 20_000)));
        }
        let until = random.millis(5_000, 90_000);
        Self { lost, unanswered, conflict, busy, slow, cut, away, until, kill: None }
    }
}

/// The service that a process's client talks to.
#[derive(Clone)]
pub(crate) struct Weather(Arc<Shared>);

struct Shared {
    inner: Service,
    climate: Climate,
    began: Instant,
    drawn: Mutex<Drawn>,
    /// Cancelled when the process dies: nothing that it still asks has any effect.
    death: CancellationToken,
    audit: Arc<Audit>,
    trace: Arc<Trace>,
}

struct Drawn {
    random: Random,
    requests: u64,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Well,
    Lost,
    Unanswered,
    Refused(u16),
    KilledBefore,
    KilledAfter,
}

/// What happens to one watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Never,
    /// The stream ends in good order.
    Closed(Duration),
    /// The connection breaks.
    Broken(Duration),
    /// The version is too old.
    Expired(Duration),
}

impl Weather {
    pub(crate) fn new(
        inner: Service,
        climate: Climate,
        random: Random,
        death: CancellationToken,
        audit: Arc<Audit>,
        trace: Arc<Trace>,
    ) -> Self {
        let drawn = Mutex::new(Drawn { random, requests: 0 });
        Self(Arc::new(Shared { inner, climate, began: Instant::now(), drawn, death, audit, trace }))
    }
}

impl tower::Service<Request<Body>> for Weather {
    type Response = Response<Answer>;
    type Error = Lost;
    type Future = BoxFuture<'static, Result<Self::Response, Lost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(Arc::clone(&self.0).answer(request))
    }
}

impl Shared {
    async fn answer(self: Arc<Self>, request: Request<Body>) -> Result<Response<Answer>, Lost> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let asked = Asked::new(parts.method.as_str(), &parts.uri, body.clone());
        let (fate, before, after, ending) = self.draw(&asked);
        sleep(before).await;
        if self.is_away() || fate == Fate::Lost {
            self.say(&asked, "lost");
            return Err("connection refused".into());
        }
        if let Fate::Refused(code) = fate {
            self.say(&asked, &format!("refused with {code}"));
            return Ok(refusal(code));
        }
        self.alive(fate == Fate::KilledBefore, &asked).await;
        self.audit.before(&asked).await;
        let response = self.inner.clone().oneshot(Request::from_parts(parts, Full::new(body))).await?;
        if asked.is_watch() {
            self.say(&asked, &format!("{} {ending:?}", response.status().as_u16()));
            return Ok(self.watch(response, ending));
        }
        let is_delivered = fate != Fate::Unanswered && fate != Fate::KilledAfter;
        let code = response.status().as_u16();
        self.say(&asked, &format!("{code}{}", if is_delivered { "" } else { " unanswered" }));
        self.audit.after(&asked, code, response.extensions().get().and_then(Answered::object), is_delivered);
        self.alive(fate == Fate::KilledAfter, &asked).await;
        sleep(after).await;
        if fate == Fate::Unanswered || self.is_away() {
            self.audit.undelivered(&asked);
            return Err("connection reset".into());
        }
        Ok(lossless(response))
    }

    fn draw(&self, asked: &Asked) -> (Fate, Duration, Duration, Ending) {
        let mut drawn = self.drawn.lock().unwrap();
        drawn.requests += 1;
        let number = drawn.requests;
        let random = &mut drawn.random;
        let (mut before, after) = (random.millis(0, 20), random.millis(0, 20));
        let (lost, unanswered, conflict) = (random.number() % 1000, random.number() % 1000, random.number() % 1000);
        let (busy, slow, cut) = (random.number() % 1000, random.number() % 1000, random.number() % 1000);
        let (code, long) = (random.pick(&[429, 503, 500, 504]), random.millis(500, 40_000));
        let ends = random.millis(0, 20_000);
        let ending = random.pick(&[Ending::Closed(ends), Ending::Broken(ends), Ending::Expired(ends)]);
        let climate = &self.climate;
        if let Some((at, has_effect)) = climate.kill.filter(|(at, _)| *at <= number) {
            let fate = if at < number || !has_effect { Fate::KilledBefore } else { Fate::KilledAfter };
            return (fate, before, after, Ending::Never);
        }
        if self.began.elapsed() >= climate.until {
            return (Fate::Well, before, after, Ending::Never);
        }
        if slow < climate.slow {
            before += long;
        }
        let fate = match () {
            () if lost < climate.lost => Fate::Lost,
            () if unanswered < climate.unanswered => Fate::Unanswered,
            () if conflict < climate.conflict && asked.is_write() => Fate::Refused(409),
            () if busy < climate.busy => Fate::Refused(code),
            () => Fate::Well,
        };
        (fate, before, after, if cut < climate.cut { ending } else { Ending::Never })
    }

    fn is_away(&self) -> bool {
        self.climate.away.hold(self.began, Duration::ZERO)
    }

    /// Never comes back in a dead process.
    async fn alive(&self, dies: bool, asked: &Asked) {
        if dies && !self.death.is_cancelled() {
            self.say(asked, "killed");
            self.death.cancel();
        }
        if self.death.is_cancelled() {
            std::future::pending::<()>().await;
        }
    }

    fn say(&self, asked: &Asked, what: &str) {
        if !self.death.is_cancelled() {
            self.trace.say(&format!("{asked} {what}"));
        }
    }

    /// A watch that ends as the seed says, and breaks when the API server goes away.
    fn watch(&self, response: Response<UnsyncBoxBody<Bytes, Infallible>>, ending: Ending) -> Response<Answer> {
        let ends = match ending {
            Ending::Never => None,
            Ending::Closed(after) | Ending::Broken(after) | Ending::Expired(after) => Some(Instant::now() + after),
        };
        let broken = self.climate.away.next(self.began).filter(|away| ends.is_none_or(|ends| *away < ends));
        let last = match ending {
            _ if broken.is_some() => Last::Broken,
            Ending::Never | Ending::Closed(_) => Last::Nothing,
            Ending::Broken(_) => Last::Broken,
            Ending::Expired(_) => Last::Expired,
        };
        cut(response, broken.or(ends), last)
    }
}

/// The last word of a watch that is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// It ends in good order.
    Nothing,
    /// The connection breaks.
    Broken,
    /// The version is too old.
    Expired,
}

/// A watch that ends at that time, if it has not ended before.
pub(crate) fn cut(mut response: Response<UnsyncBoxBody<Bytes, Infallible>>, at: Option<Instant>, last: Last) -> Response<Answer> {
    let Some(news) = Watched::take(&mut response) else { return lossless(response) };
    let last = match last {
        Last::Nothing => None,
        Last::Broken => Some(Err("connection reset".into())),
        Last::Expired => Some(Ok(vec![expired()])),
    };
    let timer = async move {
        match at {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    lossless(Watched::new(news.take_until(timer).chain(stream::iter(last)).boxed()).answer())
}

pub(crate) fn lossless(response: Response<UnsyncBoxBody<Bytes, Infallible>>) -> Response<Answer> {
    response.map(|body| body.map_err(|never: Infallible| match never {}).boxed_unsync())
}

fn whole(bytes: Bytes) -> Answer {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

fn status(code: u16) -> serde_json::Value {
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let details = if code == 409 { json!({"name": "simulated"}) } else { json!({"retryAfterSeconds": 1}) };
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "simulated"});
    status["code"] = json!(code);
    status["reason"] = json!(reason);
    status["details"] = details;
    status
}

pub(crate) fn refusal(code: u16) -> Response<Answer> {
    let response = Response::builder().status(code).header("retry-after", "1").header("content-type", "application/json");
    response.body(whole(Bytes::from(status(code).to_string()))).unwrap()
}

fn expired() -> Line {
    Line { object: Object::from_value(status(410)).unwrap(), kind: "ERROR" }
}
