//! Plans as files: `plan -f` saves one, `up --plan` carries it out.

use std::path::Path;

use plinth_api::platform::API_VERSION;
use plinth_run::Plan;

use crate::{exit::Failure, files};

/// Saves a plan as JSON.
pub(crate) fn write(plan: &Plan, path: &Path) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(plan).expect("a plan is made of strings, numbers and lists");
    text.push('\n');
    std::fs::write(path, text).map_err(|error| Failure::failed(format!("write the plan to {}: {error}", path.display())))
}

/// Reads a saved plan. What is no plan of this version is refused.
pub(crate) fn read(path: &Path) -> Result<Plan, Failure> {
    let text = files::text(path).map_err(Failure::refused)?;
    let refused = |what: String| {
        Failure::refused(format!("read the plan {}: {what}", path.display())).hint("plinth plan SOURCE -f FILE saves a plan")
    };
    let plan: Plan = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
    if (plan.api_version.as_str(), plan.kind.as_str()) != (API_VERSION, "Plan") {
        return Err(refused(format!("it is a {} of {}, not a Plan of {API_VERSION}", plan.kind, plan.api_version)));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use plinth_run::Outcome;

    use super::*;

    #[test]
    fn a_plan_is_read_as_it_was_saved_and_nothing_else_is_a_plan() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plan.json");
        let plan = Plan {
            api_version: API_VERSION.into(),
            kind: "Plan".into(),
            platform: "default".into(),
            inputs: "sha256:1".into(),
            ..Plan::default()
        };
        write(&plan, &file).unwrap();
        assert_eq!(read(&file).unwrap(), plan);
        for (text, message) in [
            ("{", "EOF while parsing"),
            ("[]", "invalid"),
            (r#"{"apiVersion": "v1", "kind": "List"}"#, "missing field"),
            (&serde_json::to_string(&Plan { kind: "Lock".into(), ..plan.clone() }).unwrap(), "it is a Lock of plinth.dev"),
        ] {
            std::fs::write(&file, text).unwrap();
            let failure = read(&file).unwrap_err();
            assert_eq!(failure.outcome, Outcome::Refused);
            assert!(failure.message.contains(message) && failure.message.contains("plan.json"), "{failure:?}");
        }
        assert!(read(&folder.path().join("none")).unwrap_err().message.contains("none"));
    }
}
