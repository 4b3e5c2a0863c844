//! From a resource of the definition to a draft: its form, its kind, its template (kro.md section 6, step 3).

use std::{cmp::Reverse, sync::Arc};

use plinth_api::{GroupVersionKind, rgd::RgdResource};
use serde_json::{Map, Value};

use super::{
    definition::Definition,
    draft::{Draft, below, entries, parse},
    findings::Findings,
    metadata,
    node::{NodeKind, Slot},
    selector,
};
use crate::{
    Diagnostic,
    diagnostic::Severity,
    naming::is_name_of_kind,
    schema::{Found, Lookup, SchemaSource, Segment, builtin},
    template::{Walked, path_text, walk, walk_open},
    yaml::element,
};

/// What a draft is made with.
pub(super) struct Context<'a> {
    pub(super) definition: &'a Definition,
    pub(super) schemas: &'a dyn SchemaSource,
    /// Whether instances are namespaced.
    pub(super) namespaced: bool,
}

/// Reads one resource; `None` where it has neither template nor external reference.
pub(super) fn draft(index: usize, resource: &RgdResource, context: &Context<'_>, findings: &mut Findings<'_>) -> Option<Draft> {
    let path = element("spec.resources", index);
    let (kind, object) = form(resource, &path, context.definition.is_damaged(&path), findings)?;
    let mut draft = Draft::new(resource.id.clone(), path, kind, object);
    draft.doubtful = context.definition.may_iterate(&draft.path);
    entries(resource, &mut draft, findings);
    well_formed(&draft, findings);
    draft.gvk = gvk(&draft, findings);
    if let Some(Lookup::Served(info)) = draft.gvk.as_ref().map(|gvk| context.schemas.kind(gvk)) {
        draft.info = Some(info);
    }
    unservable(&mut draft, findings);
    of_own_kind(&mut draft, context, findings);
    nameless(&draft, findings);
    scope(&draft, context, findings);
    reserved(&draft, findings);
    draft.slots = slots_of(&draft, findings);
    Some(draft)
}

fn form(resource: &RgdResource, path: &str, damaged: bool, findings: &mut Findings<'_>) -> Option<(NodeKind, Value)> {
    let id = &resource.id;
    match (&resource.template, &resource.external_ref) {
        (Some(template), reference) => {
            if reference.is_some() {
                findings.error(path, format!("resource {id:?}: cannot use externalRef with template"));
            }
            let kind = if resource.for_each.is_empty() { NodeKind::Template } else { NodeKind::Collection };
            Some((kind, Value::Object(template.clone())))
        }
        (None, Some(reference)) => {
            if !resource.for_each.is_empty() {
                findings.error(path, format!("resource {id:?}: cannot use externalRef with forEach"));
            }
            let has =
                |name: &str| reference.pointer(&format!("/metadata/{name}")).is_some_and(|value| !value.is_null() && value != "");
            if has("name") == has("selector") {
                let message =
                    format!("invalid external ref metadata for resource {id}: exactly one of name or selector must be provided");
                findings.error(format!("{path}.externalRef.metadata"), message);
            }
            let kind = if has("selector") { NodeKind::ExternalSelector } else { NodeKind::External };
            Some((kind, reference.clone()))
        }
        (None, None) if damaged => None,
        (None, None) => {
            findings.error(path, format!("resource {id:?}: exactly one of template or externalRef must be provided"));
            None
        }
    }
}

fn well_formed(draft: &Draft, findings: &mut Findings<'_>) {
    let prefix = format!("resource {} is not a valid Kubernetes object", draft.id);
    for name in ["apiVersion", "kind"] {
        match draft.object.get(name) {
            None | Some(Value::Null) => findings.error(draft.root(), format!("{prefix}: {name} field not found")),
            Some(Value::String(_)) => {}
            Some(_) => findings.error(below(&draft.root(), name), format!("{prefix}: {name} field is not a string")),
        }
    }
    match draft.object.get("metadata") {
        None => findings.error(draft.root(), format!("{prefix}: metadata field not found")),
        Some(Value::Object(_)) => {}
        Some(_) => findings.error(below(&draft.root(), "metadata"), format!("{prefix}: metadata field is not a map")),
    }
}

