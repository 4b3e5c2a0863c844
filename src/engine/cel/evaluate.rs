//! The value of an expression.

use std::panic::AssertUnwindSafe;

use cel::{
    Context, ExecutionError, IdedExpr, Value as CelValue,
    common::value::{CowVal, Val},
};
use serde_json::Value;
use thiserror::Error;

use super::{
    activation::Activation,
    budget::{self, Limits},
    expression::Expression,
    library::opaque::Omit,
    locate, stack,
    value::to_json,
    versions,
};
use crate::schema::Schema;

/// What an expression gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Evaluated {
    /// A value; parts that were `omit()` are left out.
    Value(Value),
    /// `omit()`: the field is to be left out.
    Omit,
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct EvalError {
    /// What to do about it.
    pub kind: ErrorKind,
    /// kro's words.
    pub message: String,
    /// Characters before the part of the expression at fault, where that is known.
    pub offset: Option<usize>,
}

/// Kinds of failed evaluations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A variable, field, key or element does not exist (yet): kro.md section 8, "Data pending".
    Pending {
        /// What is missing: `deployment.status.loadBalancer.ingress[0].ip`.
        path: String,
    },
    /// Trying again with the same kinds of values fails again.
    Failed,
    /// It takes more than [`Limits`] allow.
    LimitExceeded,
}

/// Computes an expression.
pub fn evaluate(expression: &Expression, activation: &Activation, limits: &Limits) -> Result<Evaluated, EvalError> {
    evaluate_into(expression, activation, limits, None)
}

/// Computes an expression for a field of this schema: bytes are written as base64 where the schema says `format: byte`, which
/// kro cannot do (kro#844).
pub fn evaluate_into(
    expression: &Expression,
    activation: &Activation,
    limits: &Limits,
    field: Option<&Schema>,
) -> Result<Evaluated, EvalError> {
    evaluate_with(expression, activation, *limits, |value| {
        let json = to_json(value, field).map_err(|message| EvalError { kind: ErrorKind::Failed, message, offset: None })?;
        Ok(json.map_or(Evaluated::Omit, Evaluated::Value))
    })
}

/// Computes an expression and hands its value to `read`.
pub(super) fn evaluate_with<T>(
    expression: &Expression,
    activation: &Activation,
    limits: Limits,
    read: impl FnOnce(&dyn Val) -> Result<T, EvalError> + Send,
) -> Result<T, EvalError>
where
    T: Send,
{
    let result = stack::roomy(expression.height(), || run(expression, activation, limits, read));
    result.unwrap_or_else(|| {
        let message = "there is no thread to evaluate the expression in".to_owned();
        Err(EvalError { kind: ErrorKind::Failed, message, offset: None })
    })
}

fn run<T>(
    expression: &Expression,
    activation: &Activation,
    limits: Limits,
    read: impl FnOnce(&dyn Val) -> Result<T, EvalError>,
) -> Result<T, EvalError> {
    let mut context = Context::with_env(expression.environment().interpreter_shared());
    context.set_variable_resolver(activation);
    let evaluate = || guarded(expression.lowered(), &context);
    let value = versions::within(activation.version_check(), || budget::within(limits, evaluate));
    match value {
        Ok(value) => read(value.as_ref()),
        Err(error) => Err(explain(expression, &context, limits, &error)),
    }
}

/// The interpreter is not ours: a panic in it is a failed evaluation, not the end of the process.
fn guarded<'e, 'v>(tree: &'e IdedExpr, context: &'e Context<'_, 'v>) -> Result<CowVal<'e, 'v>, ExecutionError> {
    std::panic::catch_unwind(AssertUnwindSafe(|| CelValue::resolve_val(tree, context)))
        .unwrap_or_else(|_| Err(ExecutionError::function_error("", "the expression cannot be evaluated")))
}

fn explain(expression: &Expression, context: &Context<'_, '_>, limits: Limits, error: &ExecutionError) -> EvalError {
    let message = message(error);
    if budget::is_exceeded(error) {
        return EvalError { kind: ErrorKind::LimitExceeded, message, offset: None };
    }
    let place = budget::within(limits, || locate::culprit(expression.lowered(), context));
    let offset = place.id.map(|id| expression.offset(id));
    let missing = match error {
        ExecutionError::NoSuchKey(key) => Some(key.to_string()),
        ExecutionError::UndeclaredReference(name) => Some(name.to_string()),
        ExecutionError::IndexOutOfBounds(_) => Some(message.clone()),
        _ => None,
    };
    let kind = match missing {
        Some(key) => ErrorKind::Pending { path: place.path.unwrap_or(key) },
        None => ErrorKind::Failed,
    };
    EvalError { kind, message, offset }
}

/// kro's words for an error of the interpreter.
pub(super) fn message(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::UndeclaredReference(name) => format!("no such attribute(s): {name}"),
        ExecutionError::IndexOutOfBounds(CelValue::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::IndexOutOfBounds(_) => "index out of bounds".to_owned(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(_, CelValue::UInt(_), _) => "unsigned integer overflow".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::FunctionError { function, message } if function == "lists.range" => format!("{function}: {message}"),
        ExecutionError::FunctionError { function, message } if message.starts_with("string parse error: ") => {
            format!("type conversion error from 'string' to '{function}'")
        }
        ExecutionError::FunctionError { message, .. } if message.starts_with("Parsing Error: ") => {
            "type conversion error from 'string' to 'google.protobuf.Duration'".to_owned()
        }
        ExecutionError::FunctionError { message, .. } => message.replacen("Type conversion", "type conversion", 1),
        ExecutionError::DuplicateKey(_) => "repeated key in a map".to_owned(),
        ExecutionError::InternalError(message) => message.clone(),
        _ => "no such overload".to_owned(),
    }
}

/// Whether a value is `omit()`.
pub(super) fn is_omit(value: &dyn Val) -> bool {
    value.downcast_ref::<Omit>().is_some()
}
