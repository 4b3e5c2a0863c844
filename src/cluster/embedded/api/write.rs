//! Writing: create, update, patch and apply.

use std::sync::Arc;

use plinth_api::Object;
use plinth_engine::{
    schema::{Schema, apply_object_defaults, prune, prune_object},
    yaml::field,
};
use serde_json::{Map, Value, json};

use super::{
    check, identity,
    kinds::Served,
    marks,
    names::{self, Rule},
    patch::{self, Form},
    preset,
    problem::{FieldFault, Problem},
    ratchet,
    read::present,
    rules,
    state::{Ask, Reply, State},
};
use crate::embedded::{
    fields::managers::{self, ApplyError, Manager, Operation},
    store::{Left, Part, Place, Precondition, Refusal, Resource, Stamp},
};

/// Managed fields of what the API server itself writes into a CRD's status.
pub(crate) const SELF: &str = "kube-apiserver";

impl State {
    pub(super) fn create(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let mut object = ask.object()?;
        self.in_its_namespace(ask, &mut object)?;
        if object.name().is_empty()
            && let Some(prefix) = object.at(&["metadata", "generateName"]).and_then(Value::as_str).filter(|text| !text.is_empty())
        {
            let name = format!("{}{}", prefix.chars().take(58).collect::<String>(), self.suffix());
            object.metadata_mut().insert("name".to_owned(), json!(name));
        }
        if object.resource_version().is_some_and(|version| !version.is_empty()) {
            return Err(Problem::unmergeable("resourceVersion should not be set on objects to be created"));
        }
        object.metadata_mut().remove("managedFields");
        if ask.served.status {
            object.0.remove("status");
        }
        marks::withhold(ask, &mut object, None)?;
        admit(ask, &mut object, None, Vec::new())?;
        let before = zero(&ask.served);
        let reset: &[&str] = if ask.served.status { &["status"] } else { &[] };
        managers::updated(&before, &mut object, &ask.served.schema, &ask.manager(Operation::Update), reset, &ask.time());
        self.put_new(ask, object)
    }

