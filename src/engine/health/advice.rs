//! What a verdict means and what to do about it: one row a reason. The pages in `docs/why` are made from this table.

use plinth_api::GroupVersionKind;

use super::verdict::Verdict;

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Its stable name, and that of its page.
    pub id: &'static str,
    /// What is seen, a few words.
    pub title: &'static str,
    /// The reasons of verdicts that it is about.
    pub reasons: &'static [&'static str],
    /// Only for this group and kind; empty for all.
    pub kind: (&'static str, &'static str),
    /// Only where the message says this; empty for all.
    pub says: &'static str,
    /// What is behind it.
    pub means: &'static str,
    /// The next step.
    pub next: &'static str,
}

const ALL: (&str, &str) = ("", "");
const BLUEPRINT: (&str, &str) = ("krop.opendefense.cloud", "ResourceGraphDefinition");
const BINDING: (&str, &str) = ("apis.kcp.io", "APIBinding");

const fn row(
    id: &'static str,
    title: &'static str,
    reasons: &'static [&'static str],
    kind: (&'static str, &'static str),
    means: &'static str,
    next: &'static str,
) -> Advice {
    Advice { id, title, reasons, kind, says: "", means, next }
}

/// All rows, by their names.
pub const CATALOGUE: &[Advice] = &[
    row(
        "W001",
        "a consumer's child never appears: the claim is rejected",
        &["ClaimRejected"],
        BINDING,
        "The consumer turned down a permission claim of the export. The binding is Bound and all its conditions are True all the same; \
         only writes into the consumer's workspace are refused.",
        "set the claim to state Accepted in spec.permissionClaims of the APIBinding",
    ),
    row(
        "W002",
        "a consumer's child never appears: nobody answered the claim",
        &["ClaimUnanswered"],
        BINDING,
        "The export asks for a permission that the binding neither accepts nor rejects. kcp shows that nowhere but in the difference of two lists.",
        "add the claim to spec.permissionClaims of the APIBinding with state Accepted",
    ),
    row(
        "W003",
        "a blueprint cannot ask for a type of another export",
        &["ClaimIdentityUnresolved"],
        BLUEPRINT,
        "A child for consumers has a type that another APIExport owns. A claim on it needs that export's identity, which is only known once the \
         provider workspace itself has bound it.",
        "bind the other export in the provider workspace; the blueprint is published again by itself",
    ),
    Advice {
        says: "waiting for resources",
        ..row(
            "W004",
            "an instance stays Progressing",
            &["Progressing"],
            ALL,
            "A child is not ready, or reads a status field of another child that nobody has filled yet. That is waiting, not failing.",
            "look at the children: plinth why on the one that is not ready; a status field that another system fills has to be awaited",
        )
    },
    row(
        "W005",
        "the endpoint slice of an export is empty",
        &["NoEndpoints"],
        ("apis.kcp.io", "APIExportEndpointSlice"),
        "Nobody has bound the export yet. The slice is filled with the first binding; before that there is nothing to serve.",
        "bind the export in a consumer workspace",
    ),
    row(
        "W006",
        "a blueprint's graph cannot be built",
        &["BuildFailed"],
        BLUEPRINT,
        "A type that the graph uses is not served in the provider workspace, or an expression does not fit its type. Just after a CRD was \
         created it may pass by itself.",
        "serve the missing type in the provider workspace, or mend the expression that the message names; plinth rgd check finds it offline",
    ),
    row(
        "W007",
        "a blueprint cannot be published",
        &["PublishFailed"],
        BLUEPRINT,
        "The controller may not write APIResourceSchemas and APIExports in the provider workspace.",
        "apply the provider's RBAC there, for the very identity of the kubeconfig",
    ),
    row(
        "W008",
        "an instance was created and nothing happens",
        &["NotPickedUp"],
        ALL,
        "No controller has touched it. Through kcp that is mostly a missing grant on apiexports/content: discovery is refused, and an \
         administrator's own context does not show it.",
        "see that the controller runs, and grant it apiexports/content for the export in the provider workspace",
    ),
    row(
        "W009",
        "the record that an instance is alive is old",
        &["StaleLiveness"],
        ("", "ConfigMap"),
        "The instance was not reconciled for longer than the sweeper waits; its children away from the consumer are going to be deleted as orphans. \
         After an unbind that is right. It is wrong where an error keeps the controller from finishing a pass.",
        "if the instance still exists, find what its controller fails on before the sweeper's next round",
    ),
    row(
        "W010",
        "the controller does not start: its kubeconfig is not scoped",
        &["KubeconfigNotScoped"],
        ("", "Pod"),
        "The server's address in the kubeconfig names no workspace, so that it would act on another one.",
        "make the kubeconfig for the provider workspace: its server's address has to hold /clusters/ and the workspace's path",
    ),
    row(
        "W011",
        "several controllers do the same work",
        &["NoLeaderElection"],
        ("apps", "Deployment"),
        "There is more than one replica, and none of them asks for a lease.",
        "turn leader election on, or set one replica",
    ),
    row(
        "W012",
        "a blueprint's digest cannot be made",
        &["HashFailed"],
        BLUEPRINT,
        "Its spec cannot be written down canonically, so that no change of it could be seen.",
        "read the message: a value in spec is of a kind that JSON does not have",
    ),
    row(
        "W013",
        "a definition or an instance waits for a kind",
        &["Deferred"],
        ALL,
        "A kind that it uses is not served yet. That is a state of the plan, not an error: the moment the kind is served, it goes on.",
        "see what brings the kind: the plan names it, and plinth why on that shows why it is not there yet",
    ),
    row(
        "W014",
        "an image cannot be pulled",
        &["ImagePullBackOff", "ErrImagePull", "InvalidImageName"],
        ("", "Pod"),
        "The registry does not have the image, does not let this node in, or cannot be reached from it.",
        "look for the image in the mirror by its digest; a mirror that lacks it is completed with plinth bundle push",
    ),
    row(
        "W015",
        "a container ends again and again",
        &["CrashLoopBackOff"],
        ("", "Pod"),
        "Its process ends by itself. Kubernetes starts it again, later each time.",
        "read the log of the run before (L in the terminal view)",
    ),
    row(
        "W016",
        "a pod finds no node",
        &["Unschedulable"],
        ("", "Pod"),
        "No node has the room, the labels or the tolerations that it asks for.",
        "the message counts nodes by what they lack: add a node, or ask for less",
    ),
    row(
        "W017",
        "a Deployment gave up waiting",
        &["ProgressDeadlineExceeded"],
        ("apps", "Deployment"),
        "Its pods were not available within its own deadline. Kubernetes goes on trying, but says so.",
        "look at its pods: their events and logs have the reason",
    ),
    row(
        "W018",
        "a CRD's names belong to another",
        &[
            "NamesNotAccepted",
            "MultipleNamesConflict",
            "PluralConflict",
            "SingularConflict",
            "KindConflict",
            "ShortNamesConflict",
        ],
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        "Another CRD of the same group already has its plural, singular, kind or a short name.",
        "remove or rename the other one",
    ),
    row(
        "W019",
        "an object does not go away",
        &["Terminating"],
        ALL,
        "Somebody asked for its deletion, and a finalizer holds it until its controller has cleaned up.",
        "see that the controller behind the finalizer runs; taking the finalizer away by hand leaves behind what it was to clean up",
    ),
    row(
        "W020",
        "a binding accepts claims that nobody asked for",
        &["InvalidPermissionClaims"],
        BINDING,
        "The binding names a claim, or an identity, that the export does not have.",
        "compare spec.permissionClaims with status.exportPermissionClaims, identities included",
    ),
    row(
        "W021",
        "a binding's export is not there",
        &["APIExportNotFound"],
        BINDING,
        "The path or the name in spec.reference leads to no APIExport that this identity may see.",
        "correct the reference, or publish the export first",
    ),
    row(
        "W022",
        "a blueprint has a target that does not exist",
        &["InvalidTarget"],
        BLUEPRINT,
        "A resource names another target than consumer, provider or host.",
        "correct target in spec.resources",
    ),
    row(
        "W023",
        "the controller may not do what a graph asks for",
        &["PermissionMissing"],
        ALL,
        "Its role in the cluster has what was known when the platform was planned. The condition names each right that is missing; \
         nothing has failed, and it goes on by itself within half a minute after the right is there.",
        "plinth grant shows the missing rules, and plinth grant --apply adds them",
    ),
];

/// The row about a verdict on an object of this type; `None` where there is nothing to add.
pub fn advice(gvk: &GroupVersionKind, verdict: &Verdict) -> Option<&'static Advice> {
    advice_on(gvk, &verdict.reason, &verdict.message)
}

/// The same for a verdict that travelled as reason and message.
pub fn advice_on(gvk: &GroupVersionKind, reason: &str, message: &str) -> Option<&'static Advice> {
    let of_kind = |row: &Advice| row.kind == ALL || row.kind == (gvk.group.as_str(), gvk.kind.as_str());
    CATALOGUE.iter().find(|row| row.reasons.contains(&reason) && of_kind(row) && message.contains(row.says))
}

#[cfg(test)]
mod tests;
