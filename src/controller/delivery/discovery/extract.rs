//! From what was selected to `status.discovery`. Pure.

use std::collections::BTreeMap;

use plinth_api::delivery::Extract as Spec;
use plinth_engine::cel::{self, Activation, Dialect, ErrorKind, Evaluated, Expression, Limits};
use plinth_releasechannel::{Descriptor, descriptor::Resource};
use serde_json::{Map, Value};

use super::{
    super::report::{Failed, Reason},
    form,
    select::{LIMITS, Selected, activation},
};

/// Most bytes of the result: an API server refuses an object of 1.5 MiB, and the rest of it needs room too.
pub(super) const MOST_BYTES: usize = 1_400_000;

/// What of the selected goes into the status.
#[derive(Debug)]
pub(super) enum Extract {
    /// Whole descriptors.
    Descriptors,
    /// An object for each resource.
    Resources(Vec<(String, Expression)>),
    /// An object for each component.
    Components(Vec<(String, Expression)>),
    /// Whatever the expression gives.
    Expression(Box<Expression>),
}

/// The access that a resource of this component is shown with.
pub(super) type AccessOf<'a> = dyn Fn(&Descriptor, &Resource) -> Value + 'a;

impl Extract {
    /// Reads the expressions.
    pub(super) fn read(spec: Option<&Spec>) -> Result<Self, Failed> {
        let Some(spec) = spec else { return Ok(Self::Descriptors) };
        let given = [!spec.by_resources.is_empty(), !spec.by_components.is_empty(), !spec.expression.is_empty()];
        match given {
            [true, false, false] => Ok(Self::Resources(fields("byResources", &spec.by_resources)?)),
            [false, true, false] => Ok(Self::Components(fields("byComponents", &spec.by_components)?)),
            [false, false, true] => Ok(Self::Expression(Box::new(parse("expression", &spec.expression)?))),
            _ => Err(wrong("", "exactly one of byResources, byComponents and expression must be set")),
        }
    }

    /// Computes the result. `is_over` says that it takes too long.
    pub(super) fn of(&self, selected: &Selected, access: &AccessOf<'_>, is_over: &dyn Fn() -> bool) -> Result<Value, Failed> {
        let result = match self {
            Self::Descriptors => {
                let forms = selected.iter().map(|(found, kept)| form::descriptor(found, kept, &form::as_written));
                forms.collect()
            }
            Self::Resources(fields) => by_resources(fields, selected, access, is_over)?,
            Self::Components(fields) => by_components(fields, selected, access, is_over)?,
            Self::Expression(expression) => whole(expression, selected, access)?,
        };
        let size = serde_json::to_vec(&result).map_or(0, |bytes| bytes.len());
        if size > MOST_BYTES {
            let message =
                format!("the result has {size} bytes, and at most {MOST_BYTES} fit into an object; select or extract less");
            return Err(Failed::wrong(Reason::PayloadTooLarge, message));
        }
        Ok(result)
    }
}

fn by_resources(
    fields: &[(String, Expression)],
    selected: &Selected,
    access: &AccessOf<'_>,
    is_over: &dyn Fn() -> bool,
) -> Result<Value, Failed> {
    let mut entries = Vec::new();
    for (found, kept) in selected {
        let of = |resource: &Resource| access(found, resource);
        let outer = activation().with("component", form::component(found, kept, &of), None);
        for index in kept {
            let resource = form::resource(found, *index, &of);
            entries.push(entry("byResources", fields, &outer.clone().with("resource", resource, None), is_over)?);
        }
    }
    Ok(Value::Array(entries))
}

fn by_components(
    fields: &[(String, Expression)],
    selected: &Selected,
    access: &AccessOf<'_>,
    is_over: &dyn Fn() -> bool,
) -> Result<Value, Failed> {
    let mut entries = Vec::new();
    for (found, kept) in selected {
        let component = form::component(found, kept, &|resource| access(found, resource));
        entries.push(entry("byComponents", fields, &activation().with("component", component, None), is_over)?);
    }
    Ok(Value::Array(entries))
}

/// A field that reads something that is not there is left out.
fn entry(
    mode: &str,
    fields: &[(String, Expression)],
    activation: &Activation,
    is_over: &dyn Fn() -> bool,
) -> Result<Value, Failed> {
    let mut entry = Map::new();
    for (name, expression) in fields {
        let path = format!(".{mode}.{name}");
        if is_over() {
            return Err(wrong(&path, "the expressions take too long"));
        }
        match cel::evaluate(expression, activation, &LIMITS) {
            Ok(Evaluated::Value(value)) => drop(entry.insert(name.clone(), value)),
            Ok(Evaluated::Omit) => {}
            Err(error) if matches!(error.kind, ErrorKind::Pending { .. }) => {}
            Err(error) => return Err(wrong(&path, &error.message)),
        }
    }
    Ok(Value::Object(entry))
}

fn whole(expression: &Expression, selected: &Selected, access: &AccessOf<'_>) -> Result<Value, Failed> {
    let form = |(found, kept): &(_, Vec<usize>)| {
        let found: &std::sync::Arc<Descriptor> = found;
        form::descriptor(found, kept, &|resource| access(found, resource))
    };
    let components: Value = selected.iter().map(form).collect();
    match cel::evaluate(expression, &activation().with("components", components, None), &Limits::default()) {
        Ok(Evaluated::Value(value)) => Ok(value),
        Ok(Evaluated::Omit) => Ok(Value::Null),
        Err(error) => Err(wrong(".expression", &error.message)),
    }
}

fn fields(mode: &str, fields: &BTreeMap<String, String>) -> Result<Vec<(String, Expression)>, Failed> {
    let read = |(name, text): (&String, &String)| Ok((name.clone(), parse(&format!("{mode}.{name}"), text)?));
    fields.iter().map(read).collect()
}

fn parse(path: &str, text: &str) -> Result<Expression, Failed> {
    Expression::parse_as(text, Dialect::Discovery).map_err(|error| wrong(&format!(".{path}"), &error.to_string()))
}

fn wrong(path: &str, message: &str) -> Failed {
    Failed::wrong(Reason::ExtractFailed, format!("spec.extract{path}: {message}"))
}
