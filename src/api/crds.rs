//! The CustomResourceDefinitions that plinth installs, as manifests beside this file and as objects.
//!
//! Fields, rules, columns and names are those of the peers that the kinds come from (reference/kro.md 1.1, krop.md 2,
//! openmcp.md 3), so that a manifest accepted there is accepted here and an existing installation can be taken over.

use serde_json::Value;

use crate::object::Object;

/// One manifest: the CRD's name and its YAML.
#[derive(Clone, Copy, Debug)]
pub struct Manifest {
    /// `metadata.name`, as in `repositories.delivery.ocm.software`.
    pub name: &'static str,
    /// The document, fit for `kubectl apply`.
    pub yaml: &'static str,
}

/// ResourceGraphDefinition of `kro.run`.
pub const KRO_RGD: Manifest =
    Manifest { name: "resourcegraphdefinitions.kro.run", yaml: include_str!("crds/kro.run_resourcegraphdefinitions.yaml") };

/// ResourceGraphDefinition of `krop.opendefense.cloud`, a blueprint.
pub const KROP_RGD: Manifest = Manifest {
    name: "resourcegraphdefinitions.krop.opendefense.cloud",
    yaml: include_str!("crds/krop.opendefense.cloud_resourcegraphdefinitions.yaml"),
};

/// GraphRevision of `internal.kro.run`: the accepted states of a ResourceGraphDefinition of `kro.run`.
pub const KRO_REVISION: Manifest =
    Manifest { name: "graphrevisions.internal.kro.run", yaml: include_str!("crds/internal.kro.run_graphrevisions.yaml") };

/// Repository, Component, Resource, Deployer and Discovery of `delivery.ocm.software`.
pub const DELIVERY: [Manifest; 5] = [
    Manifest { name: "repositories.delivery.ocm.software", yaml: include_str!("crds/delivery.ocm.software_repositories.yaml") },
    Manifest { name: "components.delivery.ocm.software", yaml: include_str!("crds/delivery.ocm.software_components.yaml") },
    Manifest { name: "resources.delivery.ocm.software", yaml: include_str!("crds/delivery.ocm.software_resources.yaml") },
    Manifest { name: "deployers.delivery.ocm.software", yaml: include_str!("crds/delivery.ocm.software_deployers.yaml") },
    Manifest { name: "discoveries.delivery.ocm.software", yaml: include_str!("crds/delivery.ocm.software_discoveries.yaml") },
];

/// Artifact of `plinth.dev`, for clusters whose Platform asks for Artifacts.
pub const ARTIFACT: Manifest = Manifest { name: "artifacts.plinth.dev", yaml: include_str!("crds/plinth.dev_artifacts.yaml") };

/// Platform of `plinth.dev`.
pub const PLATFORM: Manifest = Manifest { name: "platforms.plinth.dev", yaml: include_str!("crds/plinth.dev_platforms.yaml") };

impl Manifest {
    /// The CRD as an object.
    ///
    /// # Panics
    /// Never: the text is compiled in, and a test reads every manifest.
    pub fn object(&self) -> Object {
        let value: Value = serde_saphyr::from_str(self.yaml).expect("a compiled-in manifest is valid YAML");
        Object::from_value(value).expect("a compiled-in manifest is a mapping")
    }
}

/// What a platform cluster needs: kro's ResourceGraphDefinition with its revisions, and the delivery kinds.
pub fn platform() -> Vec<Object> {
    [KRO_RGD, KRO_REVISION].into_iter().chain(DELIVERY).map(|manifest| manifest.object()).collect()
}

/// Every CRD that plinth's chart brings: those of a platform, and the Platform's own.
pub fn of_the_chart() -> Vec<Manifest> {
    [KRO_RGD, KRO_REVISION, PLATFORM].into_iter().chain(DELIVERY).collect()
}

#[cfg(test)]
mod tests;