fn gvk(draft: &Draft, findings: &mut Findings<'_>) -> Option<GroupVersionKind> {
    let text = |name: &str| draft.object.get(name).and_then(Value::as_str);
    let (version, kind) = (text("apiVersion")?, text("kind")?);
    let Some(gvk) = GroupVersionKind::from_api_version(version, kind) else {
        let message = format!("invalid apiVersion format {version:?}: unexpected GroupVersion string: {version}");
        findings.error(below(&draft.root(), "apiVersion"), message);
        return None;
    };
    if !is_name_of_kind(&kind.to_lowercase()) {
        let message = format!("invalid kind {kind:?}: must be a valid DNS-1035 label when lowercased");
        findings.error(below(&draft.root(), "kind"), message);
        return None;
    }
    Some(gvk)
}

/// A kind that nobody can ever bring is a mistake, and nothing to wait for.
fn unservable(draft: &mut Draft, findings: &mut Findings<'_>) {
    let Some(gvk) = draft.gvk.as_ref().filter(|_| draft.info.is_none()) else { return };
    let (why, severity) = if gvk.api_version().contains("${") {
        ("apiVersion cannot be an expression", Severity::Error)
    } else if builtin().kind(gvk) != Lookup::NotServed {
        return;
    } else if is_of_kubernetes(gvk) {
        ("Kubernetes has no such kind, and no CRD can bring it", Severity::Error)
    } else if builtin().iter().any(|kind| kind.gvk.group == gvk.group && kind.gvk.kind == gvk.kind) {
        ("Kubernetes serves the kind in another version", Severity::Warning)
    } else {
        return;
    };
    let hint = if why.starts_with("Kubernetes") { meant(gvk, findings) } else { None };
    let kind = format!("{:?}", format!("{}, Kind={}", gvk.api_version(), gvk.kind));
    let message = format!("cannot resolve group version kind {kind}: {why}");
    findings.push(Diagnostic { severity, hint, ..Diagnostic::error(below(&draft.root(), "kind"), message) });
    if severity == Severity::Error {
        draft.gvk = None;
    }
}

/// Whether only Kubernetes itself can have a kind in this group and version: a CRD's group has a dot, and what a CRD says of a version
/// that Kubernetes serves, nobody asks.
fn is_of_kubernetes(gvk: &GroupVersionKind) -> bool {
    let is_served = |kind: &GroupVersionKind| kind.group == gvk.group && kind.version == gvk.version;
    !gvk.group.contains('.') || builtin().iter().any(|kind| is_served(&kind.gvk))
}

/// "Did you mean …": the same kind as Kubernetes has it, in its own group if it is there, else a kind of the group with a name like it.
fn meant(gvk: &GroupVersionKind, findings: &Findings<'_>) -> Option<String> {
    let same = builtin().iter().map(|kind| &kind.gvk).filter(|known| known.kind == gvk.kind);
    let best = same.min_by_key(|known| (known.group != gvk.group, known.version.len(), Reverse(known.version.as_str())));
    match best {
        Some(known) => Some(format!("did you mean {} {}?", known.api_version(), known.kind)),
        None => findings
            .near(&gvk.kind, builtin().iter().filter(|kind| kind.gvk.group == gvk.group).map(|kind| kind.gvk.kind.as_str())),
    }
}

/// An instance that makes another one of its own kind has no end, unless something decides.
fn of_own_kind(draft: &mut Draft, context: &Context<'_>, findings: &mut Findings<'_>) {
    let schema = &context.definition.spec.schema;
    let is_own = |gvk: &GroupVersionKind| gvk.group == schema.group && gvk.kind == schema.kind;
    if !draft.kind.is_owned() || !draft.gvk.as_ref().is_some_and(is_own) {
        return;
    }
    let message =
        format!("resource {:?} makes an instance of the definition's own kind, which makes another, without end", draft.id);
    let decides = !draft.include_when.is_empty() || draft.kind == NodeKind::Collection;
    let severity = if decides { Severity::Warning } else { Severity::Error };
    findings.push(Diagnostic { severity, ..Diagnostic::error(below(&draft.root(), "kind"), message) });
    if !decides {
        draft.gvk = None;
    }
}

/// Objects are applied by name.
fn nameless(draft: &Draft, findings: &mut Findings<'_>) {
    let is_named = draft.object.pointer("/metadata/name").is_some_and(|name| !name.is_null());
    if is_named || !draft.kind.is_owned() || !draft.object.get("metadata").is_some_and(Value::is_object) {
        return;
    }
    let message = format!("resource {:?} has no metadata.name: without one it is never applied", draft.id);
    let generated = draft.object.pointer("/metadata/generateName").is_some();
    let hint =
        generated.then(|| "generateName makes a new object at every apply; give it a name made of the instance's".to_owned());
    let path = below(&draft.root(), "metadata");
    findings.push(Diagnostic { severity: Severity::Warning, hint, ..Diagnostic::error(path, message) });
}

