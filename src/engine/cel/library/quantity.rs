//! Kubernetes' quantities in expressions.

use cel::common::types::{CelDouble, Type};

use super::{
    Entry,
    arguments::{Arguments, Outcome, fail, get, give, give_bool, give_int, int, text},
    opaque::{Kind, Opaque, QUANTITY},
    ours,
};
use crate::quantity::{ONE, Quantity};

pub(super) fn entries() -> Vec<Entry> {
    const BOTH: [&[&str]; 2] = [
        &[
            "kubernetes.Quantity.add(int) -> kubernetes.Quantity",
            "kubernetes.Quantity.add(kubernetes.Quantity) -> kubernetes.Quantity",
        ],
        &[
            "kubernetes.Quantity.sub(int) -> kubernetes.Quantity",
            "kubernetes.Quantity.sub(kubernetes.Quantity) -> kubernetes.Quantity",
        ],
    ];
    vec![
        ours("quantity", &["quantity(string) -> kubernetes.Quantity"], quantity),
        ours("isQuantity", &["isQuantity(string) -> bool"], is_quantity),
        ours("isInteger", &["kubernetes.Quantity.isInteger() -> bool"], is_integer),
        ours("asInteger", &["kubernetes.Quantity.asInteger() -> int"], as_integer),
        ours("asApproximateFloat", &["kubernetes.Quantity.asApproximateFloat() -> double"], as_approximate_float),
        ours("sign", &["sign(kubernetes.Quantity) -> int"], sign),
        ours("add", BOTH[0], add),
        ours("sub", BOTH[1], sub),
        ours("compareTo", &["kubernetes.Quantity.compareTo(kubernetes.Quantity) -> int"], compare_to),
        ours("isLessThan", &["kubernetes.Quantity.isLessThan(kubernetes.Quantity) -> bool"], is_less_than),
        ours("isGreaterThan", &["kubernetes.Quantity.isGreaterThan(kubernetes.Quantity) -> bool"], is_greater_than),
    ]
}

impl Kind for Quantity {
    fn runtime_type() -> &'static Type {
        &QUANTITY
    }
}

fn this(arguments: &Arguments<'_, '_>, index: usize) -> Result<Quantity, cel::ExecutionError> {
    Ok(get::<Opaque<Quantity>>(arguments, index)?.0)
}

fn quantity<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match Quantity::parse(text(&arguments, 0)?) {
        Ok(quantity) => give(Opaque(quantity)),
        Err(message) => fail(message),
    }
}

fn is_quantity<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(Quantity::parse(text(&arguments, 0)?).is_ok())
}

fn is_integer<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(this(&arguments, 0)?.whole().is_some())
}

fn as_integer<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    match this(&arguments, 0)?.whole() {
        Some(whole) => give_int(whole),
        None => fail("cannot convert value to integer"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "approximate by name")]
fn as_approximate_float<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give(CelDouble::from(this(&arguments, 0)?.billionths as f64 / ONE as f64))
}

fn sign<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_int(i64::try_from(this(&arguments, 0)?.billionths.signum()).unwrap_or(0))
}

/// The second operand, a quantity or a whole number.
fn operand(arguments: &Arguments<'_, '_>) -> Result<Quantity, cel::ExecutionError> {
    this(arguments, 1).or_else(|_| Ok(Quantity::of(int(arguments, 1)?)))
}

fn add<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give(Opaque(this(&arguments, 0)?.plus(operand(&arguments)?)))
}

fn sub<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give(Opaque(this(&arguments, 0)?.plus(operand(&arguments)?.negated())))
}

fn compare_to<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_int(this(&arguments, 0)?.cmp(&this(&arguments, 1)?) as i64)
}

fn is_less_than<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(this(&arguments, 0)? < this(&arguments, 1)?)
}

fn is_greater_than<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    give_bool(this(&arguments, 0)? > this(&arguments, 1)?)
}
