//! Which actor looks after which kind, and what pods they make.

use std::sync::Arc;

use plinth_api::Object;
use serde_json::{Value, json};

use super::{
    Wake, controller, daemon, deployment,
    hands::{CONTROLLERS, Hands, Tone, owned_by, resource},
    job, kubelet, needs, replicas, small, stateful,
};
use crate::embedded::{
    filter::is_logical,
    store::{Place, Resource},
};

/// Group, plural and kind of what owns pods or sets of them.
const OWNERS: [(&str, &str, &str); 5] = [
    ("apps", "deployments", "Deployment"),
    ("apps", "replicasets", "ReplicaSet"),
    ("apps", "statefulsets", "StatefulSet"),
    ("apps", "daemonsets", "DaemonSet"),
    ("batch", "jobs", "Job"),
];

/// Whether somebody here looks after an object. In logical clusters nothing runs, as they have no nodes, like those of kcp, and
/// a workload that came up there would rehearse what cannot be; only their namespaces have their service account. Rules of a
/// scenario act in all of them: they play operators, which work on logical clusters from elsewhere.
pub(super) fn acts(place: &Place) -> bool {
    let resource = &place.resource;
    if is_logical(&place.cluster) {
        return resource.group.is_empty() && resource.plural == "namespaces";
    }
    let known = |(group, plural): (&str, &str)| resource.group == group && resource.plural == plural;
    let core = ["pods", "services", "persistentvolumeclaims", "namespaces"];
    OWNERS.into_iter().any(|(group, plural, _)| known((group, plural))) || core.into_iter().any(|plural| known(("", plural)))
}

/// Whether pods come of an object here, or it is one: such are what can be made available.
pub(super) fn runs(place: &Place) -> bool {
    let owns = |(group, plural, _): (&str, &str, &str)| place.resource.group == group && place.resource.plural == plural;
    acts(place) && (place.resource == pods() || OWNERS.into_iter().any(owns))
}

/// Brings one object a step further; says when to come back.
pub(super) fn reconcile(hands: &mut Hands<'_>, place: &Place) -> Option<Wake> {
    let object = hands.get(place).filter(|object| !object.is_terminating())?;
    let Resource { group, plural } = &place.resource;
    match (group.as_str(), plural.as_str()) {
        ("apps", "deployments") => deployment::reconcile(hands, place, &object),
        ("apps", "replicasets") => replicas::reconcile(hands, place, &object),
        ("apps", "statefulsets") => stateful::reconcile(hands, place, &object),
        ("apps", "daemonsets") => daemon::reconcile(hands, place, &object),
        ("batch", "jobs") => job::reconcile(hands, place, &object),
        ("", "pods") => kubelet::reconcile(hands, place, &object),
        ("", "services") => small::service(hands, place, &object),
        ("", "persistentvolumeclaims") => small::claim(hands, place, &object),
        ("", "namespaces") => small::namespace(hands, place),
        _ => None,
    }
}

/// The place of an object's controller, where it is one of ours.
pub(super) fn owner(place: &Place, object: &Object) -> Option<Place> {
    let reference = controller(object)?;
    let (group, plural, _) = OWNERS.into_iter().find(|(_, _, kind)| reference["kind"] == *kind)?;
    let owner = Place { resource: resource(group, plural), name: reference["name"].as_str()?.to_owned(), ..place.clone() };
    acts(&owner).then_some(owner)
}

/// The workload that a pod belongs to in the end; the pod itself where nobody owns it.
pub(super) fn root(hands: &Hands<'_>, place: &Place, pod: &Arc<Object>) -> Arc<Object> {
    let (mut place, mut object) = (place.clone(), Arc::clone(pod));
    // A ReplicaSet's Deployment is as far as it goes.
    for _ in 0..2 {
        let Some(above) = owner(&place, &object) else { break };
        let Some(found) = hands.get(&above) else { break };
        (place, object) = (above, found);
    }
    object
}

pub(super) fn pods() -> Resource {
    resource("", "pods")
}

/// How many a spec wants, 1 where it does not say.
pub(super) fn wanted(object: &Object) -> usize {
    let replicas = object.spec()["replicas"].as_u64().unwrap_or(1);
    usize::try_from(replicas).unwrap_or(usize::MAX)
}

/// Whether a pod is to be counted: it is neither going nor over.
pub(super) fn is_active(pod: &Object) -> bool {
    let phase = pod.status()["phase"].as_str().unwrap_or_default();
    !pod.is_terminating() && !["Succeeded", "Failed"].contains(&phase)
}

/// Whether a pod's condition Ready is True.
pub(super) fn is_ready(pod: &Object) -> bool {
    super::conditions::holds(pod.status(), "Ready")
}

/// How a controller names the pods that it makes.
pub(super) enum Named<'a> {
    /// The owner's name and some letters.
    Anyhow,
    /// This.
    As(&'a str),
}

/// Makes a pod from an owner's template, and tells of it; what kept it from being made, where something did.
pub(super) fn make_pod(
    hands: &mut Hands<'_>,
    by: &str,
    (place, owner): (&Place, &Object),
    named: &Named<'_>,
    change: impl FnOnce(&mut Value),
) -> Result<(), String> {
    let template = &owner.spec()["template"];
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": template["spec"]});
    for field in ["labels", "annotations"] {
        if !template["metadata"][field].is_null() {
            pod["metadata"][field] = template["metadata"][field].clone();
        }
    }
    pod["metadata"]["ownerReferences"] = owned_by(owner);
    match named {
        Named::Anyhow => pod["metadata"]["generateName"] = json!(format!("{}-", place.name)),
        Named::As(name) => pod["metadata"]["name"] = json!(name),
    }
    change(&mut pod);
    let shown = named.shown(place);
    let made = match needs::absent_account(hands, place, &pod["spec"]) {
        Some(account) => Err(format!(
            "pods {shown:?} is forbidden: error looking up service account {}/{account}: serviceaccount {account:?} not found",
            place.namespace.as_deref().unwrap_or_default()
        )),
        None => hands.create(CONTROLLERS, place, &pods(), &pod).map(|pod| pod.name().to_owned()),
    };
    match made {
        Ok(name) => {
            let message = match named {
                Named::Anyhow => format!("Created pod: {name}"),
                Named::As(_) => format!("create Pod {name} in StatefulSet {} successful", place.name),
            };
            hands.event(by, place, Tone::Normal, "SuccessfulCreate", &message);
            Ok(())
        }
        Err(error) => {
            hands.event(by, place, Tone::Warning, "FailedCreate", &format!("Error creating: {error}"));
            hands.memory.lacking.insert(place.clone());
            Err(error)
        }
    }
}

impl Named<'_> {
    fn shown(&self, place: &Place) -> String {
        match self {
            Self::Anyhow => format!("{}-", place.name),
            Self::As(name) => (*name).to_owned(),
        }
    }
}