fn scope(draft: &Draft, context: &Context<'_>, findings: &mut Findings<'_>) {
    let Some(info) = &draft.info else { return };
    let written = draft.object.pointer("/metadata/namespace");
    let set = written.is_some_and(|namespace| !namespace.is_null() && namespace != "");
    let id = &draft.id;
    // In a template the field itself is too much, whatever it says.
    if !info.namespaced && (set || (draft.kind.is_owned() && written.is_some())) {
        let path = below(&draft.root(), "metadata.namespace");
        findings.error(path, format!("resource {id:?} is cluster-scoped and must not set metadata.namespace"));
    } else if info.namespaced && !set && !context.namespaced && draft.kind != NodeKind::ExternalSelector {
        let message =
            format!("resource {id:?} is namespaced and must set metadata.namespace when the instance CRD is cluster-scoped");
        findings.error(below(&draft.root(), "metadata"), message);
    }
}

fn reserved(draft: &Draft, findings: &mut Findings<'_>) {
    if !draft.kind.is_owned() {
        return;
    }
    for (list, word) in [("labels", "label"), ("annotations", "annotation")] {
        let Some(map) = draft.object.pointer(&format!("/metadata/{list}")).and_then(Value::as_object) else { continue };
        for prefix in ["kro.run/", "internal.kro.run/"] {
            if let Some(name) = map.keys().find(|name| name.starts_with(prefix)) {
                let path =
                    draft.at(&[Segment::Field("metadata".into()), Segment::Field(list.into()), Segment::Field(name.clone())]);
                let id = &draft.id;
                let message =
                    format!("invalid {word} for resource {id:?}. {list} with prefix {prefix:?} are reserved for internal use");
                findings.error(path, message);
            }
        }
    }
}

fn slots_of(draft: &Draft, findings: &mut Findings<'_>) -> Vec<Slot> {
    let walked = match (&draft.info, draft.kind) {
        (_, NodeKind::External | NodeKind::ExternalSelector) => selector::walk(&draft.object, &draft.id),
        (Some(info), _) if !is_crd(&info.gvk) => walk(&draft.object, &metadata::complete(&info.schema)),
        _ => walk_open(&draft.object),
    };
    let Walked { fields, findings: found } = walked;
    for finding in found {
        let path = below(&draft.root(), &finding.path);
        findings.hinted(path, finding.message, finding.hint);
    }
    let crd = draft.gvk.as_ref().is_some_and(is_crd) && draft.kind.is_owned();
    let parsed = fields.into_iter().filter_map(|field| {
        let (at, path) = (draft.at(&field.path), path_text(&field.path));
        if crd && !path.starts_with("metadata.") {
            let id = &draft.id;
            let message =
                format!("CEL expressions in CRDs are only supported for metadata fields, found in path {path:?}, resource {id}");
            findings.error(at, message);
            return None;
        }
        let (text, expression) = parse(field.text, &at, findings)?;
        // A CRD is walked without its schema, which does not describe schemas; what stands in its metadata has a type all the same.
        let schema = if crd { described(draft, &field.path) } else { field.schema };
        Some(Slot { path: field.path, text, expression, schema })
    });
    parsed.collect()
}

/// The schema of a place of the draft's objects.
fn described(draft: &Draft, path: &[Segment]) -> Option<Arc<crate::schema::Schema>> {
    match schema_of(draft)?.at(path) {
        Found::Schema(schema) => Some(schema),
        Found::Open | Found::Missing { .. } => None,
    }
}

fn is_crd(gvk: &GroupVersionKind) -> bool {
    gvk.group == "apiextensions.k8s.io" && gvk.kind == "CustomResourceDefinition"
}

/// The kinds that a resource's text names, as far as they can be read.
pub(super) fn kind_of(resource: &RgdResource) -> Option<GroupVersionKind> {
    let reference = resource.external_ref.as_ref().and_then(Value::as_object);
    let object: &Map<String, Value> = resource.template.as_ref().or(reference)?;
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    GroupVersionKind::from_api_version(text("apiVersion")?, text("kind")?)
}

/// Schema of the objects of a served kind.
pub(super) fn schema_of(draft: &Draft) -> Option<Arc<crate::schema::Schema>> {
    draft.info.as_ref().map(|info| metadata::complete(&info.schema))
}
