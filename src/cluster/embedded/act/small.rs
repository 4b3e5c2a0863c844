//! What takes one step: load balancers, volumes, and what each namespace has.

use plinth_api::Object;
use serde_json::json;

use super::{
    Wake,
    hands::{CONTROLLERS, Hands, Tone, resource},
};
use crate::embedded::store::Place;

/// A Service of type LoadBalancer gets an address.
pub(super) fn service(hands: &mut Hands<'_>, place: &Place, service: &Object) -> Option<Wake> {
    let balanced = service.spec()["type"] == "LoadBalancer";
    if !balanced || !service.status()["loadBalancer"]["ingress"].is_null() {
        return None;
    }
    if let Err(wake) = hands.has_stood(service, hands.acting.time(hands.acting.scenario.workloads.provide)) {
        return Some(wake);
    }
    let [_, _, high, low] = hands.number().to_be_bytes();
    let ingress = json!([{"ip": format!("172.18.{}.{low}", 255 - high), "ipMode": "VIP"}]);
    hands.set_status(CONTROLLERS, place, json!({"loadBalancer": {"ingress": ingress}}));
    hands.event("service-controller", place, Tone::Normal, "EnsuredLoadBalancer", "Ensured load balancer");
    None
}

/// A claim is bound, as by a storage class that makes volumes.
pub(super) fn claim(hands: &mut Hands<'_>, place: &Place, claim: &Object) -> Option<Wake> {
    if claim.status()["phase"] == "Bound" {
        return None;
    }
    if let Err(wake) = hands.has_stood(claim, hands.acting.time(hands.acting.scenario.workloads.provide)) {
        return Some(wake);
    }
    let volume = format!("pvc-{}", claim.uid().unwrap_or_default());
    hands.merge(CONTROLLERS, place, &json!({"spec": {"volumeName": volume}}));
    let capacity = &claim.spec()["resources"]["requests"];
    let status = json!({"phase": "Bound", "accessModes": claim.spec()["accessModes"], "capacity": capacity});
    hands.set_status(CONTROLLERS, place, status);
    None
}

/// Every namespace has the service account that pods run as.
pub(super) fn namespace(hands: &mut Hands<'_>, place: &Place) -> Option<Wake> {
    let accounts = resource("", "serviceaccounts");
    let inside =
        Place { resource: accounts.clone(), namespace: Some(place.name.clone()), name: "default".to_owned(), ..place.clone() };
    if hands.get(&inside).is_none() {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        // The namespace may go away at this very moment; then nobody needs it.
        let _gone = hands.create(CONTROLLERS, &inside, &accounts, &account);
    }
    None
}
