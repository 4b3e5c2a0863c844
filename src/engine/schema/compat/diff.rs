//! Walking two schemas side by side.

use std::collections::BTreeSet;

use serde_json::Value;

use super::change::{Bound, Change, ChangeKind, Changes};
use crate::schema::{Additional, Schema};

#[derive(Default)]
pub(super) struct Diff {
    pub(super) changes: Changes,
    /// In a status, which only its controller writes.
    pub(super) status: bool,
}

impl Diff {
    fn breaking(&mut self, path: &str, kind: ChangeKind, old: impl ToString, new: impl ToString) {
        self.changes.breaking.push(change(path, kind, old, new));
    }

    fn compatible(&mut self, path: &str, kind: ChangeKind, old: impl ToString, new: impl ToString) {
        self.changes.compatible.push(change(path, kind, old, new));
    }

    /// Breaking where it takes something away.
    fn either(&mut self, breaks: bool, path: &str, kind: ChangeKind, old: impl ToString, new: impl ToString) {
        if breaks { self.breaking(path, kind, old, new) } else { self.compatible(path, kind, old, new) }
    }

    pub(super) fn schemas(&mut self, old: &Schema, new: &Schema, path: &str) {
        if old == new {
            return;
        }
        if self.status && is_anything(old) && !is_anything(new) {
            return self.compatible(path, ChangeKind::Described, "", "");
        }
        if old.kind != new.kind || old.int_or_string != new.int_or_string {
            let name = |schema: &Schema| schema.kind.clone().unwrap_or_else(|| "anything".to_owned());
            let widened = !old.int_or_string && new.int_or_string && (old.is("string") || old.is("integer"));
            self.described(old, new, path);
            return self.either(!widened, &format!("{path}.type"), ChangeKind::TypeChanged, name(old), name(new));
        }
        self.properties(old, new, path);
        self.required(old, new, path);
        self.values(old, new, path);
        self.additional(old, new, path);
        match (&old.items, &new.items) {
            (Some(old), Some(new)) => self.schemas(old, new, &format!("{path}.items")),
            (None, None) => {}
            (old, new) => {
                self.either(new.is_some(), &format!("{path}.items"), ChangeKind::ConstraintChanged, old.is_some(), new.is_some());
            }
        }
        self.extensions(old, new, path);
        self.others(old, new, path);
    }

    fn properties(&mut self, old: &Schema, new: &Schema, path: &str) {
        let names: BTreeSet<&String> = old.properties.keys().chain(new.properties.keys()).collect();
        for name in names {
            let path = format!("{path}.properties.{name}");
            match (old.properties.get(name), new.properties.get(name)) {
                (Some(old), Some(new)) => self.schemas(old, new, &path),
                (Some(_), None) => self.breaking(&path, ChangeKind::PropertyRemoved, "", ""),
                (None, Some(property)) if new.required.contains(name) && property.default.is_none() => {
                    self.breaking(&path, ChangeKind::PropertyAdded, "required=false", "required=true");
                }
                (None, _) => self.compatible(&path, ChangeKind::PropertyAdded, "", ""),
            }
        }
    }

    fn required(&mut self, old: &Schema, new: &Schema, path: &str) {
        let path = format!("{path}.required");
        let has_default = |schema: &Schema, name: &str| schema.properties.get(name).is_some_and(|field| field.default.is_some());
        for name in &new.required {
            let existed = old.properties.contains_key(name) || !new.properties.contains_key(name);
            if old.required.contains(name) {
                if has_default(old, name) && !has_default(new, name) {
                    self.breaking(&path, ChangeKind::RequiredDefaultRemoved, name, "");
                }
            } else if existed {
                // With a default too: kro looks at that of new fields only.
                self.breaking(&path, ChangeKind::RequiredAdded, "", name);
            }
        }
        for name in old.required.iter().filter(|name| !new.required.contains(name)) {
            self.compatible(&path, ChangeKind::RequiredRemoved, name, "");
        }
    }