    /// Stores what was admitted.
    fn put_new(&mut self, ask: &Ask<'_>, mut object: Object) -> Result<Reply, Problem> {
        let name = object.name().to_owned();
        if self.is_ending(ask) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Problem::forbidden(&ask.served.group, &ask.served.plural, &name, why));
        }
        let uid = self.uid();
        marks::put(ask, &mut object);
        self.allocate(ask, &mut object, None);
        if (ask.served.group.as_str(), ask.served.plural.as_str()) == ("batch", "jobs") {
            preset::select_by_uid(&mut object, &uid);
        }
        self.convert(ask, &mut object);
        let place = ask.place(&name);
        let stamp = Stamp { now: ask.call.now, uid, generation: ask.served.generation };
        let exists = |_| Problem::exists(&ask.served.group, &ask.served.plural, &name);
        let created = if ask.dry_run() {
            let created = self.store.scratch(&place).create(&place, object, &stamp).map_err(exists)?;
            let mut shown = (*created).clone();
            shown.metadata_mut().remove("resourceVersion");
            Arc::new(shown)
        } else {
            let created = self.store.create(&place, object, &stamp).map_err(exists)?;
            self.stored(&place, &created, ask.call.now);
            created
        };
        Ok(Reply::Object(201, present(&created, &ask.served)))
    }

    /// Whether the kind's CRD is being deleted.
    fn is_ending(&self, ask: &Ask<'_>) -> bool {
        let name = || format!("{}.{}", ask.served.plural, ask.served.group);
        !ask.served.builtin && self.ending.iter().any(|crd| crd.cluster == ask.cluster && crd.name == name())
    }

    fn in_its_namespace(&self, ask: &Ask<'_>, object: &mut Object) -> Result<(), Problem> {
        let Some(namespace) = &ask.target.namespace else {
            object.metadata_mut().remove("namespace");
            return Ok(());
        };
        identity::same_namespace(object, namespace)?;
        object.metadata_mut().insert("namespace".to_owned(), json!(namespace));
        let place = Place {
            resource: Resource { group: String::new(), plural: "namespaces".to_owned() },
            cluster: ask.cluster.clone(),
            namespace: None,
            name: namespace.clone(),
        };
        let Some(found) = self.store.get(&place) else { return Err(Problem::not_found("", "namespaces", namespace)) };
        if found.is_terminating() {
            let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
            let mut problem = Problem::forbidden(&ask.served.group, &ask.served.plural, object.name(), &why);
            let message = format!("namespace {namespace} is being terminated");
            problem.details["causes"] =
                json!([{"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}]);
            return Err(problem);
        }
        Ok(())
    }

    pub(super) fn update(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let name = ask.target.name.clone().unwrap_or_default();
        let mut object = ask.object()?;
        identity::same_name(&object, &name)?;
        if let Some(namespace) = &ask.target.namespace {
            identity::same_namespace(&object, namespace)?;
            object.metadata_mut().insert("namespace".to_owned(), json!(namespace));
        }
        let old = self.seen(ask, &name)?;
        if !ask.served.builtin && object.resource_version().unwrap_or_default().is_empty() {
            let message = "Invalid value: 0: must be specified for an update".to_owned();
            let fault = FieldFault { reason: "FieldValueInvalid", field: "metadata.resourceVersion".to_owned(), message };
            return Err(Problem::invalid(&ask.served.group, &ask.served.plural, &name, &[fault]));
        }
        self.replace(ask, &old, object)
    }

    pub(super) fn patch(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let form = Form::of(&ask.call.content_type).ok_or_else(Form::unknown)?;
        let name = ask.target.name.clone().unwrap_or_default();
        let body = ask.json()?;
        if form == Form::Apply {
            return self.apply(ask, &name, body);
        }
        let old = self.seen(ask, &name)?;
        let patched = patch::patched(present(&old, &ask.served).into_value(), &body, form)?;
        let mut object = Object::from_value(patched).ok_or_else(|| Problem::bad_request("the patched value is no object"))?;
        identity::still_of_kind(&mut object, &name, &ask.served)?;
        if let Some(namespace) = &ask.target.namespace {
            identity::same_namespace(&object, namespace)?;
        }
        identity::same_name(&object, &name)?;
        self.replace(ask, &old, object)
    }

    /// Stores another state that came by update or patch.
    fn replace(&mut self, ask: &Ask<'_>, old: &Arc<Object>, mut object: Object) -> Result<Reply, Problem> {
        let name = old.name().to_owned();
        let precondition = precondition(ask, &object);
        self.store.checked(&ask.place(&name), &precondition).map_err(|refusal| refused(ask, &name, &refusal))?;
        let changed = identity::changed(&object, old);
        if ask.is_status() {
            object = status_of(old, object);
        } else if ask.target.subresource.is_some() {
            finalize(old, &mut object);
        } else if ask.served.status && ask.target.subresource.is_none() {
            take(&mut object, old, "status");
        }
        identity::keep(&mut object, old);
        marks::withhold(ask, &mut object, Some(old))?;
        admit(ask, &mut object, Some(old), changed)?;
        managers::updated(old, &mut object, &ask.served.schema, &ask.manager(Operation::Update), reset(ask), &ask.time());
        self.put(ask, &name, object, &precondition)
    }

    /// Stores a state that was admitted.
    fn put(&mut self, ask: &Ask<'_>, name: &str, object: Object, precondition: &Precondition) -> Result<Reply, Problem> {
        let left = self.keep(ask, name, object, precondition)?;
        Ok(Reply::Object(200, present(left.object(), &ask.served)))
    }

    /// Stores a state that was admitted, or says what a dry run would.
    pub(super) fn keep(
        &mut self,
        ask: &Ask<'_>,
        name: &str,
        mut object: Object,
        precondition: &Precondition,
    ) -> Result<Left, Problem> {
        let place = ask.place(name);
        let old = self.store.get(&place);
        marks::put(ask, &mut object);
        self.allocate(ask, &mut object, old.as_deref());
        self.convert(ask, &mut object);
        let part = match (ask.target.subresource.as_deref(), ask.served.status) {
            (Some("status"), _) => Part::Status,
            (None | Some("scale"), true) => Part::Main,
            _ => Part::Whole,
        };
        let refused = |refusal| refused(ask, name, &refusal);
        if ask.dry_run() {
            return self.store.scratch(&place).update(&place, object, part, precondition).map_err(refused);
        }
        let left = self.store.update(&place, object, part, precondition).map_err(refused)?;
        if let Left::There(object) = &left {
            self.stored(&place, object, ask.call.now);
        }
        Ok(left)
    }

    fn apply(&mut self, ask: &Ask<'_>, name: &str, body: Value) -> Result<Reply, Problem> {
        let mut config = Object::from_value(body).ok_or_else(|| Problem::bad_request("the body is no object"))?;
        if config.0.get("apiVersion").is_none() || config.0.get("kind").is_none() {
            return Err(Problem::bad_request(format!("Object 'Kind' is missing in '{}'", config.as_value())));
        }
        identity::applies_to(&config, &ask.served)?;
        if config.at(&["metadata", "managedFields"]).is_some_and(|fields| !fields.is_null()) {
            return Err(Problem::bad_request("metadata.managedFields must be nil"));
        }
        let is_nameless = config.name().is_empty();
        if is_nameless {
            config.metadata_mut().insert("name".to_owned(), json!(name));
        }
        identity::same_name(&config, name)?;
        if let Some(namespace) = &ask.target.namespace {
            identity::same_namespace(&config, namespace)?;
        }
        marks::withhold(ask, &mut config, None)?;
        match self.store.get(&ask.place(name)) {
            Some(old) if !ask.sees(&old) => Err(refused(ask, name, &Refusal::Exists)),
            Some(old) => self.apply_to(ask, &old, config),
            None if ask.target.subresource.is_some() => Err(ask.not_found(name)),
            None if is_nameless => {
                let why = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
                Err(Problem::bad_request(why))
            }
            None => self.apply_new(ask, config),
        }
    }

    fn apply_new(&mut self, ask: &Ask<'_>, mut config: Object) -> Result<Reply, Problem> {
        let name = config.name().to_owned();
        if config.uid().is_some() || config.resource_version().is_some_and(|version| !version.is_empty()) {
            return Err(ask.not_found(&name));
        }
        self.in_its_namespace(ask, &mut config)?;
        let mut object = applied(ask, &bare(&config), &mut config)?;
        admit(ask, &mut object, None, Vec::new())?;
        self.put_new(ask, object)
    }

    fn apply_to(&mut self, ask: &Ask<'_>, old: &Arc<Object>, mut config: Object) -> Result<Reply, Problem> {
        let precondition = Precondition {
            uid: None,
            version: config.resource_version().filter(|version| !version.is_empty()).map(str::to_owned),
        };
        let changed = identity::changed(&config, old);
        let mut object = applied(ask, old, &mut config)?;
        identity::keep(&mut object, old);
        admit(ask, &mut object, Some(old), changed)?;
        self.put(ask, old.name(), object, &precondition)
    }

    /// What the API server gives an object when it is stored, and nobody manages.
    fn allocate(&mut self, ask: &Ask<'_>, object: &mut Object, old: Option<&Object>) {
        match (ask.served.group.as_str(), ask.served.plural.as_str()) {
            ("", "namespaces") if ask.target.subresource.is_none() => hold_namespace(object, old),
            // A list that the other language writes even where there is none.
            ("rbac.authorization.k8s.io", "roles" | "clusterroles") => {
                object.0.entry("rules").or_insert(Value::Null);
            }
            ("", "services") => {
                old.inspect(|old| preset::switch(object, old));
                if object.spec()["type"] != "ExternalName" {
                    self.give_address(object, old);
                }
            }
            _ => {}
        }
    }

    /// Into the version in which objects are stored, whose schema has the last word.
    fn convert(&self, ask: &Ask<'_>, object: &mut Object) {
        let served = &ask.served;
        if served.storage == served.version {
            return;
        }
        object.0.insert("apiVersion".to_owned(), json!(served.stored_version()));
        if let Some(stored) = self.registry.find(&ask.way.reach, &served.group, &served.storage, &served.plural) {
            prune_object(object, &stored.schema);
            apply_object_defaults(object, &stored.schema);
        }
    }

    fn give_address(&mut self, object: &mut Object, old: Option<&Object>) {
        let given = old.and_then(|old| old.spec()["clusterIP"].as_str().map(str::to_owned));
        let wanted = object.spec()["clusterIP"].as_str().filter(|address| !address.is_empty()).map(str::to_owned);
        let address = wanted.or(given).unwrap_or_else(|| self.address());
        if let Some(Value::Object(spec)) = object.0.get_mut("spec") {
            spec.insert("clusterIP".to_owned(), json!(address));
            spec.insert("clusterIPs".to_owned(), json!([address]));
            // What has no address and selects nothing may have pods of any family.
            let is_any = address == "None" && spec.get("selector").is_none_or(|selector| *selector == json!({}));
            let (families, policy) =
                if is_any { (json!(["IPv4", "IPv6"]), "RequireDualStack") } else { (json!(["IPv4"]), "SingleStack") };
            spec.entry("ipFamilies").or_insert(families);
            spec.entry("ipFamilyPolicy").or_insert_with(|| json!(policy));
        }
    }
}

/// Lays the part of a configuration that the subresource is about over an object.
fn applied(ask: &Ask<'_>, old: &Object, config: &mut Object) -> Result<Object, Problem> {
    if ask.is_status() {
        let identity = ["name", "namespace"];
        config.0.retain(|name, _| ["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()));
        config.metadata_mut().retain(|name, _| identity.contains(&name.as_str()));
    } else if ask.served.status {
        config.0.remove("status");
    }
    let force = ask.call.query.is("force");
    let mut old = present(old, &ask.served);
    if old.uid().is_some() && managers::read(&old).is_empty() {
        unmanaged(ask, &mut old);
    }
    managers::applied(&old, config, &ask.served.schema, &ask.manager(Operation::Apply), force, &ask.time())
        .map_err(|error| not_applied(ask, config, error))
}

/// What an object has that nobody manages belongs to a manager of its own from the first apply on.
fn unmanaged(ask: &Ask<'_>, old: &mut Object) {
    let manager = Manager { name: "before-first-apply".to_owned(), ..ask.manager(Operation::Update) };
    let mut said = old.clone();
    if marks::withhold(ask, &mut said, None).is_ok() {
        managers::updated(&zero(&ask.served), &mut said, &ask.served.schema, &manager, reset(ask), &ask.time());
        managers::write(old, &managers::read(&said));
    }
}

/// Fields that a write to this subresource cannot change.
fn reset(ask: &Ask<'_>) -> &'static [&'static str] {
    if ask.served.status && !ask.is_status() { &["status"] } else { &[] }
}

/// What a body asks to be so in the store. Another UID is a precondition of an update, and a fault of a patch.
pub(super) fn precondition(ask: &Ask<'_>, body: &Object) -> Precondition {
    let is_update = ask.call.method == http::Method::PUT;
    Precondition {
        uid: body.uid().filter(|uid| is_update && !uid.is_empty()).map(str::to_owned),
        version: body.resource_version().filter(|version| !version.is_empty()).map(str::to_owned),
    }
}

/// Prunes, defaults and checks what is about to be stored; `changed` is what it says otherwise than it may.
pub(super) fn admit(ask: &Ask<'_>, object: &mut Object, old: Option<&Object>, changed: Vec<FieldFault>) -> Result<(), Problem> {
    let served = &ask.served;
    well_typed(ask, object)?;
    let unknown = without_unknown(object, &served.schema);
    if ask.is_strict() && !unknown.is_empty() {
        let list: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
        let text = format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
            list.join(", "),
            kind = served.kind,
            version = served.version
        );
        return Err(Problem::bad_request(text));
    }
    if served.builtin {
        check::without_nothing(&mut object.0, &served.schema);
    }
    apply_object_defaults(object, &served.schema);
    if !served.builtin && Form::of(&ask.call.content_type) != Some(Form::Apply) {
        nulls_gone(object, &served.schema);
    }
    if served.builtin {
        preset::fill(object, served);
    }
    let mut faults = changed;
    faults.extend(names::check(object, Rule::of(&served.group, &served.plural)));
    faults.extend(new_finalizers(object, old));
    if old.is_some() {
        // An update is checked by what is common to all kinds and by the kind, and each says what is wrong with metadata.
        faults.extend(faults.clone());
    }
    if ask.is_status() || old.is_none_or(|old| !Object::is_terminating(old)) {
        let mut found = check::check(&object.0, &served.schema, served.builtin);
        if let Some(old) = old.filter(|_| !served.builtin) {
            ratchet::forgive(&mut found, object, old, &served.schema);
        }
        faults.extend(found);
        faults.extend(broken_rules(object, old, served, &faults));
    }
    faults.extend(rules::check(object, old, served));
    if faults.is_empty() { Ok(()) } else { Err(invalid(ask, object.name(), &faults)) }
}

/// What the kind's CEL rules say. They are not asked about an object of another shape than they are written for.
fn broken_rules(object: &Object, old: Option<&Object>, served: &Served, faults: &[FieldFault]) -> Vec<FieldFault> {
    const BLOCKING: [&str; 5] =
        ["FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"];
    let Some(rules) = &served.rules else { return Vec::new() };
    if faults.iter().any(|fault| BLOCKING.contains(&fault.reason)) {
        let words = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
        let message = format!("Invalid value: null: {words}");
        return vec![FieldFault { reason: "FieldValueInvalid", field: "<nil>".to_owned(), message }];
    }
    rules.check(object, old)
}

/// What a first write is compared with: the fields that a built-in kind's empty object has.
pub(super) fn zero(served: &Served) -> Object {
    fn empty(schema: &Schema, depth: usize) -> Value {
        let mut fields = Map::new();
        for (name, property) in schema.properties.iter().filter(|_| depth < 20) {
            if property.default == Some(json!({})) {
                fields.insert(name.clone(), empty(property, depth + 1));
            } else if schema.required.contains(name) {
                fields.insert(name.clone(), property.default.clone().unwrap_or_default());
            }
        }
        Value::Object(fields)
    }
    if served.builtin { Object::from_value(empty(&served.schema, 0)).unwrap_or_default() } else { Object::default() }
}

/// An object of the same kind and name, and nothing else.
fn bare(config: &Object) -> Object {
    let mut object = Object::default();
    for name in ["apiVersion", "kind"] {
        take(&mut object, config, name);
    }
    for name in ["name", "namespace"] {
        if let Some(value) = config.at(&["metadata", name]) {
            object.metadata_mut().insert(name.to_owned(), value.clone());
        }
    }
    object
}

/// Takes a field over, or away where the other has none.
fn take(object: &mut Object, from: &Object, name: &str) {
    match from.0.get(name) {
        Some(value) => drop(object.0.insert(name.to_owned(), value.clone())),
        None => drop(object.0.remove(name)),
    }
}

fn status_of(old: &Object, mut object: Object) -> Object {
    let mut whole = old.clone();
    take(&mut whole, &object, "status");
    if let Some(managed) = object.metadata_mut().remove("managedFields") {
        whole.metadata_mut().insert("managedFields".to_owned(), managed);
    }
    whole
}

/// What a namespace waits for when it goes is said when it is made, and then by its subresource alone: else its content would
/// be left behind.
fn hold_namespace(object: &mut Object, old: Option<&Object>) {
    if let Some(old) = old {
        return take(object, old, "spec");
    }
    let mut finalizers = object.spec()["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.contains(&json!("kubernetes")) {
        finalizers.push(json!("kubernetes"));
    }
    object.0.insert("spec".to_owned(), json!({"finalizers": finalizers}));
}

/// Takes what a namespace is finalized with; the status stays.
fn finalize(old: &Object, object: &mut Object) {
    let finalizers = object.spec()["finalizers"].as_array().filter(|list| !list.is_empty());
    let spec = finalizers.map_or_else(|| json!({}), |list| json!({"finalizers": list}));
    object.0.insert("spec".to_owned(), spec);
    take(object, old, "status");
}

pub(super) fn invalid(ask: &Ask<'_>, name: &str, faults: &[FieldFault]) -> Problem {
    Problem::invalid(&ask.served.group, &ask.served.kind, name, faults)
}

/// Built-in kinds are decoded into types, and what does not fit is no valid request; metadata is that in every kind.
fn well_typed(ask: &Ask<'_>, object: &Object) -> Result<(), Problem> {
    let served = &ask.served;
    let found = if served.builtin {
        check::mistyped(object.as_value(), &served.schema, "")
    } else {
        let metadata = served.schema.field("metadata").zip(object.0.get("metadata"));
        metadata.and_then(|(schema, value)| check::mistyped(value, schema, "metadata"))
    };
    let Some((path, wanted, got)) = found else { return encoded(ask, object) };
    let got = match got {
        "integer" => "number",
        "boolean" => "bool",
        other => other,
    };
    if ask.call.method == http::Method::PATCH {
        let message = format!("Invalid value: the patched object: cannot unmarshal {got} into {path} of type {wanted}");
        let fault = FieldFault { reason: "FieldValueInvalid", field: "patch".to_owned(), message };
        return Err(Problem::invalid("", "", "", &[fault]));
    }
    Err(Problem::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: json: cannot unmarshal {got} into Go struct field {kind}.{path} of type {wanted}",
        kind = served.kind,
        version = served.version
    )))
}

/// Content in base64 and quantities are read with the request.
fn encoded(ask: &Ask<'_>, object: &Object) -> Result<(), Problem> {
    let (kind, version) = (&ask.served.kind, &ask.served.version);
    let refuse = |why: &str| Problem::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"));
    if let Some(why) = rules::resources::unreadable(&object.0).filter(|_| ask.served.builtin) {
        return Err(if ask.call.method == http::Method::PATCH { unconverted(ask, why)? } else { refuse(why) });
    }
    let field = match (ask.served.group.as_str(), ask.served.plural.as_str()) {
        ("", "configmaps") => "binaryData",
        ("", "secrets") => "data",
        _ => return Ok(()),
    };
    let undecodable = rules::data::undecodable(object, field);
    undecodable.map_or(Ok(()), |at| Err(refuse(&format!("illegal base64 data at input byte {at}"))))
}

/// What a patch makes is read again as the type that it is.
fn unconverted(ask: &Ask<'_>, why: &str) -> Result<Problem, Problem> {
    if Form::of(&ask.call.content_type) != Some(Form::Apply) {
        let message = format!("Invalid value: the patched object: {why}");
        let fault = FieldFault { reason: "FieldValueInvalid", field: "patch".to_owned(), message };
        return Ok(Problem::invalid("", "", "", &[fault]));
    }
    let config = ask.json()?;
    let text = |name: &str| config["metadata"][name].as_str().unwrap_or_default().to_owned();
    let kind = format!("{}, Kind={}", ask.served.api_version(), ask.served.kind);
    let place = format!("{}/{}; {kind}", text("namespace"), text("name"));
    let head = "failed to convert new object";
    Ok(Problem::unmergeable(format!(
        "{head} ({place}) to proper version: unable to convert unstructured object to {kind}: {why}"
    )))
}

/// Takes fields away that the schema does not know, in metadata too, and answers with their paths.
fn without_unknown(object: &mut Object, schema: &Schema) -> Vec<String> {
    let mut unknown = prune_object(object, schema);
    if let Some((schema, metadata)) = schema.field("metadata").zip(object.0.get_mut("metadata")) {
        unknown.extend(prune(metadata, schema).iter().map(|path| field("metadata", path)));
    }
    unknown
}

fn nulls_gone(object: &mut Object, schema: &Schema) {
    let metadata = object.0.remove("metadata");
    let mut value = std::mem::take(object).into_value();
    check::without_nulls(&mut value, schema);
    *object = Object::from_value(value).unwrap_or_default();
    if let Some(metadata) = metadata {
        object.0.insert("metadata".to_owned(), metadata);
    }
}

fn new_finalizers(object: &Object, old: Option<&Object>) -> Option<FieldFault> {
    let old = old.filter(|old| old.is_terminating())?;
    let known = old.finalizers();
    let new: Vec<String> =
        object.finalizers().iter().filter(|name| !known.contains(name)).map(|name| format!("{name:?}")).collect();
    (!new.is_empty()).then(|| FieldFault {
        reason: "FieldValueForbidden",
        field: "metadata.finalizers".to_owned(),
        message: format!(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            new.join(", ")
        ),
    })
}

pub(super) fn refused(ask: &Ask<'_>, name: &str, refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::NotFound => ask.not_found(name),
        Refusal::Exists => Problem::exists(&ask.served.group, &ask.served.plural, name),
        Refusal::Conflict { field: "UID", wanted, stored } => {
            let namespace = ask.target.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{namespace}{name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {stored}",
                ask.served.plural
            );
            ask.conflict(name, &why)
        }
        Refusal::Conflict { .. } => {
            ask.conflict(name, "the object has been modified; please apply your changes to the latest version and try again")
        }
    }
}

pub(super) fn not_applied(ask: &Ask<'_>, config: &Object, error: ApplyError) -> Problem {
    let message = error.to_string();
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes: Vec<_> = conflicts.iter().map(|conflict| (conflict.manager_text(), conflict.path_text())).collect();
            Problem::apply_conflict(message, &causes)
        }
        ApplyError::Typed(error) => {
            let served = &ask.served;
            let namespace = config.namespace().unwrap_or_default();
            let what = format!("{namespace}/{}; {}/{}, Kind={}", config.name(), served.group, served.version, served.kind);
            Problem::unmergeable(format!("failed to create typed patch object ({what}): {error}"))
        }
    }
}
