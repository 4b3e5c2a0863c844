//! Who asks, and whether they may: tokens, RBAC, access reviews.

use plinth_api::{ClusterKey, Object};
use serde_json::{Value, json};

use super::{problem::Problem, route::Target};
use crate::embedded::{
    filter::{Filter, Reach},
    store::{Resource, Store},
};

const GROUP: &str = "rbac.authorization.k8s.io";
/// Whose members may do everything.
pub const MASTERS: &str = "system:masters";

/// Somebody who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Such as `admin` or `system:serviceaccount:NAMESPACE:NAME`.
    pub name: String,
    /// Groups.
    pub groups: Vec<String>,
    /// The cluster that a service account is of; in another one it may do nothing.
    pub home: Option<ClusterKey>,
}

impl User {
    /// Somebody with a name who is in `system:authenticated` and in `groups`.
    pub fn new(name: impl Into<String>, groups: &[&str]) -> Self {
        let groups = groups.iter().copied().chain(["system:authenticated"]).map(str::to_owned).collect();
        Self { name: name.into(), groups, home: None }
    }

    /// Who may do everything.
    pub fn admin() -> Self {
        Self::new("admin", &[MASTERS])
    }

    /// A service account of a cluster.
    pub fn service_account(cluster: &ClusterKey, namespace: &str, name: &str) -> Self {
        let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")];
        let user = Self::new(format!("system:serviceaccount:{namespace}:{name}"), &groups);
        Self { home: Some(cluster.clone()), ..user }
    }
}

/// Whom a request is made for (`Impersonate-User`, `Impersonate-Group`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acting {
    /// Their name.
    pub name: String,
    /// Their groups; a service account is in its own where none are given.
    pub groups: Vec<String>,
}

impl Acting {
    /// Namespace and name, where it is a service account.
    fn account(&self) -> Option<(&str, &str)> {
        self.name.strip_prefix("system:serviceaccount:")?.split_once(':')
    }

    /// What one has to be allowed for it.
    fn attempts(&self) -> Vec<Attempt> {
        let impersonate = |resource: &str, namespace: Option<&str>, name: &str| Attempt {
            verb: "impersonate".to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            ..Attempt::default()
        };
        let who = match self.account() {
            Some((namespace, name)) => impersonate("serviceaccounts", Some(namespace), name),
            None => impersonate("users", None, &self.name),
        };
        std::iter::once(who).chain(self.groups.iter().map(|group| impersonate("groups", None, group))).collect()
    }

    fn user(&self, cluster: &ClusterKey) -> User {
        match self.account() {
            Some((namespace, name)) if self.groups.is_empty() => User::service_account(cluster, namespace, name),
            _ => User::new(self.name.clone(), &self.groups.iter().map(String::as_str).collect::<Vec<_>>()),
        }
    }
}

/// Whom the API sees where somebody asks in another name; refused unless they may impersonate it.
pub fn acting(store: &Store, cluster: &ClusterKey, user: &User, acting: &Acting) -> Result<User, Problem> {
    match acting.attempts().iter().find(|attempt| !allowed(store, cluster, user, attempt)) {
        Some(attempt) => Err(denied(user, attempt, &Reach::default())),
        None => Ok(acting.user(cluster)),
    }
}

/// What somebody wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// Such as `list`.
    pub verb: String,
    /// API group.
    pub group: String,
    /// `deployments`, `deployments/status`.
    pub resource: String,
    /// `None` for all namespaces or none.
    pub namespace: Option<String>,
    /// Object, empty for all.
    pub name: String,
    /// Path, for what is no resource.
    pub path: Option<String>,
}

impl Attempt {
    /// To do something with a resource.
    pub fn of(target: &Target, verb: &str) -> Self {
        let part = target.subresource.as_ref().map(|part| format!("/{part}")).unwrap_or_default();
        let own = (target.plural == "namespaces" && target.group.is_empty()).then(|| target.name.clone()).flatten();
        Self {
            verb: verb.to_owned(),
            group: target.group.clone(),
            resource: format!("{}{part}", target.plural),
            namespace: target.namespace.clone().or(own),
            name: target.name.clone().unwrap_or_default(),
            path: None,
        }
    }

    /// To ask for something that is no resource.
    pub fn path(method: &str, path: String) -> Self {
        Self { verb: method.to_lowercase(), path: Some(path), ..Self::default() }
    }
}

/// What somebody reads who may not: in logical clusters with kcp's last words.
pub fn denied(user: &User, attempt: &Attempt, reach: &Reach) -> Problem {
    let end = if *reach == Reach::default() { "" } else { ": access denied" };
    if let Some(path) = &attempt.path {
        let message = format!("forbidden: User {:?} cannot {} path {path:?}{end}", user.name, attempt.verb);
        return Problem { code: 403, reason: "Forbidden", message, details: json!({}) };
    }
    let scope = match &attempt.namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let Attempt { verb, group, resource, .. } = attempt;
    let why = format!("User {:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}{end}", user.name);
    let plural = resource.split('/').next().unwrap_or_default();
    Problem::forbidden(group, plural, &attempt.name, &why)
}