    /// What is no constraint.
    fn described(&mut self, old: &Schema, new: &Schema, path: &str) {
        if old.description != new.description {
            let text = |schema: &Schema| schema.description.clone().unwrap_or_default();
            self.compatible(&format!("{path}.description"), ChangeKind::DescriptionChanged, text(old), text(new));
        }
        if old.default != new.default {
            let text = |schema: &Schema| schema.default.as_ref().map(Value::to_string).unwrap_or_default();
            self.compatible(&format!("{path}.default"), ChangeKind::DefaultChanged, text(old), text(new));
        }
    }

    fn values(&mut self, old: &Schema, new: &Schema, path: &str) {
        self.described(old, new, path);
        let at = format!("{path}.pattern");
        match (&old.pattern, &new.pattern) {
            (None, Some(new)) => self.breaking(&at, ChangeKind::PatternAdded, "", new),
            (Some(old), None) => self.compatible(&at, ChangeKind::PatternRemoved, old, ""),
            (Some(old), Some(new)) if old != new => self.breaking(&at, ChangeKind::PatternChanged, old, new),
            _ => {}
        }
        self.enumeration(old, new, &format!("{path}.enum"));
        self.bound(Bound::Minimum, old.minimum, new.minimum, path);
        self.bound(Bound::Maximum, old.maximum, new.maximum, path);
        self.bound(Bound::MinLength, float(old.min_length), float(new.min_length), path);
        self.bound(Bound::MaxLength, float(old.max_length), float(new.max_length), path);
        self.bound(Bound::MinItems, float(old.min_items), float(new.min_items), path);
        self.bound(Bound::MaxItems, float(old.max_items), float(new.max_items), path);
    }

    fn enumeration(&mut self, old: &Schema, new: &Schema, path: &str) {
        let all = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
        match (old.values.as_slice(), new.values.as_slice()) {
            ([], []) => {}
            ([], new) => self.breaking(path, ChangeKind::EnumAdded, "", all(new)),
            (old, []) => self.compatible(path, ChangeKind::EnumRemoved, all(old), ""),
            (old, new) => {
                for value in old.iter().filter(|value| !new.contains(value)) {
                    self.breaking(path, ChangeKind::EnumRestricted, value, "");
                }
                for value in new.iter().filter(|value| !old.contains(value)) {
                    self.compatible(path, ChangeKind::EnumExpanded, "", value);
                }
            }
        }
    }

    fn bound(&mut self, bound: Bound, old: Option<f64>, new: Option<f64>, path: &str) {
        let path = format!("{path}.{}", bound.keyword());
        match (old, new) {
            (None, Some(new)) => self.breaking(&path, ChangeKind::BoundAdded(bound), "", new),
            (Some(old), None) => self.compatible(&path, ChangeKind::BoundRemoved(bound), old, ""),
            (Some(old), Some(new)) if old.total_cmp(&new).is_ne() => {
                let tighter = (new > old) == bound.is_lower();
                let kind = if tighter { ChangeKind::BoundTightened(bound) } else { ChangeKind::BoundRelaxed(bound) };
                self.either(tighter, &path, kind, old, new);
            }
            _ => {}
        }
    }

    fn additional(&mut self, old: &Schema, new: &Schema, path: &str) {
        let path = format!("{path}.additionalProperties");
        let closed = |additional: &Option<Additional>| matches!(additional, None | Some(Additional::Allowed(false)));
        match (&old.additional_properties, &new.additional_properties) {
            (Some(Additional::Schema(old)), Some(Additional::Schema(new))) => self.schemas(old, new, &path),
            (old, new) if old == new => {}
            (old, new) if closed(old) && closed(new) => self.compatible(&path, ChangeKind::ConstraintChanged, "", ""),
            (old, _) if closed(old) => self.compatible(&path, ChangeKind::AdditionalPropertiesAdded, "", ""),
            (_, Some(Additional::Allowed(true))) => self.compatible(&path, ChangeKind::AdditionalPropertiesAdded, "", ""),
            (_, Some(Additional::Schema(_))) => self.breaking(&path, ChangeKind::ConstraintChanged, "", ""),
            _ => self.breaking(&path, ChangeKind::AdditionalPropertiesRemoved, "", ""),
        }
    }

