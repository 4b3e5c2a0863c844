//! From a distribution and a cluster to a plan: what will be written, in which order, and what has to wait.
//!
//! Planning reads and never writes. The stages follow from the graphs: the run's own steps first (each needs what the one
//! before brought), then the levels of the graphs, then what waits for kinds that are not served yet.

mod begun;
mod breaking;
mod compile;
mod expand;
mod images;
mod leftovers;
mod live;
mod lock;
mod order;
pub(crate) mod owner;
mod permissions;
mod place;
mod prunes;
mod stages;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use plinth_api::{ClusterKey, GroupVersionKind, ObjectKey, Permission, platform::API_VERSION, rbac::Rights};
use plinth_engine::{
    graph,
    ports::{ReadError, Reader},
    schema::{self, SchemaSource},
};
use plinth_run::{Deferred, Plan};

use crate::{
    content::{Content, Manifest},
    digest,
    distribution::Distribution,
    error::Error,
    install,
    others::{self, Other, Tool},
    ports::Ports,
    release::{self, Begun},
    rights,
    settings::Settings,
    values,
    wanted::{self, Step, Wanted},
};

pub use compile::Built;
pub(crate) use expand::below;
pub use expand::{Place, is_workload};
pub use leftovers::Leftover;
pub use live::{Found, Standing};
pub(crate) use live::{of_child, read, standing};

/// A plan with everything that carrying it out needs.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What people see, what the journal holds, what is saved.
    pub plan: Plan,
    /// The objects that the run writes, in order.
    pub wanted: Vec<Wanted>,
    /// The top-level instance.
    pub instance: ObjectKey,
    /// The compiled definitions in the order of the graphs, each after those whose kinds it makes.
    pub built: Vec<Built>,
    /// Everything that the loop will write, as far as it is known, in graph order.
    pub places: Vec<Place>,
    /// Definitions that go at the end.
    pub leftovers: Vec<Leftover>,
    /// How the move to the release began.
    pub begun: Begun,
    /// What our identity must be allowed to do.
    pub permissions: BTreeSet<Permission>,
    /// What people should know.
    pub remarks: Vec<Remark>,
}

/// Something that people should know and that keeps nothing from going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// One word: `Beside` (another controller runs), `BreakingChange` (of a kind that is installed, permitted by its definition), `Late` (a Component that is known only during the run), `Leak` (an image that no resource describes), `Unused` (images
    /// that no graph uses), `Unverified` (a check of the channel that was switched off).
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// The part of planning that needs no cluster but its schemas.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The objects that the run writes, in order.
    pub wanted: Vec<Wanted>,
    /// The compiled definitions.
    pub built: Vec<Built>,
    /// Everything that the loop will write, as far as it is known, in graph order.
    pub places: Vec<Place>,
    /// What waits for kinds.
    pub deferred: Vec<Deferred>,
    /// What our identity must be allowed to do.
    pub permissions: BTreeSet<Permission>,
    /// What the loop must be allowed to do where it runs in the cluster.
    pub rights: Rights,
    /// What people should know.
    pub remarks: Vec<Remark>,
    /// Digest over lock, values and settings.
    pub inputs: String,
}

impl Draft {
    /// Puts objects into their step, after those that are there: what installs the controller comes after what it needs, and before what
    /// it looks after.
    fn add(&mut self, wanted: Vec<Wanted>, served: &dyn SchemaSource) {
        self.permissions.extend(permissions::to_write(&wanted, served));
        let Some(step) = wanted.first().map(|wanted| wanted.step) else { return };
        let at = self.wanted.iter().position(|wanted| wanted.step > step).unwrap_or(self.wanted.len());
        self.wanted.splice(at..at, wanted);
    }
}

