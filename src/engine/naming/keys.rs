//! Labels, annotations, finalizers and field managers (reference/kro.md section 19, contracts entry 11).

/// Label on children.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY`]; kro's is `kro`.
pub const MANAGED_BY_PLINTH: &str = "plinth";
/// Label `"true"` on CRD, instance, children and revision.
pub const OWNED: &str = "kro.run/owned";
/// Label with the version of the controller.
pub const VERSION: &str = "kro.run/kro-version";
/// Value of [`VERSION`].
pub const VERSION_VALUE: &str = concat!("plinth-", env!("CARGO_PKG_VERSION"));
/// Label with the RGD's UID, on CRD, instance and revision.
pub const RGD_ID: &str = "kro.run/resource-graph-definition-id";
/// Label with the RGD's name, on CRD, instance and revision.
pub const RGD_NAME: &str = "kro.run/resource-graph-definition-name";
/// Label with the hash of the RGD's spec, on revisions.
pub const REVISION_HASH: &str = "kro.run/graph-revision-hash";
/// Label on children: UID of the instance.
pub const INSTANCE_ID: &str = "kro.run/instance-id";
/// Label on children: name of the instance (as [`super::label_value`]).
pub const INSTANCE_NAME: &str = "kro.run/instance-name";
/// Label on children: namespace of the instance, where it has one.
pub const INSTANCE_NAMESPACE: &str = "kro.run/instance-namespace";
/// Label on children: group of the instance.
pub const INSTANCE_GROUP: &str = "kro.run/instance-group";
/// Label on children: version of the instance.
pub const INSTANCE_VERSION: &str = "kro.run/instance-version";
/// Label on children: kind of the instance.
pub const INSTANCE_KIND: &str = "kro.run/instance-kind";
/// Label on children: id of the node.
pub const NODE_ID: &str = "kro.run/node-id";
/// Label on collection items: position, from 0.
pub const COLLECTION_INDEX: &str = "kro.run/collection-index";
/// Label on collection items: number of items.
pub const COLLECTION_SIZE: &str = "kro.run/collection-size";
/// Label on members of an ApplySet.
pub const APPLYSET_PART_OF: &str = "applyset.kubernetes.io/part-of";
/// Label on the parent of an ApplySet.
pub const APPLYSET_ID: &str = "applyset.kubernetes.io/id";
/// Annotation on the parent: who manages the set.
pub const APPLYSET_TOOLING: &str = "applyset.kubernetes.io/tooling";
/// Value of [`APPLYSET_TOOLING`]; `kro/` is accepted when read.
pub const APPLYSET_TOOLING_VALUE: &str = concat!("plinth/", env!("CARGO_PKG_VERSION"));
/// Annotation on the parent: `ConfigMap,Deployment.apps`, sorted.
pub const APPLYSET_GROUP_KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
/// Annotation on the parent: namespaces of members, without the parent's own.
pub const APPLYSET_NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";
/// Annotation on the parent: [`super::inventory_hash`].
pub const INVENTORY_HASH: &str = "internal.kro.run/applyset-inventory-hash";
/// Annotation on children: deletion wave.
pub const APPLY_ORDER: &str = "internal.kro.run/apply-order";
/// Annotation by a user on an instance: `suspended` (or `disabled`) pauses it.
pub const RECONCILE: &str = "kro.run/reconcile";
/// Annotation `"true"` by a user on an RGD.
pub const ALLOW_BREAKING_CHANGES: &str = "kro.run/allow-breaking-changes";
/// Says on a Platform that its release is asked for as the way back.
pub const ROLLBACK: &str = "plinth.dev/rollback";
/// Annotation by a user on an RGD: the service account in each instance's namespace by whose rights children are written.
pub const SERVICE_ACCOUNT: &str = "plinth.dev/service-account";
/// Finalizer on RGDs, revisions and instances.
pub const FINALIZER: &str = "kro.run/finalizer";
/// Label of ours on objects that plinth applies itself: the platform's name.
pub const PLATFORM: &str = "plinth.dev/platform";
/// Label of ours on what installs the controller: which part of plinth it is.
pub const PART: &str = "plinth.dev/part";
/// Value of [`PART`].
pub const PART_CONTROLLER: &str = "controller";

/// Annotation on what a run wrote itself: checks that were switched off when it did, for people.
pub const UNVERIFIED: &str = "plinth.dev/unverified";
/// Field manager of an instance's labels and finalizer.
pub const MANAGER_LABELLER: &str = "plinth.dev/labeller";
/// Field manager of children.
pub const MANAGER_APPLYSET: &str = "plinth.dev/applyset";
/// Field manager of an instance's ApplySet metadata.
pub const MANAGER_APPLYSET_PARENT: &str = "plinth.dev/applyset-parent";
/// Field manager of status and CRDs, and of what plinth applies itself.
pub const MANAGER: &str = "plinth.dev/plinth";