    fn extensions(&mut self, old: &Schema, new: &Schema, path: &str) {
        self.validations(old, new, &format!("{path}.x-kubernetes-validations"));
        if (&old.list_type, &old.list_map_keys) != (&new.list_type, &new.list_map_keys) {
            let text = |schema: &Schema| match (&schema.list_type, schema.list_map_keys.join(",")) {
                (Some(list), keys) if keys.is_empty() => list.clone(),
                (Some(list), keys) => format!("{list} by {keys}"),
                (None, _) => String::new(),
            };
            // Lists that may hold anything twice take every list that was right before.
            let loose = matches!(new.list_type.as_deref(), None | Some("atomic"));
            self.either(!loose, &format!("{path}.x-kubernetes-list-type"), ChangeKind::ListTypeChanged, text(old), text(new));
        }
        let at = format!("{path}.x-kubernetes-preserve-unknown-fields");
        match (old.preserve_unknown_fields, new.preserve_unknown_fields) {
            (true, false) if self.status => self.compatible(&at, ChangeKind::Described, "", ""),
            (true, false) => self.breaking(&at, ChangeKind::PreserveUnknownRemoved, "true", ""),
            (false, true) => self.compatible(&at, ChangeKind::PreserveUnknownAdded, "", "true"),
            _ => {}
        }
        if old.format != new.format {
            let text = |schema: &Schema| schema.format.clone().unwrap_or_default();
            let breaks = new.format.is_some() && !self.status;
            self.either(breaks, &format!("{path}.format"), ChangeKind::FormatChanged, text(old), text(new));
        }
        match (old.nullable, new.nullable) {
            (true, false) => self.breaking(&format!("{path}.nullable"), ChangeKind::NullableRemoved, "true", ""),
            (false, true) => self.compatible(&format!("{path}.nullable"), ChangeKind::NullableAdded, "", "true"),
            _ => {}
        }
    }

    fn validations(&mut self, old: &Schema, new: &Schema, path: &str) {
        for rule in &new.validations {
            match old.validations.iter().find(|other| other.rule == rule.rule) {
                None => self.breaking(path, ChangeKind::ValidationAdded, "", &rule.rule),
                Some(other) if other != rule => self.compatible(path, ChangeKind::ValidationReworded, &rule.rule, &rule.rule),
                Some(_) => {}
            }
        }
        for rule in old.validations.iter().filter(|rule| new.validations.iter().all(|other| other.rule != rule.rule)) {
            self.compatible(path, ChangeKind::ValidationRemoved, &rule.rule, "");
        }
    }

    /// Keywords that SimpleSchema does not make: any difference counts as breaking, so that none is overlooked.
    fn others(&mut self, old: &Schema, new: &Schema, path: &str) {
        let differs = [
            ("exclusiveMinimum", old.exclusive_minimum != new.exclusive_minimum),
            ("exclusiveMaximum", old.exclusive_maximum != new.exclusive_maximum),
            ("multipleOf", old.multiple_of != new.multiple_of),
            ("uniqueItems", old.unique_items != new.unique_items),
            ("minProperties", old.min_properties != new.min_properties),
            ("maxProperties", old.max_properties != new.max_properties),
            ("allOf", old.all_of != new.all_of),
            ("anyOf", old.any_of != new.any_of),
            ("oneOf", old.one_of != new.one_of),
            ("not", old.not != new.not),
            ("x-kubernetes-embedded-resource", old.embedded_resource != new.embedded_resource),
            ("x-kubernetes-map-type", old.map_type != new.map_type),
        ];
        for (keyword, _) in differs.into_iter().filter(|(_, differs)| *differs) {
            self.breaking(&format!("{path}.{keyword}"), ChangeKind::ConstraintChanged, "", "");
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "numbers, flags and text alike, read better without a reference")]
fn change(path: &str, kind: ChangeKind, old: impl ToString, new: impl ToString) -> Change {
    Change { path: path.to_owned(), kind, old: old.to_string(), new: new.to_string() }
}

/// Whether a schema describes nothing.
fn is_anything(schema: &Schema) -> bool {
    schema.preserve_unknown_fields && schema.properties.is_empty()
}

#[expect(clippy::cast_precision_loss, reason = "lengths and counts are small")]
fn float(number: Option<i64>) -> Option<f64> {
    number.map(|number| number as f64)
}
