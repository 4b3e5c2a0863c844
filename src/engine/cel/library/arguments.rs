//! Reading the arguments of a function and making its result.

use cel::{
    ExecutionError,
    common::{
        types::{CelBool, CelInt, CelList, CelMap, CelString},
        value::{CowVal, FromVal, Val},
    },
};

/// Arguments, the receiver of a member function first.
pub(crate) type Arguments<'b, 'v> = Vec<CowVal<'b, 'v>>;

/// What a function gives.
pub(crate) type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// An argument as a type of value; the table promises it, so another type is "no such overload".
pub(crate) fn get<'a, 'v, T: FromVal<'a, 'v>>(arguments: &'a [CowVal<'_, 'v>], index: usize) -> Result<&'a T, ExecutionError> {
    arguments.get(index).and_then(|value| T::from_val(value.as_ref())).ok_or_else(no_overload)
}

pub(crate) fn text<'a>(arguments: &'a [CowVal<'_, '_>], index: usize) -> Result<&'a str, ExecutionError> {
    Ok(arguments.get(index).and_then(|value| value.downcast_ref::<CelString>()).ok_or_else(no_overload)?.inner())
}

pub(crate) fn int(arguments: &[CowVal<'_, '_>], index: usize) -> Result<i64, ExecutionError> {
    Ok(*arguments.get(index).and_then(|value| value.downcast_ref::<CelInt>()).ok_or_else(no_overload)?.inner())
}

pub(crate) fn list<'a, 'v>(arguments: &'a [CowVal<'_, 'v>], index: usize) -> Result<&'a [Box<dyn Val + 'v>], ExecutionError> {
    Ok(arguments.get(index).and_then(|value| value.downcast_ref::<CelList>()).ok_or_else(no_overload)?.inner())
}

pub(crate) fn map<'a, 'v>(arguments: &'a [CowVal<'_, 'v>], index: usize) -> Result<&'a CelMap<'v>, ExecutionError> {
    arguments.get(index).and_then(|value| value.downcast_ref::<CelMap>()).ok_or_else(no_overload)
}

/// The elements of a list that nothing else needs.
pub(crate) fn take_list<'v>(arguments: &mut Arguments<'_, 'v>, index: usize) -> Result<Vec<Box<dyn Val + 'v>>, ExecutionError> {
    let elements = list(arguments, index)?;
    Ok(elements.iter().map(|element| element.clone_as_boxed()).collect())
}

/// "no such overload", as kro says it.
pub(crate) fn no_overload() -> ExecutionError {
    ExecutionError::no_such_overload("", Vec::new())
}

/// An error with a message of its own.
pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T, ExecutionError> {
    Err(ExecutionError::FunctionError { function: String::new(), message: message.into() })
}

#[expect(clippy::unnecessary_wraps, reason = "functions end with it")]
pub(crate) fn give<'b, 'v>(value: impl Val + 'v) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(value))
}

pub(crate) fn give_text<'b, 'v>(value: impl Into<String>) -> Outcome<'b, 'v> {
    give(CelString::from(value.into()))
}

pub(crate) fn give_bool<'b, 'v>(value: bool) -> Outcome<'b, 'v> {
    give(CelBool::from(value))
}

pub(crate) fn give_int<'b, 'v>(value: i64) -> Outcome<'b, 'v> {
    give(CelInt::from(value))
}

pub(crate) fn give_list<'b, 'v>(elements: Vec<Box<dyn Val + 'v>>) -> Outcome<'b, 'v> {
    give(CelList::from(elements))
}

/// A boxed text.
pub(crate) fn boxed_text<'v>(value: impl Into<String>) -> Box<dyn Val + 'v> {
    Box::new(CelString::from(value.into()))
}
