//! Collections: one object for each combination of the iterators' values (kro.md section 9).

use serde_json::Value;

use super::values::{Trouble, Values};
use crate::{
    cel::Evaluated,
    graph::{Graph, Node},
};

/// The variables of each item, in order: the last iterator runs fastest.
pub(crate) fn expand(graph: &Graph, node: &Node, values: &Values) -> Result<Vec<Values>, Trouble> {
    let mut lists = Vec::new();
    for dimension in &node.for_each {
        let name = dimension.name.as_str();
        match values.evaluate(&dimension.expression)? {
            Evaluated::Value(Value::Array(list)) => lists.push((name, list, &dimension.element)),
            Evaluated::Value(Value::Null) | Evaluated::Omit => {
                let source = dimension.expression.source();
                return Err(Trouble::Failed(format!(
                    "forEach iterator {name:?}: expression {source:?} returned null, expected list"
                )));
            }
            Evaluated::Value(_) => return Err(Trouble::Failed(format!("forEach iterator {name:?} must return a list"))),
        }
    }
    let most = graph.options.max_collection_size;
    let size = lists.iter().try_fold(1_usize, |size, (_, list, _)| size.checked_mul(list.len())).unwrap_or(usize::MAX);
    if size > most {
        return Err(Trouble::Failed(format!("collection size of {size} is over the maximum collection size of {most}")));
    }
    let growing = node
        .for_each
        .iter()
        .fold(values.clone(), |values, dimension| values.growing_with(&dimension.name, &dimension.expression));
    let mut items = vec![growing];
    for (name, list, element) in &lists {
        let with = |item: &Values, value: &Value| item.with(name, value.clone(), (*element).clone());
        items = items.iter().flat_map(|item| list.iter().map(|value| with(item, value))).collect();
    }
    Ok(items)
}