/// Whether RBAC allows it.
pub fn allowed(store: &Store, cluster: &ClusterKey, user: &User, attempt: &Attempt) -> bool {
    if user.groups.iter().any(|group| group == MASTERS) {
        return true;
    }
    if user.home.as_ref().is_some_and(|home| home != cluster) {
        return false;
    }
    let free = attempt.group == "authorization.k8s.io" && attempt.resource.starts_with("self") && attempt.verb == "create";
    let public = attempt.path.as_deref().is_some_and(|path| {
        attempt.verb == "get"
            && ["/api", "/openapi", "/version", "/healthz", "/livez", "/readyz"].iter().any(|start| path.starts_with(start))
    });
    if free || public || (attempt.group == "authentication.k8s.io" && attempt.resource == "selfsubjectreviews") {
        return true;
    }
    let everywhere = bindings(store, cluster, "clusterrolebindings", None);
    let here = attempt.namespace.as_ref().map(|namespace| bindings(store, cluster, "rolebindings", Some(namespace)));
    everywhere
        .into_iter()
        .chain(here.into_iter().flatten())
        .any(|binding| names(&binding, user) && rules(store, cluster, &binding).iter().any(|rule| covers(rule, attempt)))
}

fn bindings(store: &Store, cluster: &ClusterKey, plural: &str, namespace: Option<&String>) -> Vec<Object> {
    let resource = Resource { group: GROUP.to_owned(), plural: plural.to_owned() };
    let filter = Filter { namespace: namespace.cloned(), ..Filter::of(cluster) };
    let page = store.page(&resource, &filter, None, usize::MAX);
    page.map(|page| page.items.into_iter().map(|(_, object)| (*object).clone()).collect()).unwrap_or_default()
}

fn names(binding: &Object, user: &User) -> bool {
    let subjects = binding.0.get("subjects").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    subjects.iter().any(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str() {
            Some("User") => user.name == name,
            Some("Group") => user.groups.iter().any(|group| group == name),
            Some("ServiceAccount") => {
                let namespace = subject["namespace"].as_str().or_else(|| binding.namespace()).unwrap_or_default();
                user.name == format!("system:serviceaccount:{namespace}:{name}")
            }
            _ => false,
        }
    })
}

fn rules(store: &Store, cluster: &ClusterKey, binding: &Object) -> Vec<Value> {
    let Some(role) = binding.0.get("roleRef") else { return Vec::new() };
    let (plural, namespace) = match role["kind"].as_str() {
        Some("Role") => ("roles", binding.namespace().map(str::to_owned)),
        _ => ("clusterroles", None),
    };
    let place = crate::embedded::store::Place {
        resource: Resource { group: GROUP.to_owned(), plural: plural.to_owned() },
        cluster: cluster.clone(),
        namespace,
        name: role["name"].as_str().unwrap_or_default().to_owned(),
    };
    store.get(&place).and_then(|role| role.0.get("rules")?.as_array().cloned()).unwrap_or_default()
}

fn covers(rule: &Value, attempt: &Attempt) -> bool {
    let has = |field: &str, wanted: &str| {
        let list = rule[field].as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().any(|value| *value == "*" || *value == wanted)
    };
    if let Some(path) = &attempt.path {
        let urls = rule["nonResourceURLs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let matches = |url: &Value| {
            let url = url.as_str().unwrap_or_default();
            url == path || url.strip_suffix('*').is_some_and(|start| path.starts_with(start))
        };
        return has("verbs", &attempt.verb) && urls.iter().any(matches);
    }
    let resource = has("resources", &attempt.resource)
        || attempt.resource.split_once('/').is_some_and(|(_, part)| has("resources", &format!("*/{part}")));
    let named = rule["resourceNames"]
        .as_array()
        .is_none_or(|names| names.is_empty() || names.iter().any(|name| *name == attempt.name.as_str()));
    has("verbs", &attempt.verb) && has("apiGroups", &attempt.group) && resource && named
}

/// Answers a review of `authorization.k8s.io` or `authentication.k8s.io`; `None` for kinds that are not answered.
pub fn review(store: &Store, cluster: &ClusterKey, user: &User, kind: &str, review: &Object) -> Option<Value> {
    let spec = review.spec();
    let who = match kind {
        "SelfSubjectAccessReview" => user.clone(),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => User {
            name: spec["user"].as_str().unwrap_or_default().to_owned(),
            groups: spec["groups"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|group| group.as_str().map(str::to_owned))
                .collect(),
            home: None,
        },
        "SelfSubjectReview" => return Some(json!({"userInfo": {"username": user.name, "groups": user.groups}})),
        _ => return None,
    };
    let attempt = asked(spec);
    let allowed = allowed(store, cluster, &who, &attempt);
    Some(json!({"allowed": allowed}))
}

/// Everything that somebody may do in a namespace.
pub fn all_rules(store: &Store, cluster: &ClusterKey, user: &User, namespace: &str) -> Value {
    let mut bound = bindings(store, cluster, "clusterrolebindings", None);
    bound.extend(bindings(store, cluster, "rolebindings", Some(&namespace.to_owned())));
    let granted = bound.iter().filter(|binding| names(binding, user)).flat_map(|binding| rules(store, cluster, binding));
    let (paths, resources): (Vec<Value>, Vec<Value>) = granted.partition(|rule| rule["nonResourceURLs"].is_array());
    json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
}

fn asked(spec: &Value) -> Attempt {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if spec["nonResourceAttributes"].is_object() {
        let asked = &spec["nonResourceAttributes"];
        return Attempt { verb: text(&asked["verb"]), path: Some(text(&asked["path"])), ..Attempt::default() };
    }
    let asked = &spec["resourceAttributes"];
    let resource = match text(&asked["subresource"]) {
        part if part.is_empty() => text(&asked["resource"]),
        part => format!("{}/{part}", text(&asked["resource"])),
    };
    Attempt {
        verb: text(&asked["verb"]),
        group: text(&asked["group"]),
        resource,
        namespace: Some(text(&asked["namespace"])).filter(|namespace| !namespace.is_empty()),
        name: text(&asked["name"]),
        path: None,
    }
}
