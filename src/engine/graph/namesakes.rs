//! Definitions that stand in each other's way.

use std::collections::BTreeMap;

use super::definition::Definition;
use crate::Diagnostic;

/// Of definitions that are meant for one cluster, those that the ones before them leave no room for: by their position, with the
/// finding. An API server has one object of a name, and a kind belongs to one definition. `place` says where a definition is,
/// for people.
pub fn namesakes<'a>(definitions: impl IntoIterator<Item = (&'a str, &'a Definition)>) -> Vec<(usize, Diagnostic)> {
    let mut names: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut kinds: BTreeMap<(&str, &str), (&str, &str)> = BTreeMap::new();
    let mut found = Vec::new();
    for (position, (place, definition)) in definitions.into_iter().enumerate() {
        let (name, schema) = (definition.name.as_str(), &definition.spec.schema);
        if let Some(first) = names.insert((definition.group.as_str(), name), place) {
            let message = format!("another ResourceGraphDefinition has the name {name:?}: of the two, one would be left");
            found.push((position, at(definition, "metadata.name", message, first)));
        } else if let Some((other, first)) = kinds.get(&(schema.group.as_str(), schema.kind.as_str())) {
            let message = format!("CRD is owned by another ResourceGraphDefinition {other}: it defines {}, too", schema.kind);
            found.push((position, at(definition, "spec.schema.kind", message, first)));
        }
        kinds.entry((schema.group.as_str(), schema.kind.as_str())).or_insert((name, place));
    }
    found
}

fn at(definition: &Definition, path: &str, message: String, first: &str) -> Diagnostic {
    let mut finding = Diagnostic::error(path, message).with_hint(format!("the other is in {first}"));
    finding.location = definition.source.as_ref().and_then(|source| source.locations.nearest(path));
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{definition, rgd};

    #[test]
    fn names_and_kinds_belong_to_one_definition() {
        let of = |name: &str, kind: &str| {
            definition(
                &rgd("", "", "").replace("name: test", &format!("name: {name}")).replace("kind: Test", &format!("kind: {kind}")),
            )
            .unwrap()
        };
        let all = [of("a", "A"), of("b", "B"), of("a", "C"), of("d", "B")];
        let found = namesakes(["1.yaml", "2.yaml", "3.yaml", "4.yaml"].into_iter().zip(&all));
        let said: Vec<_> = found.iter().map(|(position, finding)| (*position, finding.to_string())).collect();
        assert_eq!(said.len(), 2, "{said:#?}");
        assert!(said[0].0 == 2 && said[0].1.starts_with("4:9 metadata.name: ") && said[0].1.contains("1.yaml"), "{said:#?}");
        assert!(said[1].0 == 3 && said[1].1.contains("ResourceGraphDefinition b") && said[1].1.contains("2.yaml"), "{said:#?}");
    }
}
