//! The way from a definition to a graph.

use std::sync::Arc;

use plinth_api::{
    GroupVersionKind,
    rgd::{KROP_GROUP, RgdSpec, Scope},
};

use super::{
    account::{self, Account},
    authored,
    check::{self, Types},
    compiled::{Compiled, Missing, Options},
    definition::Definition,
    draft::Draft,
    edges::{Names, report_cycles},
    findings::Findings,
    metadata, names,
    node::{Condition, Graph, InstanceKind, Node, Plane, Projection},
    order::{Edges, topological, waves},
    shape::{self, Context},
    status,
};
use crate::{
    Diagnostic,
    cel::Reads,
    diagnostic::Severity,
    naming,
    schema::{
        Schema, SchemaSource,
        crd::{self, Owner},
    },
    simpleschema,
};

/// Compiles a definition against the kinds that are served.
///
/// All mistakes are found at once; a part that cannot be read is left out of the later steps. Kinds that are not served
/// make the graph [`Compiled::Deferred`], not wrong.
pub fn compile(definition: &Definition, schemas: &dyn SchemaSource, options: &Options) -> Compiled {
    let mut findings = Findings::new(definition.source.as_ref());
    for finding in &definition.findings {
        findings.push(finding.clone());
    }
    names::check(&definition.spec, options, &mut findings);
    let account = account::read(definition, options, &mut findings);
    let spec = instance_spec(definition, &mut findings);
    let namespaced = definition.spec.schema.scope == Scope::Namespaced;
    let instance = metadata::instance(spec.clone(), namespaced);
    let context = Context { definition, schemas, namespaced };
    let resources = definition.spec.resources.iter().enumerate();
    let mut drafts: Vec<Draft> =
        resources.filter_map(|(index, resource)| shape::draft(index, resource, &context, &mut findings)).collect();
    let names = Names::new(definition, &drafts);
    let edges = names.edges(&drafts, &mut findings);
    report_cycles(&drafts, &edges, &mut findings);
    let types = Types::new(&drafts, &names, &instance);
    let elements: Vec<_> = drafts.iter().map(|draft| check::node(draft, &types, &names, options, &mut findings)).collect();
    let status = status::compile(&definition.spec.schema.status, &names, &types, &mut findings);
    let conditions = authored::compile(definition.spec.schema.status.get("conditions"), &names, &types, &mut findings);
    if findings.refused() {
        drafts.iter().for_each(|draft| not_served(draft, &mut findings));
        return Compiled::Invalid(findings.finish());
    }
    for (draft, elements) in drafts.iter_mut().zip(elements) {
        for (dimension, element) in draft.for_each.iter_mut().zip(elements) {
            dimension.element = element.map(|element| Arc::new(element.to_schema()));
        }
    }
    let (projection, warnings) = (status.projection, findings.finish());
    let parts = Parts { account, spec, status: status.schema, instance, projection, conditions, warnings };
    assemble(definition, drafts, &edges, parts, options)
}

