//! A graph as text and as DOT.

use std::fmt::Write;

use super::node::{Graph, Node, NodeKind, Plane};

/// A line for each node, in topological order: id, kind, what is special about it, what it reads.
pub fn to_text(graph: &Graph) -> String {
    let width = |of: fn(&Node) -> String| graph.nodes.iter().map(|node| of(node).chars().count()).max().unwrap_or_default();
    let (ids, kinds) = (width(|node| node.id.clone()), width(|node| node.gvk.to_string()));
    let mut text = String::new();
    for node in &graph.nodes {
        let mut line = format!("{:ids$}  {:kinds$}", node.id, node.gvk.to_string());
        let marks = marks(node);
        if !marks.is_empty() {
            let _ = write!(line, "  {}", marks.join(", "));
        }
        if !node.dependencies.is_empty() {
            let _ = write!(line, "  reads {}", node.dependencies.join(", "));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The graph for Graphviz: an arrow leads from what is read to what reads it; deferred nodes are dashed, external ones round.
pub fn to_dot(graph: &Graph) -> String {
    let mut dot = format!("digraph {} {{\n  rankdir=LR;\n  node [shape=box];\n", quoted(&graph.name));
    for node in &graph.nodes {
        let mut label = format!("{}\n{}", node.id, node.gvk);
        for mark in marks(node) {
            let _ = write!(label, "\n{mark}");
        }
        let mut style = Vec::new();
        if node.is_deferred() {
            style.push("style=dashed");
        }
        match node.kind {
            NodeKind::External | NodeKind::ExternalSelector => style.push("shape=ellipse"),
            NodeKind::Collection => style.push("peripheries=2"),
            NodeKind::Template => {}
        }
        let style: String = style.iter().map(|style| format!(", {style}")).collect::<Vec<_>>().concat();
        let _ = writeln!(dot, "  {} [label={}{style}];", quoted(&node.id), quoted(&label));
    }
    for node in &graph.nodes {
        for dependency in &node.dependencies {
            let _ = writeln!(dot, "  {} -> {};", quoted(dependency), quoted(&node.id));
        }
    }
    dot.push_str("}\n");
    dot
}

fn marks(node: &Node) -> Vec<&'static str> {
    let mut marks = Vec::new();
    match node.kind {
        NodeKind::Template => {}
        NodeKind::Collection => marks.push("collection"),
        NodeKind::External => marks.push("external"),
        NodeKind::ExternalSelector => marks.push("external, by selector"),
    }
    if node.is_deferred() {
        marks.push("deferred: kind not served yet");
    }
    if !node.include_when.is_empty() {
        marks.push("conditional");
    }
    match node.plane {
        Plane::Host => {}
        Plane::Consumer => marks.push("on the consumer plane"),
        Plane::Provider => marks.push("on the provider plane"),
    }
    marks
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{core, graph, rgd};

    fn example() -> std::sync::Arc<Graph> {
        let resources = "- id: ext\n  externalRef:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: x\n- id: maps\n  includeWhen: ['${schema.spec.on}']\n  forEach: [{n: '${schema.spec.names}'}]\n  template:\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: ${n}\n    data:\n      x: ${ext.data.x}\n- id: late\n  template:\n    apiVersion: example.org/v1\n    kind: Late\n    metadata:\n      name: x\n";
        graph(&rgd("on: boolean\nnames: '[]string'", "", resources), &core())
    }

    #[test]
    fn text_has_a_line_for_each_node() {
        assert_eq!(
            to_text(&example()),
            "ext   ConfigMap/v1         external\n\
             maps  ConfigMap/v1         collection, conditional  reads ext\n\
             late  Late.example.org/v1  deferred: kind not served yet\n"
        );
    }

    #[test]
    fn dot_has_every_node_and_edge() {
        let dot = to_dot(&example());
        for line in [
            "digraph \"test\" {",
            "  \"ext\" [label=\"ext\\nConfigMap/v1\\nexternal\", shape=ellipse];",
            "  \"maps\" [label=\"maps\\nConfigMap/v1\\ncollection\\nconditional\", peripheries=2];",
            "  \"late\" [label=\"late\\nLate.example.org/v1\\ndeferred: kind not served yet\", style=dashed];",
            "  \"ext\" -> \"maps\";",
            "}",
        ] {
            assert!(dot.lines().any(|found| found == line), "{line}\nis not in\n{dot}");
        }
    }
}
