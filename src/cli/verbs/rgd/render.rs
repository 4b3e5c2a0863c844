//! `plinth rgd render`: the children that an instance becomes, as YAML in the order in which they are applied.

use std::path::{Path, PathBuf};

use plinth_api::Object;
use plinth_engine::{
    graph::{Graph, Rendered, render_examples},
    naming::subdomain_fault,
    schema::{apply_defaults, validate_object},
};
use plinth_run::Outcome;

use super::{
    check,
    load::Checked,
    objects::{INSTANCE, OBSERVED, held},
};
use crate::{exit::Failure, out::Out};

/// Renders the one definition whose kind the instance has. What is not from the instance is told on standard error.
pub(super) fn run(checked: &[Checked], instance: &Path, observed: &[PathBuf], out: Out) -> Result<Outcome, Failure> {
    let refused: Vec<&Checked> = checked.iter().filter(|one| one.graph().is_none()).collect();
    if !refused.is_empty() {
        refused.iter().for_each(|one| check::complain(one, out));
        return Ok(Outcome::Failed);
    }
    let (graph, instance) = choose(checked, instance)?;
    let observed = observed.iter().map(|path| OBSERVED.objects(path)).collect::<Result<Vec<_>, _>>()?.concat();
    let rendered = render_examples(graph, &instance, &observed);
    for one in &rendered {
        if one.problems.iter().any(|problem| problem.path == "forEach") {
            // There is no object to print: its items cannot be told.
        } else if graph.node(&one.node).is_some_and(|node| node.kind.is_owned()) {
            out.data(&document(one)?);
        } else {
            // It is somebody else's object, and whoever applies what is printed must not make it.
            out.talk(&format!("reads     {} {}", one.node, referred(&one.object)));
        }
        tell(graph, one, out);
    }
    let skipped = graph.nodes.iter().filter(|node| rendered.iter().all(|one| one.node != node.id));
    skipped.for_each(|node| out.talk(&format!("left out  {}", node.id)));
    let failed = rendered.iter().any(|one| !one.problems.is_empty());
    Ok(if failed { Outcome::Failed } else { Outcome::Done })
}

/// The instance, and the graph of its kind.
fn choose<'a>(checked: &'a [Checked], path: &Path) -> Result<(&'a Graph, Object), Failure> {
    let found = INSTANCE.objects(path)?;
    let graphs: Vec<&Graph> = checked.iter().filter_map(Checked::graph).collect();
    let pairs = graphs.iter().flat_map(|graph| {
        let of_kind = |object: &&Object| object.gvk().as_ref() == Some(&graph.instance.gvk);
        found.iter().filter(of_kind).map(|instance| (*graph, instance))
    });
    match pairs.collect::<Vec<_>>()[..] {
        [(graph, instance)] => {
            whole(graph, instance).map_err(|findings| INSTANCE.refuse(path, &findings.join("\n  ")))?;
            Ok((graph, instance.clone()))
        }
        [] => {
            let kinds: Vec<String> = graphs.iter().map(|graph| graph.instance.gvk.to_string()).collect();
            let others = found.iter().filter_map(Object::gvk).map(|gvk| gvk.to_string()).collect();
            Err(INSTANCE.refuse(path, &format!("it holds no {} ({})", kinds.join(" or "), held(&others))))
        }
        ref several => {
            let names: Vec<&str> = several.iter().map(|(_, instance)| instance.name()).collect();
            Err(INSTANCE.refuse(path, &format!("it holds {} instances, and one is rendered: {}", names.len(), names.join(", "))))
        }
    }
}

/// What an API server would refuse the instance for.
fn whole(graph: &Graph, instance: &Object) -> Result<(), Vec<String>> {
    let mut whole = instance.clone().into_value();
    apply_defaults(&mut whole, &graph.instance.schema);
    let whole = Object::from_value(whole).unwrap_or_default();
    let name = match instance.name() {
        "" => Some("is required and missing".to_owned()),
        name => subdomain_fault(name).map(|fault| format!("{name:?}: {fault}")),
    };
    let findings = name.map(|fault| format!("metadata.name: {fault}")).into_iter();
    let findings: Vec<String> =
        findings.chain(validate_object(&whole, &graph.instance.schema).iter().map(ToString::to_string)).collect();
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

/// Kind and name of an external reference, or its kind where a selector finds it.
fn referred(object: &Object) -> String {
    let kind = object.gvk().map(|gvk| gvk.group_kind().to_string()).unwrap_or_default();
    if object.name().is_empty() { format!("{kind} by its selector") } else { format!("{kind}/{}", object.name()) }
}

fn document(rendered: &Rendered) -> Result<String, Failure> {
    let yaml = serde_saphyr::to_string(&rendered.object.0)
        .map_err(|error| Failure::new(Outcome::Internal, format!("write node {} as YAML: {error}", rendered.node)))?;
    Ok(format!("---\n# node {}\n{}", rendered.node, yaml.trim_end()))
}

fn tell(graph: &Graph, rendered: &Rendered, out: Out) {
    let node = &rendered.node;
    if let Some(missing) = graph.missing.iter().find(|missing| missing.node == *node) {
        out.talk(&format!("deferred  {node}: {} is not known, so the template is not checked", missing.gvk));
    }
    for example in &rendered.examples {
        out.talk(&format!("example   {node} {}: stands for {}", example.path, example.stands_for.join(", ")));
    }
    for problem in &rendered.problems {
        out.error(&format!("error     {node} {problem}"));
    }
}
