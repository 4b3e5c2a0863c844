//! The state behind the API, and what a request for a resource asks.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::Arc,
};

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use plinth_api::{ClusterKey, Object};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    kinds::{Registry, Served},
    listing::Listing,
    problem::Problem,
    rbac::{self, Acting, User},
    route::{QueryText, Target},
    watch::WatchPlan,
    write::zero,
};
use crate::embedded::{
    Options,
    collect::Collector,
    faults::Faults,
    fields::managers::{self, Manager, Operation},
    filter::Reach,
    seam::{Seam, Way},
    store::{Place, Resource, Store},
};

/// Largest body, as in Kubernetes.
pub const MAX_BODY: usize = 3 << 20;

/// A request.
#[derive(Clone, Debug)]
pub struct Call {
    /// HTTP method.
    pub method: Method,
    /// Path.
    pub path: String,
    /// Query.
    pub query: QueryText,
    /// `Content-Type`.
    pub content_type: String,
    /// Whether JSON is among the media types that are wanted (`Accept`).
    pub acceptable: bool,
    /// `User-Agent`, which names the field manager where the query does not.
    pub agent: String,
    /// Who asks; a token decides where there is one.
    pub user: User,
    /// In whose name it asks, where it asks in somebody else's.
    pub acting: Option<Acting>,
    /// Bearer token.
    pub token: Option<String>,
    /// Body.
    pub body: Bytes,
    /// When.
    pub now: Timestamp,
}

/// An answer.
pub enum Reply {
    /// JSON.
    Json(u16, Value),
    /// An object.
    Object(u16, Object),
    /// A list of objects.
    List(Box<Listing>),
    /// JSON that is written out already.
    Written(u16, Bytes),
    /// Text.
    Text(u16, Cow<'static, str>),
    /// A stream of events.
    Watch(Box<WatchPlan>),
}

impl Reply {
    /// HTTP status.
    pub fn code(&self) -> u16 {
        match self {
            Self::Json(code, _) | Self::Object(code, _) | Self::Written(code, _) | Self::Text(code, _) => *code,
            Self::List(_) | Self::Watch(_) => 200,
        }
    }
}

impl From<Problem> for Reply {
    fn from(problem: Problem) -> Self {
        Self::Json(problem.code, problem.status())
    }
}

/// Everything that a control plane holds.
pub struct State {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) collector: Option<Collector>,
    pub(crate) faults: Faults,
    /// CRDs that are being deleted.
    pub(crate) ending: BTreeSet<Place>,
    /// What CRDs defined that are gone: where they come again, watches cannot go on from before.
    pub(crate) retired: BTreeSet<(Resource, ClusterKey)>,
    /// The logical clusters.
    pub(crate) clusters: BTreeSet<ClusterKey>,
    pub(super) seam: Option<Arc<dyn Seam>>,
    pub(super) tokens: BTreeMap<String, User>,
    seed: u64,
    serial: u64,
    addresses: u32,
}

/// A request for a served resource.
pub(crate) struct Ask<'a> {
    pub(crate) call: &'a Call,
    pub(crate) way: &'a Way,
    /// The cluster of the way.
    pub(crate) cluster: ClusterKey,
    pub(crate) served: Arc<Served>,
    pub(crate) target: Target,
    pub(crate) user: User,
}