/// The kinds whose schemas drafting a plan looks up.
pub fn kinds(distribution: &Distribution, settings: &Settings) -> Vec<GroupVersionKind> {
    let mentioned = distribution.rgds.iter().flat_map(|rgd| graph::kinds(&rgd.definition.spec));
    let written = settings.definitions.iter().flat_map(|crd| schema::crd::kinds(crd).unwrap_or_default()).map(|kind| kind.gvk);
    let installed = settings.controller.iter().flat_map(|_| install::kinds());
    let known = installed.chain([wanted::crd_kind(), wanted::namespace_kind()]);
    mentioned.chain(written).chain(known).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Compiles the definitions over what the cluster serves and lays out everything that follows.
///
/// # Panics
/// Where the distribution has no definition; `distribution::choose` makes none of those.
pub fn draft(
    content: &Content,
    distribution: &Distribution,
    settings: &Settings,
    served: Arc<dyn SchemaSource>,
) -> Result<Draft, Error> {
    let mut wanted = wanted::assemble(distribution, settings)?;
    place::names(&wanted)?;
    let (built, source) = compile::all(distribution, settings, served)?;
    let built = order::by_graph(built);
    order::wanted(&mut wanted, &built);
    let instance = wanted::instance(distribution, settings);
    let root = built.last().expect("a distribution has at least its top-level definition");
    values::check(&instance, &root.graph, distribution, settings)?;
    let places = expand::all(&instance, &built)?;
    place::names_of(&places)?;
    let platform = settings.controller.as_ref().map(|controller| controller.platform.clone()).unwrap_or_default();
    let mut remarks = lock::covers(&places, &content.lock)?;
    remarks.extend(images::remarks(content, distribution, settings, &places));
    Ok(Draft {
        deferred: expand::deferred(&built, &places),
        permissions: permissions::needed(&wanted, &places, &built, &source),
        rights: rights::of((&wanted, &platform), &built, &places, &source),
        inputs: inputs(content, settings, &wanted),
        wanted,
        built,
        places,
        remarks,
    })
}

/// The resources that Deployers of this distribution apply, as far as that is known before the run: their documents belong into
/// [`Content::manifests`], so that images in them are looked at before anything is written. `served` need not be all that a cluster serves.
/// What cannot be drafted has none; making the plan says why.
pub fn manifests(
    content: &Content,
    distribution: &Distribution,
    settings: &Settings,
    served: Arc<dyn SchemaSource>,
) -> BTreeSet<Manifest> {
    let drafted = draft(content, distribution, settings, served);
    drafted.map(|draft| images::deployed(&draft.places, content)).unwrap_or_default()
}

/// Plans against a cluster: reads its schemas and objects, writes nothing.
///
/// # Panics
/// Where the distribution has no definition; `distribution::choose` makes none of those.
pub async fn make(content: &Content, distribution: &Distribution, settings: &Settings, ports: &Ports) -> Result<Planned, Error> {
    let served = ports.schemas.ensure(&kinds(distribution, settings)).await?;
    let mut draft = draft(content, distribution, settings, Arc::clone(&served))?;
    let leftovers = leftovers::look(&draft.wanted, &settings.platform, ports.reader.as_ref()).await?;
    draft.rights = rights::joined(&draft.rights, &rights::of_leftovers(&leftovers));
    let rights = writable(&draft, ports).await?;
    draft.add(wanted::controller(settings, &rights), served.as_ref());
    place::only_one(&draft.wanted, settings, ports.reader.as_ref()).await?;
    place::same_distribution(&draft.wanted, settings, ports.reader.as_ref()).await?;
    draft.remarks.extend(breaking::changes(&draft.built, settings.allow_breaking, ports.reader.as_ref()).await?);
    let others = others::look(ports.reader.as_ref(), ports.access.as_ref()).await?;
    draft.remarks.extend(beside(&others)?);
    let settings = &Settings { idle: idle(&others), ..settings.clone() };
    let there = release::read(ports.reader.as_ref()).await?;
    let begun = begun::look(&draft, settings, (&content.lock, &there), ports.reader.as_ref()).await?;
    draft.add(wanted::release(settings, &content.lock, &there, begun.clone())?, served.as_ref());
    let found = live::look(&draft, settings, ports.reader.as_ref()).await?;
    let cluster = ports.access.identity().await?;
    let mut stages = stages::lay_out(&draft, &found);
    prunes::add(&draft, &mut stages, ports).await?;
    leftovers::add(&leftovers, &mut stages);
    let plan = Plan {
        api_version: API_VERSION.into(),
        kind: "Plan".into(),
        platform: settings.platform.clone(),
        source: settings.source.clone(),
        distribution: distribution.component.clone(),
        cluster: Some(cluster),
        inputs: draft.inputs.clone(),
        stages,
        deferred: draft.deferred,
        unverified: settings.unverified.clone(),
        rights: Some(rights),
    };
    let instance = draft.wanted.last().expect("the instance is always wanted").key.clone();
    let (wanted, built, places) = (draft.wanted, draft.built, draft.places);
    let (permissions, mut remarks) = (draft.permissions, draft.remarks);
    remarks.extend(settings.unverified.iter().map(|message| Remark { reason: "Unverified", message: message.clone() }));
    Ok(Planned { plan, wanted, instance, built, places, leftovers, begun, permissions, remarks })
}

/// What other controllers mean for this platform: kro would write what every definition makes, so that both cannot be.
fn beside(others: &[Other]) -> Result<Vec<Remark>, Error> {
    let running: Vec<&Other> = others.iter().filter(|other| other.runs()).collect();
    if let Some(kro) = running.iter().find(|other| other.tool == Tool::Kro) {
        return Err(Error::Beside { tool: kro.tool.to_string(), deployment: Box::new(kro.deployment.clone()) });
    }
    let told = running.into_iter().map(|other| {
        let Other { tool, deployment, .. } = other;
        let meaning =
            if *tool == Tool::OcmControllers { "delivery objects are left to them" } else { "what it has made is left alone" };
        Remark { reason: "Beside", message: format!("{deployment} of {tool} runs here: {meaning}") }
    });
    Ok(told.collect())
}

/// Tools whose controllers are there and do not run: what they made can be taken over.
fn idle(others: &[Other]) -> BTreeSet<Tool> {
    let running: BTreeSet<Tool> = others.iter().filter(|other| other.runs()).map(|other| other.tool).collect();
    [Tool::Kro, Tool::OcmControllers, Tool::Krop, Tool::Flux].into_iter().filter(|tool| !running.contains(tool)).collect()
}

/// The rights, each where it can be written: in namespaces that are there, or that the run makes.
async fn writable(draft: &Draft, ports: &Ports) -> Result<Rights, Error> {
    let kind = wanted::namespace_kind();
    let made = |name: &str| name == rights::NAMESPACE || draft.wanted.iter().any(|w| w.key.gvk == kind && w.key.name == name);
    within(&draft.rights, made, ports.reader.as_ref()).await
}

/// The rights, each where it can be written: in namespaces that are there, or that somebody makes.
pub(crate) async fn within(rights: &Rights, made: impl Fn(&str) -> bool, reader: &dyn Reader) -> Result<Rights, Error> {
    let mut there = BTreeSet::new();
    for name in rights.namespaces.keys() {
        let key = ObjectKey { cluster: ClusterKey::host(), gvk: wanted::namespace_kind(), namespace: None, name: name.clone() };
        let is_there = match reader.get(&key).await {
            Ok(found) => found.is_some(),
            // Who may not look at a namespace may still write into it.
            Err(ReadError::Forbidden { .. }) => true,
            Err(error) => return Err(error.into()),
        };
        if is_there || made(name) {
            there.insert(name.clone());
        }
    }
    Ok(rights::within(rights, &there))
}

/// Everything that a plan depends on besides the cluster.
fn inputs(content: &Content, settings: &Settings, wanted: &[Wanted]) -> String {
    let digests: Vec<&str> = wanted.iter().map(|wanted| wanted.digest.as_str()).collect();
    let lock = serde_json::to_value(&content.lock).expect("a lock is made of strings, numbers and lists");
    let mut inputs = serde_json::json!({"lock": lock, "wanted": digests, "takeOver": settings.take_over});
    if let Some(controller) = &settings.controller {
        inputs["controller"] = serde_json::json!([controller.image, controller.arguments]);
    }
    digest::of(&inputs)
}
