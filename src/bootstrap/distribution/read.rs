//! Reading the documents of a distribution.

use std::collections::BTreeSet;

use plinth_api::{GroupKind, GroupVersionKind, Object, lock::LockedRef, rgd};
use plinth_engine::{
    Diagnostic,
    graph::Definition,
    yaml::{self, Document, Locations},
};
use plinth_releasechannel::localization::{Applied, Localization};
use serde_json::{Value, json};

use super::{Rgd, made_kinds};
use crate::{
    content::{Content, RgdText},
    error::Error,
};

/// What one resource's definitions define and make, read without judging them: enough to find the top-level one.
pub(super) struct Outline<'a> {
    pub(super) component: &'a LockedRef,
    pub(super) defines: BTreeSet<GroupKind>,
    pub(super) makes: BTreeSet<GroupKind>,
    /// The text is wrong.
    pub(super) is_unreadable: bool,
}

/// Outlines of all definition resources. A definition that makes its own kind does not hide itself.
pub(super) fn outlines(content: &Content) -> Vec<Outline<'_>> {
    content.rgds.iter().map(outline).collect()
}

fn outline(text: &RgdText) -> Outline<'_> {
    let read = definitions(text, &Localization::default(), &mut Applied::default());
    let mut outline =
        Outline { component: &text.component, defines: BTreeSet::new(), makes: BTreeSet::new(), is_unreadable: read.is_err() };
    for (definition, _) in read.unwrap_or_default() {
        let schema = &definition.spec.schema;
        let own = GroupKind { group: schema.group.clone(), kind: schema.kind.clone() };
        outline.makes.extend(made_kinds(&definition.spec).iter().map(GroupVersionKind::group_kind).filter(|kind| *kind != own));
        outline.defines.insert(own);
    }
    outline
}

/// What was found of images, by document.
type Found = Vec<(String, Applied)>;

/// All definitions of the component versions that `wanted` says, with all findings of the first resource that is wrong.
/// Images are localized before anything else looks at a document; what was found is told by resource.
pub(super) fn rgds(content: &Content, wanted: impl Fn(&LockedRef) -> bool) -> Result<(Vec<Rgd>, Found), Error> {
    let (mut rgds, mut found) = (Vec::new(), Vec::new());
    for text in content.rgds.iter().filter(|text| wanted(&text.component)) {
        let document =
            |findings| Error::Document { component: text.component.clone(), resource: text.resource.clone(), findings };
        let mut applied = Applied::default();
        for (definition, object) in definitions(text, &content.images, &mut applied).map_err(document)? {
            let (component, resource) = (text.component.clone(), text.resource.clone());
            rgds.push(Rgd { component, resource, object, definition });
        }
        let document = format!("{} of component {}:{}", text.resource, text.component.name, text.component.version);
        found.push((document, applied));
    }
    Ok((rgds, found))
}

/// The definitions of one resource; at least one.
fn definitions(
    text: &RgdText,
    images: &Localization,
    applied: &mut Applied,
) -> Result<Vec<(Definition, Object)>, Vec<Diagnostic>> {
    let mut documents = yaml::documents_with_duplicates(&text.text).map_err(|finding| vec![finding])?;
    let mut findings = Vec::new();
    let mut read = Vec::new();
    for document in &mut documents {
        images.apply(&mut document.value, applied);
        match definition(document, &text.text) {
            Ok(pair) => read.push(pair),
            Err(more) => findings.extend(more),
        }
    }
    if findings.is_empty() && read.is_empty() {
        findings.push(Diagnostic::error("", format!("holds no {}", rgd::KIND)));
    }
    if findings.is_empty() { Ok(read) } else { Err(findings) }
}

fn definition(document: &Document, text: &str) -> Result<(Definition, Object), Vec<Diagnostic>> {
    let definition = Definition::from_document(document, text)?;
    if definition.is_refused() {
        return Err(definition.findings);
    }
    let object = Object::from_value(document.value.clone());
    Ok((definition, object.expect("a document that is a definition is a mapping")))
}

/// The instance that a distribution ships with the places of its fields, or a bare one.
pub(super) fn instance(content: &Content, component: &LockedRef, root: &Rgd) -> Result<(Object, Locations), Error> {
    let gvk = root.defines();
    let Some((_, text)) = content.instances.iter().find(|(owner, _)| owner == component) else {
        let bare = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": {"name": "default"}, "spec": {}});
        return Ok((Object::from_value(bare).expect("a JSON object was just written"), Locations::default()));
    };
    let refuse = |findings| Error::Document { component: component.clone(), resource: "instance".into(), findings };
    let documents = yaml::documents(text).map_err(|finding| refuse(vec![finding]))?;
    let [document] = documents.as_slice() else {
        let finding = Diagnostic::error("", format!("must be one document, and holds {}", documents.len()));
        return Err(refuse(vec![finding]));
    };
    let instance = checked_instance(document, &gvk).map_err(|mut finding| {
        document.locations.locate(std::slice::from_mut(&mut finding));
        refuse(vec![finding])
    })?;
    Ok((instance, document.locations.clone()))
}

/// A value of another type would count as not there; `n`, `no` and `12` are such without quotes.
fn not_text(metadata: &Value, field: &str) -> Result<(), Diagnostic> {
    match metadata.get(field) {
        None | Some(Value::String(_) | Value::Null) => Ok(()),
        Some(other) => {
            let finding = Diagnostic::error(format!("metadata.{field}"), format!("must be text, and is {other}"));
            Err(Diagnostic { hint: Some("put it in quotes".to_owned()), ..finding })
        }
    }
}

fn checked_instance(document: &Document, gvk: &GroupVersionKind) -> Result<Object, Diagnostic> {
    let Some(object) = Object::from_value(document.value.clone()) else {
        return Err(Diagnostic::error("", "must be a mapping"));
    };
    if object.gvk().as_ref() != Some(gvk) {
        let found = object.gvk().map_or_else(|| "nothing".to_owned(), |found| found.to_string());
        let message = format!("must be a {gvk}, the kind of the top-level definition, and is {found}");
        return Err(Diagnostic::error("kind", message));
    }
    for field in ["name", "namespace"] {
        not_text(&document.value["metadata"], field)?;
    }
    if object.name().is_empty() {
        return Err(Diagnostic::error("metadata.name", "a name is required"));
    }
    if !matches!(object.spec(), Value::Object(_) | Value::Null) {
        return Err(Diagnostic::error("spec", "must be a mapping"));
    }
    Ok(object)
}