impl State {
    /// An empty control plane.
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            store: Store::new(options.history),
            registry: Registry::default(),
            collector: options.collect.then(Collector::default),
            faults: Faults::default(),
            ending: BTreeSet::new(),
            retired: BTreeSet::new(),
            clusters: BTreeSet::new(),
            seam: options.seam.clone(),
            tokens: BTreeMap::new(),
            seed: options.seed,
            serial: 0,
            addresses: 1,
        }
    }

    /// Lets a bearer token stand for somebody.
    pub(crate) fn allow_token(&mut self, token: &str, user: User) {
        self.tokens.insert(token.to_owned(), user);
    }

    /// An object that the request may see.
    pub(crate) fn seen(&self, ask: &Ask<'_>, name: &str) -> Result<Arc<Object>, Problem> {
        self.store.get(&ask.place(name)).filter(|object| ask.sees(object)).ok_or_else(|| ask.not_found(name))
    }

    pub(super) fn review(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let mut object = ask.object()?;
        if ask.served.kind == "SelfSubjectRulesReview" {
            return self.rules_review(ask, object);
        }
        let status = match ask.served.kind.as_str() {
            "TokenReview" => Some(self.token_review(object.spec())),
            kind => rbac::review(&self.store, &ask.cluster, &ask.user, kind, &object),
        };
        let manager = ask.manager(Operation::Update);
        managers::updated(&zero(&ask.served), &mut object, &ask.served.schema, &manager, &["status"], &ask.time());
        object.0.insert("status".to_owned(), status.ok_or_else(Problem::no_method)?);
        Ok(Reply::Object(201, object))
    }

    /// What somebody may do in a namespace; the answer does not say which one.
    fn rules_review(&self, ask: &Ask<'_>, mut object: Object) -> Result<Reply, Problem> {
        let namespace = object.spec()["namespace"].as_str().filter(|namespace| !namespace.is_empty());
        let namespace = namespace.ok_or_else(|| Problem::bad_request("no namespace on request"))?;
        let status = rbac::all_rules(&self.store, &ask.cluster, &ask.user, namespace);
        object.metadata_mut();
        object.0.insert("spec".to_owned(), json!({}));
        object.0.insert("status".to_owned(), status);
        Ok(Reply::Object(201, object))
    }

    /// A UID: from the seed and a count, so that the same requests give the same objects.
    pub(crate) fn uid(&mut self) -> String {
        let hex = self.digest();
        format!("{}-{}-8{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
    }

    /// The end of a generated name.
    pub(crate) fn suffix(&mut self) -> String {
        self.digest()[..5].to_owned()
    }

    /// A Service's address.
    pub(crate) fn address(&mut self) -> String {
        self.addresses += 1;
        let [_, _, high, low] = self.addresses.to_be_bytes();
        format!("10.96.{high}.{low}")
    }

    fn digest(&mut self) -> String {
        self.serial += 1;
        let hash = Sha256::new().chain_update(self.seed.to_be_bytes()).chain_update(self.serial.to_be_bytes()).finalize();
        hash.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

/// How an object at a place is shown; `mixed` where clusters may differ in its definition.
pub(crate) fn shape(registry: &Registry, place: &Place, served: &Arc<Served>, mixed: bool) -> Arc<Served> {
    let own = || registry.find(&Reach::One(place.cluster.clone()), &served.group, &served.version, &served.plural);
    mixed.then(own).flatten().unwrap_or_else(|| Arc::clone(served))
}

impl Ask<'_> {
    /// Whether the way's filter lets an object through.
    pub(crate) fn sees(&self, object: &Object) -> bool {
        self.way.filter.matches(object)
    }

    /// How an object at a place is shown: over all clusters in the shape that its own cluster gives it, as each may define
    /// a kind differently.
    pub(crate) fn shape(&self, registry: &Registry, place: &Place) -> Arc<Served> {
        shape(registry, place, &self.served, self.is_mixed())
    }

    /// Whether the objects may be of several definitions.
    pub(crate) fn is_mixed(&self) -> bool {
        self.way.reach == Reach::Logical && self.way.kinds.is_none() && !self.served.builtin
    }

    pub(super) fn subresource_is_known(&self) -> bool {
        match self.target.subresource.as_deref() {
            None => true,
            Some("status") => self.served.status,
            Some("scale") => self.served.scale.is_some(),
            Some("finalize") => self.served.plural == "namespaces" && self.served.group.is_empty(),
            Some("token") => self.served.plural == "serviceaccounts" && self.served.group.is_empty(),
            Some(_) => false,
        }
    }

    pub(crate) fn resource(&self) -> Resource {
        self.served.resource()
    }

    pub(crate) fn place(&self, name: &str) -> Place {
        Place {
            resource: self.resource(),
            cluster: self.cluster.clone(),
            namespace: self.target.namespace.clone(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn not_found(&self, name: &str) -> Problem {
        Problem::not_found(&self.served.group, &self.served.plural, name)
    }

    pub(crate) fn conflict(&self, name: &str, why: &str) -> Problem {
        Problem::conflict(&self.served.group, &self.served.plural, name, why)
    }

    pub(crate) fn is_status(&self) -> bool {
        self.target.subresource.as_deref() == Some("status")
    }

    pub(crate) fn dry_run(&self) -> bool {
        self.call.query.some("dryRun") == Some("All")
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.call.query.some("fieldValidation") == Some("Strict")
    }

    /// Who writes: by the query, else by the first word of the user agent.
    pub(crate) fn manager(&self, operation: Operation) -> Manager {
        let agent = self.call.agent.split('/').next().filter(|agent| !agent.is_empty()).unwrap_or("unknown");
        let mut name = self.call.query.some("fieldManager").unwrap_or(agent).to_owned();
        // Agents may be longer than managers.
        name.truncate(name.char_indices().nth(128).map_or(name.len(), |(at, _)| at));
        let subresource =
            self.target.subresource.clone().filter(|part| ["scale", "status"].contains(&part.as_str())).unwrap_or_default();
        Manager { operation, name, api_version: self.served.api_version(), subresource }
    }

    /// The time in managed fields.
    pub(crate) fn time(&self) -> String {
        Timestamp::from_second(self.call.now.as_second()).map(|at| at.to_string()).unwrap_or_default()
    }

    /// The body as JSON, or as YAML where that is said.
    pub(crate) fn json(&self) -> Result<Value, Problem> {
        let kind = self.call.content_type.split(';').next().unwrap_or_default().trim();
        match kind {
            "" | "application/json" | "application/json-patch+json" | "application/merge-patch+json" => self.plain(),
            "application/yaml" | "application/apply-patch+yaml" => self.plain().or_else(|_| self.yaml()),
            // Names of media types may be written in any case, those of patches may not.
            _ if ["application/json", "application/yaml"].iter().any(|known| kind.eq_ignore_ascii_case(known)) => {
                self.plain().or_else(|_| self.yaml())
            }
            _ => Err(Problem::media_type("application/json, application/yaml")),
        }
    }

    fn plain(&self) -> Result<Value, Problem> {
        serde_json::from_slice(&self.call.body).map_err(|error| Problem::bad_request(format!("json parse error: {error}")))
    }

    fn yaml(&self) -> Result<Value, Problem> {
        let text = std::str::from_utf8(&self.call.body).map_err(|error| Problem::bad_request(error.to_string()))?;
        let documents = plinth_engine::yaml::documents(text);
        let documents = documents.map_err(|error| Problem::bad_request(format!("error decoding YAML: {error}")))?;
        let document = documents.into_iter().next();
        document.map(|document| document.value).ok_or_else(|| Problem::bad_request("the body is empty"))
    }

    /// The body as an object of the served kind.
    pub(crate) fn object(&self) -> Result<Object, Problem> {
        let object = Object::from_value(self.json()?);
        let mut object = object.ok_or_else(|| Problem::bad_request("the body is no JSON object"))?;
        self.is_of_kind(&object)?;
        object.0.insert("apiVersion".to_owned(), json!(self.served.api_version()));
        object.0.insert("kind".to_owned(), json!(self.served.kind));
        Ok(object)
    }

    /// Built-in kinds may leave their kind out, as the path says it.
    pub(crate) fn is_of_kind(&self, object: &Object) -> Result<(), Problem> {
        let text = |name: &str| object.0.get(name).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (wanted, wanted_kind) = (self.served.api_version(), &self.served.kind);
        let matches = (api_version == wanted || (self.served.builtin && api_version.is_empty()))
            && (kind == wanted_kind || (self.served.builtin && kind.is_empty()));
        if matches {
            return Ok(());
        }
        let message = if kind.is_empty() {
            format!("Object 'Kind' is missing in '{}'", object.as_value())
        } else if self.served.builtin {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            let internal = self.served.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
            format!(
                "{kind} in version {version:?} cannot be handled as a {wanted_kind}: converting ({api_version}.{kind}) to ({internal}.{wanted_kind}): unknown conversion"
            )
        } else {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            format!(
                "the API version in the data ({group}/{version}, Kind={kind}) does not match the expected API version ({wanted}, Kind={wanted_kind})"
            )
        };
        Err(Problem::bad_request(message))
    }
}
