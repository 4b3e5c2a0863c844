//! `plinth rgd graph`: nodes, what they read, what is deferred, and on which plane they live.

use plinth_engine::graph::{Graph, Node, NodeKind, to_dot, to_text};
use plinth_run::Outcome;
use serde_json::{Value, json};

use super::{check, load::Checked};
use crate::{args::GraphOutput, out::Out};

/// Draws every graph; failed where a definition is refused, after drawing the others.
pub(super) fn present(checked: &[Checked], output: GraphOutput, out: Out) -> Outcome {
    let graphs = checked.iter().filter_map(|one| Some((one, one.graph()?)));
    match output {
        GraphOutput::Text => graphs.for_each(|(_, graph)| out.data(text(graph).trim_end())),
        GraphOutput::Dot => graphs.for_each(|(_, graph)| out.data(to_dot(graph).trim_end())),
        GraphOutput::Json => {
            let all: Vec<Value> = graphs.map(|(one, graph)| document(one, graph)).collect();
            out.data(&serde_json::to_string_pretty(&all).expect("names are JSON"));
        }
    }
    let refused = checked.iter().filter(|one| one.graph().is_none());
    refused.clone().for_each(|one| check::complain(one, out));
    if refused.count() == 0 { Outcome::Done } else { Outcome::Failed }
}

fn text(graph: &Graph) -> String {
    let nodes = to_text(graph).lines().fold(String::new(), |text, line| text + "  " + line + "\n");
    format!("{}  makes {}\n{nodes}", graph.name, graph.instance.gvk)
}

fn document(one: &Checked, graph: &Graph) -> Value {
    let edges = graph
        .nodes
        .iter()
        .flat_map(|node| node.dependencies.iter().map(move |dependency| json!({"from": dependency, "to": node.id})));
    let deferred = graph.missing.iter().map(|missing| json!({"node": missing.node, "kind": missing.gvk.to_string()}));
    json!({
        "file": one.file,
        "name": graph.name,
        "kind": graph.instance.gvk,
        "nodes": graph.nodes.iter().map(node).collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "deferred": deferred.collect::<Vec<_>>(),
    })
}

fn node(node: &Node) -> Value {
    let what = match node.kind {
        NodeKind::Template => "template",
        NodeKind::Collection => "collection",
        NodeKind::External => "external",
        NodeKind::ExternalSelector => "externalSelector",
    };
    json!({
        "id": node.id,
        "kind": node.gvk,
        "node": what,
        "plane": node.plane.word(),
        "deferred": node.is_deferred(),
        "conditional": !node.include_when.is_empty(),
        "iterators": node.for_each.iter().map(|dimension| &dimension.name).collect::<Vec<_>>(),
        "wave": node.apply_order,
    })
}
