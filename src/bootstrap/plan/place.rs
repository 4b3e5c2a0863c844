//! Where a platform lives: under names that a server takes, and in one place.

use plinth_engine::{
    naming::{self, keys},
    ports::Reader,
};

use crate::{
    error::Error,
    removal,
    settings::Settings,
    wanted::{self, Step, Wanted},
};

/// Longest namespace.
const LONGEST_LABEL: usize = 63;
/// Longest name.
const LONGEST_NAME: usize = 253;

/// Refuses names that no server takes; values and flags bring them.
pub(super) fn names(wanted: &[Wanted]) -> Result<(), Error> {
    for wanted in wanted {
        let key = &wanted.key;
        let is_namespace = key.gvk == wanted::namespace_kind();
        let (name, longest) = (key.name.as_str(), if is_namespace { LONGEST_LABEL } else { LONGEST_NAME });
        let is_good = if is_namespace { naming::is_label(name) } else { naming::is_subdomain(name) };
        if !is_good || name.len() > longest {
            let dot = if is_namespace { "" } else { " or ." };
            return Err(Error::Name { kind: key.gvk.kind.clone(), name: name.to_owned(), dot, longest });
        }
    }
    Ok(())
}

/// Refuses to bring another distribution up under the name of a platform that is there: one removal would take both.
pub(super) async fn same_distribution(wanted: &[Wanted], settings: &Settings, reader: &dyn Reader) -> Result<(), Error> {
    let Some(instance) = wanted.iter().find(|wanted| wanted.step == Step::Instance) else { return Ok(()) };
    for found in removal::tops(&settings.platform, reader).await? {
        let is_same = found.key.gvk.group_kind() == instance.key.gvk.group_kind();
        if !is_same && !found.object.is_terminating() {
            let (found, wanted) = (Box::new(found.key), Box::new(instance.key.clone()));
            return Err(Error::OtherDistribution { platform: settings.platform.clone(), found, wanted });
        }
    }
    Ok(())
}

/// Refuses a second place for a platform that lives somewhere already, or was begun there: what is there would stay behind.
pub(super) async fn only_one(wanted: &[Wanted], settings: &Settings, reader: &dyn Reader) -> Result<(), Error> {
    let selector = format!("{}={}", keys::PLATFORM, naming::label_value(&settings.platform));
    // The controller is in a namespace of its own, whose kinds the platform's children have too.
    let is_placed =
        |wanted: &&Wanted| wanted.step == Step::Instance || wanted.key.namespace.is_some() && wanted.step != Step::Controller;
    let places = wanted.iter().rev().filter(is_placed);
    for wanted in places {
        let there = removal::list(reader, &wanted.key.gvk, &selector).await?;
        let is_elsewhere = |key: &plinth_api::ObjectKey| {
            key.namespace != wanted.key.namespace || wanted.step == Step::Instance && key.name != wanted.key.name
        };
        if let Some(other) = there.into_iter().map(|found| found.key).find(is_elsewhere) {
            let (object, wanted) = (Box::new(other), Box::new(wanted.key.clone()));
            return Err(Error::Elsewhere { platform: settings.platform.clone(), object, wanted });
        }
    }
    Ok(())
}
