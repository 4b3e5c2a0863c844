//! Whose an object is that a graph would make.

use plinth_api::Object;
use plinth_engine::naming::{self, keys};

use crate::{managed, others::Tool, settings::Settings};

/// Somebody who is not this platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// For people.
    pub(crate) name: String,
    /// The other platform, where it is one.
    pub(crate) platform: Option<String>,
    /// Whether it works on: then `--take-over` does not help, since both would write.
    pub(crate) is_controller: bool,
}

/// Who owns an object, if not this platform. What a loop of ours made says so by the platform's label.
pub(super) fn foreign_owner(live: &Object, settings: &Settings) -> Option<Owner> {
    let ours = naming::label_value(&settings.platform);
    match live.label(keys::PLATFORM) {
        Some(platform) if platform == ours => return None,
        Some(platform) => {
            let name = format!("platform {platform}");
            return Some(Owner { name, platform: Some(platform.to_owned()), is_controller: true });
        }
        // Somebody took the label off what a run or a loop of ours wrote: it is ours all the same.
        None if [keys::MANAGER, keys::MANAGER_APPLYSET]
            .iter()
            .any(|manager| managed::applied_by(live, manager).next().is_some()) =>
        {
            return None;
        }
        None => {}
    }
    if live.label(keys::OWNED) == Some("true") {
        let controller = live.label(keys::MANAGED_BY).unwrap_or("kro");
        let tool = if controller.starts_with("krop") { Tool::Krop } else { Tool::Kro };
        let is_controller = !settings.idle.contains(&tool);
        return Some(Owner { name: format!("an instance of {controller}"), platform: None, is_controller });
    }
    let name = writers(live).unwrap_or_else(|| "somebody else".to_owned());
    Some(Owner { name, platform: None, is_controller: false })
}

/// The field managers of an object, but those of its subresources.
fn writers(live: &Object) -> Option<String> {
    let mut names: Vec<&str> = managed::records(live).filter_map(|record| record["manager"].as_str()).collect();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(labels: &Value, managers: &[&str]) -> Object {
        let entries: Vec<Value> = managers.iter().map(|manager| json!({"manager": manager, "subresource": ""})).collect();
        let metadata = json!({"name": "x", "labels": labels, "managedFields": entries});
        Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap()
    }

    #[test]
    fn an_object_says_whose_it_is() {
        let settings = Settings::default();
        for (labels, managers, name, is_controller) in [
            (json!({}), vec!["kubectl-create", "helm"], "kubectl-create, helm", false),
            (json!({}), vec![], "somebody else", false),
            (json!({"plinth.dev/platform": "other"}), vec![], "platform other", true),
            (json!({"kro.run/owned": "true", "app.kubernetes.io/managed-by": "kro"}), vec!["kro"], "an instance of kro", true),
        ] {
            let owner = foreign_owner(&object(&labels, &managers), &settings).unwrap();
            assert_eq!((owner.name.as_str(), owner.is_controller), (name, is_controller));
        }
        let mut bare = object(&json!({}), &["plinth.dev/plinth", "kubectl-edit"]);
        bare.metadata_mut()["managedFields"][0]["operation"] = "Apply".into();
        assert_eq!(foreign_owner(&bare, &settings), None, "it lost its label");
        assert_eq!(foreign_owner(&object(&json!({"plinth.dev/platform": "default"}), &["kubectl"]), &settings), None);
    }
}