/// All kinds that a definition's nodes have, sorted, so that their schemas can be fetched before compiling.
pub fn kinds(spec: &RgdSpec) -> Vec<GroupVersionKind> {
    let mut kinds: Vec<_> = spec.resources.iter().filter_map(shape::kind_of).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// The schema of `spec`. What could not be read of it is any value, so that what reads it is not blamed.
fn instance_spec(definition: &Definition, findings: &mut Findings<'_>) -> Schema {
    let schema = &definition.spec.schema;
    let types = (!definition.lacks_types()).then_some(&schema.types);
    let built = match types {
        Some(types) => simpleschema::build(&schema.spec, types),
        None => simpleschema::build_without_types(&schema.spec),
    };
    let (schema, found) = match built {
        Ok(built) => (built.schema, built.warnings),
        Err(refused) => (*refused.schema, refused.errors),
    };
    found.into_iter().for_each(|finding| findings.push(finding));
    // A misspelt `spec` is no reason to say of every field that it does not exist.
    if definition.lacks_fields() { Schema::any() } else { schema }
}

struct Parts {
    account: Option<Account>,
    spec: Schema,
    status: Schema,
    instance: Arc<Schema>,
    projection: Projection,
    conditions: Vec<Condition>,
    warnings: Vec<Diagnostic>,
}

fn assemble(definition: &Definition, drafts: Vec<Draft>, edges: &Edges, parts: Parts, options: &Options) -> Compiled {
    let order = topological(edges);
    let waves = waves(edges, &order);
    let missing: Vec<Missing> = drafts.iter().filter_map(missing).collect();
    let ids: Vec<String> = drafts.iter().map(|draft| draft.id.clone()).collect();
    let mut nodes: Vec<Option<Node>> = drafts
        .into_iter()
        .enumerate()
        .map(|(position, draft)| {
            let mut dependencies: Vec<String> = edges[position].iter().map(|other| ids[*other].clone()).collect();
            dependencies.sort();
            let plane = plane(definition, position);
            node(draft, Place { position, plane, dependencies, apply_order: waves[position] })
        })
        .collect();
    let nodes: Vec<Node> = order.into_iter().filter_map(|position| nodes[position].take()).collect();
    let told = parts.projection.slots.iter().map(|slot| &slot.expression);
    let stated = parts.conditions.iter().map(|condition| &condition.expression);
    let reads = Arc::new(Reads::of(nodes.iter().flat_map(Node::expressions).chain(told).chain(stated)));
    let schema = &definition.spec.schema;
    let graph = Arc::new(Graph {
        name: definition.name.clone(),
        uid: definition.uid.clone(),
        group: definition.group.clone(),
        instance: InstanceKind {
            gvk: GroupVersionKind::new(&schema.group, &schema.api_version, &schema.kind),
            plural: naming::plural(&schema.kind.to_lowercase()),
            namespaced: schema.scope == Scope::Namespaced,
            schema: parts.instance,
        },
        crd: crd::generate(
            Owner { name: &definition.name, uid: &definition.uid, platform: definition.platform.as_deref() },
            schema,
            parts.spec,
            parts.status,
        ),
        nodes,
        account: parts.account,
        status: parts.projection,
        conditions: parts.conditions,
        missing: missing.clone(),
        warnings: parts.warnings,
        options: options.clone(),
        reads,
    });
    if missing.is_empty() { Compiled::Active(graph) } else { Compiled::Deferred { graph, missing } }
}

fn missing(draft: &Draft) -> Option<Missing> {
    let gvk = draft.gvk.clone()?;
    draft.info.is_none().then(|| Missing { node: draft.id.clone(), gvk })
}

/// Of a refused definition too it is said which kinds it would wait for: nobody should mend it only to find that out.
fn not_served(draft: &Draft, findings: &mut Findings<'_>) {
    let Some(Missing { gvk, .. }) = missing(draft) else { return };
    let kind = format!("{:?}", format!("{}, Kind={}", gvk.api_version(), gvk.kind));
    let finding = Diagnostic {
        severity: Severity::Warning,
        hint: Some("once the other mistakes are mended, the node waits for the kind".to_owned()),
        ..Diagnostic::error(format!("{}.kind", draft.root()), format!("cannot resolve group version kind {kind}: not served yet"))
    };
    findings.push(finding);
}

struct Place {
    position: usize,
    plane: Plane,
    dependencies: Vec<String>,
    apply_order: usize,
}

fn node(draft: Draft, place: Place) -> Option<Node> {
    let schema = shape::schema_of(&draft);
    let Place { position, plane, dependencies, apply_order } = place;
    Some(Node {
        position,
        plane,
        dependencies,
        apply_order,
        schema,
        gvk: draft.gvk?,
        namespaced: draft.info.map(|info| info.namespaced),
        id: draft.id,
        kind: draft.kind,
        template: draft.object,
        slots: draft.slots,
        ready_when: draft.ready_when,
        include_when: draft.include_when,
        for_each: draft.for_each,
    })
}

/// krop's `target`; a blueprint's children live with the consumer unless it says otherwise.
fn plane(definition: &Definition, position: usize) -> Plane {
    match definition.spec.resources.get(position).and_then(|resource| resource.target.as_deref()) {
        Some("consumer") => Plane::Consumer,
        Some("provider") => Plane::Provider,
        None if definition.group == KROP_GROUP => Plane::Consumer,
        _ => Plane::Host,
    }
}
