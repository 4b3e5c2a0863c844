//! The work itself, in the order of the table.

use std::{
    fs,
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
};
use plinth_support::{ApiServer, AuditLog, Identity};
use serde_json::json;

use super::{
    Figures,
    definitions::{NAMESPACE, Shape, definition, instance, object},
    figures::{milliseconds, quantile},
};
use crate::{
    Result,
    objects::{self, Watched},
    peers::{Peer, Running},
};

/// Requests of the client at the same time.
const AT_ONCE: usize = 16;
/// A controller that has asked nothing for this long is done: kro looks again every three seconds.
const QUIET: Duration = Duration::from_secs(4);

/// One peer at work on its own server.
struct Bench {
    client: Client,
    running: Running,
    audit: AuditLog,
    definitions: Api<DynamicObject>,
    accepted: Watched,
    figures: Figures,
    /// Divides the amount of work.
    share: usize,
    _server: ApiServer,
}

/// All figures of one peer.
pub(super) async fn measure(peer: Peer, quick: bool, out: &mut (dyn FnMut(&str) + Send)) -> Result<Figures> {
    let mut bench = Bench::start(peer, if quick { 10 } else { 1 }).await?;
    let mut say = |what: &str, bench: &Bench| out(&format!("{}: {what} {:?}", peer.name(), bench.figures));
    bench.accept().await?;
    say("definitions", &bench);
    let flat = bench.kind("flat", "Flat", Shape::Flat).await?;
    let chain = bench.kind("chain", "Chain", Shape::Chain).await?;
    bench.single(&flat, &chain).await?;
    say("single", &bench);
    bench.bursts(&flat).await?;
    say("bursts", &bench);
    bench.nothing_to_do(&flat).await?;
    bench.memory()?;
    bench.delete(&flat).await?;
    say("deleted", &bench);
    bench.waiting(&flat).await?;
    say("waiting", &bench);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    bench.figures.insert("load", load.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or_default());
    Ok(bench.figures)
}

/// A kind of the bench, with a watch on its objects.
struct Kind {
    name: &'static str,
    resource: ApiResource,
    watched: Watched,
}

impl Bench {
    async fn start(peer: Peer, share: usize) -> Result<Self> {
        let server = tokio::task::spawn_blocking(ApiServer::start).await??;
        let client = server.client(Identity::Cluster).await;
        objects::install(&client, &peer.crds()?).await?;
        let namespace = object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}));
        objects::create(&objects::api(&client, &objects::kind("", "v1", "Namespace", "namespaces"), None), &namespace).await?;
        let definitions = objects::api(&client, &objects::definitions(), None);
        let accepted = Watched::start(&client, &objects::definitions());
        let running = Running::start(peer, &server)?;
        let audit = server.audit();
        let mut bench = Self { client, running, audit, definitions, accepted, figures: Figures::new(), share, _server: server };
        // Starting up is not what is measured.
        bench.define("warm", "Warm", 1, Shape::Flat).await?;
        Ok(bench)
    }

    /// Creates a definition; answers with the time until it was Ready.
    async fn define(&mut self, name: &str, kind: &str, children: usize, shape: Shape) -> Result<Duration> {
        self.running.usage()?;
        let began = Instant::now();
        objects::create(&self.definitions, &definition(name, kind, children, shape)).await?;
        let seen = self.accepted.until(&[name.to_owned()], |seen| seen.ready.is_some() && seen.active.is_some()).await?;
        Ok(last(&seen[0]).duration_since(began))
    }

    async fn accept(&mut self) -> Result<()> {
        for (id, children) in [("accept10", 10), ("accept50", 50)] {
            let mut times = Vec::new();
            for index in 0..12 / self.share.min(4) {
                let name = format!("accept-{children}-{index}");
                times.push(self.define(&name, &format!("Accept{children}N{index}"), children, Shape::Flat).await?);
            }
            self.figures.insert(id, milliseconds(quantile(&times, 0.5)));
        }
        Ok(())
    }

    async fn kind(&mut self, definition: &str, kind: &'static str, shape: Shape) -> Result<Kind> {
        self.define(definition, kind, 5, shape).await?;
        let resource = objects::kind("kro.run", "v1alpha1", kind, &format!("{}s", kind.to_lowercase()));
        let watched = Watched::start(&self.client, &resource);
        // The first instance of a kind pays for what is started then.
        self.create(&resource, kind, &["first".to_owned()]).await?;
        watched.until(&["first".to_owned()], |seen| seen.stated.is_some()).await?;
        Ok(Kind { name: kind, resource, watched })
    }

    /// Creates instances; answers with when each was asked for, in the order of the names.
    async fn create(&self, resource: &ApiResource, kind: &str, names: &[String]) -> Result<Vec<Instant>> {
        let api = objects::api(&self.client, resource, Some(NAMESPACE));
        let api = &api;
        let asked = stream::iter(names).map(|name| async move {
            let began = Instant::now();
            objects::create(api, &instance(kind, name)).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(began)
        });
        asked.buffered(AT_ONCE).try_collect().await
    }

    async fn single(&mut self, flat: &Kind, chain: &Kind) -> Result<()> {
        for (id, kind) in [("single", flat), ("chain", chain)] {
            let mut times = Vec::new();
            for index in 0..20 / self.share.min(4) {
                let name = vec![format!("single-{index}")];
                let began = self.create(&kind.resource, kind.name, &name).await?[0];
                let seen = kind.watched.until(&name, |seen| seen.ready.is_some() && seen.active.is_some()).await?;
                times.push(last(&seen[0]).duration_since(began));
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            self.figures.insert(id, milliseconds(quantile(&times, 0.5)));
            if id == "single" {
                self.figures.insert("single-max", milliseconds(quantile(&times, 1.0)));
            }
        }
        Ok(())
    }

    async fn bursts(&mut self, flat: &Kind) -> Result<()> {
        self.until_quiet().await?;
        let (log, cpu) = (self.audit.from_now()?, self.running.usage()?.cpu);
        let count = 100 / self.share;
        let (times, all) = self.burst(flat, "burst", count).await?;
        self.until_quiet().await?;
        self.figures.insert("burst100", all.as_secs_f64());
        self.figures.insert("burst100-p50", quantile(&times, 0.5).as_secs_f64());
        self.figures.insert("requests", per(requests(&log)?, count));
        self.figures.insert("burst100-cpu", (self.running.usage()?.cpu - cpu) * 1000.0 / per(count, 1));
        let (times, all) = self.burst(flat, "more", 400 / self.share).await?;
        self.figures.insert("burst400", all.as_secs_f64());
        self.figures.insert("burst400-p95", quantile(&times, 0.95).as_secs_f64());
        self.until_quiet().await
    }

    async fn burst(&self, flat: &Kind, prefix: &str, count: usize) -> Result<(Vec<Duration>, Duration)> {
        let names: Vec<String> = (0..count).map(|index| format!("{prefix}-{index}")).collect();
        let began = self.create(&flat.resource, flat.name, &names).await?;
        let seen = flat.watched.until(&names, |seen| seen.ready.is_some() && seen.active.is_some()).await?;
        let times: Vec<Duration> = seen.iter().zip(&began).map(|(seen, began)| last(seen).duration_since(*began)).collect();
        let first = began.iter().min().copied().unwrap_or_else(Instant::now);
        let all = seen.iter().map(|seen| last(seen).duration_since(first)).max().unwrap_or_default();
        Ok((times, all))
    }

    /// Somebody annotates children: a pass, and nothing to do in it.
    async fn nothing_to_do(&mut self, flat: &Kind) -> Result<()> {
        let maps = objects::api(&self.client, &objects::kind("", "v1", "ConfigMap", "configmaps"), Some(NAMESPACE));
        let log = self.audit.from_now()?;
        let count = 20 / self.share;
        for index in 0..count.min(10) {
            let patch = Patch::Merge(json!({"metadata": {"annotations": {"example.org/seen": "yes"}}}));
            maps.patch(&format!("burst-{index}-flat-0"), &PatchParams::default(), &patch).await?;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        self.until_quiet().await?;
        self.figures.insert("noop", per(requests(&log)?, count.min(10)));
        // Deleting one shows that such passes do come: its child is made again.
        maps.delete("burst-0-flat-1", &DeleteParams::default()).await?;
        let is_back = |map: Option<&DynamicObject>| map.is_some_and(|map| map.metadata.deletion_timestamp.is_none());
        objects::until(&maps, "burst-0-flat-1", is_back).await?;
        flat.watched.until(&["burst-0".to_owned()], |seen| seen.ready.is_some()).await.map(drop)
    }

    fn memory(&mut self) -> Result<()> {
        let usage = self.running.usage()?;
        self.figures.insert("rss", usage.resident);
        self.figures.insert("peak", usage.peak);
        Ok(())
    }

    async fn delete(&mut self, flat: &Kind) -> Result<()> {
        let api = objects::api(&self.client, &flat.resource, Some(NAMESPACE));
        let listed = api.list_metadata(&ListParams::default()).await?;
        let names: Vec<String> = listed.into_iter().filter_map(|object| object.metadata.name).collect();
        let began = Instant::now();
        let api = &api;
        let deletions =
            stream::iter(&names).map(|name| async move { api.delete(name, &DeleteParams::default()).await.map(drop) });
        deletions.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        let seen = flat.watched.until(&names, |seen| seen.gone.is_some()).await?;
        let all = seen.iter().filter_map(|seen| seen.gone).max().unwrap_or(began);
        self.figures.insert("delete", all.duration_since(began).as_secs_f64());
        self.until_quiet().await
    }

    async fn waiting(&mut self, flat: &Kind) -> Result<()> {
        let waiter = self.kind("waiter", "Waiter", Shape::Never).await?;
        let names: Vec<String> = (0..300 / self.share).map(|index| format!("waits-{index}")).collect();
        self.create(&waiter.resource, waiter.name, &names).await?;
        waiter.watched.until(&names, |seen| seen.stated.is_some()).await?;
        tokio::time::sleep(QUIET).await;
        let (log, window) = (self.audit.from_now()?, Duration::from_secs(10));
        tokio::time::sleep(window).await;
        self.figures.insert("waiting", per(requests(&log)?, 10));
        let mut times = Vec::new();
        for index in 0..7 {
            let name = vec![format!("healthy-{index}")];
            let began = self.create(&flat.resource, flat.name, &name).await?[0];
            let seen = flat.watched.until(&name, |seen| seen.active.is_some()).await?;
            times.extend(seen[0].active.map(|active| active.duration_since(began)));
        }
        self.figures.insert("healthy", milliseconds(quantile(&times, 0.5)));
        Ok(())
    }

    /// Waits until the controller asks nothing any more.
    async fn until_quiet(&self) -> Result<()> {
        let began = Instant::now();
        loop {
            let log = self.audit.from_now()?;
            tokio::time::sleep(QUIET).await;
            if requests(&log)? == 0 {
                return Ok(());
            }
            if began.elapsed() > objects::PATIENCE {
                return Err("the controller does not come to rest".into());
            }
        }
    }
}

/// When an object was both active and ready.
fn last(seen: &objects::Seen) -> Instant {
    seen.active.max(seen.ready).unwrap_or_else(Instant::now)
}

/// Requests of the controller, watches apart: those last, and are told when they end.
fn requests(log: &AuditLog) -> Result<usize> {
    Ok(log.events()?.iter().filter(|event| event.user == Identity::Admin.name() && event.verb != "watch").count())
}

#[expect(clippy::cast_precision_loss, reason = "counts of a bench")]
fn per(count: usize, of: usize) -> f64 {
    count as f64 / of.max(1) as f64
}
