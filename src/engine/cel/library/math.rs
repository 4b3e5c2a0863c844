//! Numbers: the interpreter's functions, for the delivery controllers' environment.

use super::{Entry, theirs};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        // Lowering hands these over as `math.@max` and `math.@min`.
        theirs(
            "math.greatest",
            &[
                "math.greatest(dyn) -> dyn",
                "math.greatest(dyn, dyn) -> dyn",
                "math.greatest(dyn, dyn, dyn) -> dyn",
                "math.greatest(dyn, dyn, dyn, dyn) -> dyn",
            ],
        ),
        theirs(
            "math.least",
            &[
                "math.least(dyn) -> dyn",
                "math.least(dyn, dyn) -> dyn",
                "math.least(dyn, dyn, dyn) -> dyn",
                "math.least(dyn, dyn, dyn, dyn) -> dyn",
            ],
        ),
        theirs("math.ceil", &["math.ceil(double) -> double"]),
        theirs("math.floor", &["math.floor(double) -> double"]),
        theirs("math.round", &["math.round(double) -> double"]),
        theirs("math.trunc", &["math.trunc(double) -> double"]),
        theirs("math.abs", &["math.abs(int) -> int", "math.abs(uint) -> uint", "math.abs(double) -> double"]),
        theirs("math.sign", &["math.sign(int) -> int", "math.sign(uint) -> uint", "math.sign(double) -> double"]),
        theirs("math.sqrt", &["math.sqrt(int) -> double", "math.sqrt(uint) -> double", "math.sqrt(double) -> double"]),
        theirs("math.isNaN", &["math.isNaN(double) -> bool"]),
        theirs("math.isInf", &["math.isInf(double) -> bool"]),
        theirs("math.isFinite", &["math.isFinite(double) -> bool"]),
        theirs("math.bitAnd", &["math.bitAnd(int, int) -> int", "math.bitAnd(uint, uint) -> uint"]),
        theirs("math.bitOr", &["math.bitOr(int, int) -> int", "math.bitOr(uint, uint) -> uint"]),
        theirs("math.bitXor", &["math.bitXor(int, int) -> int", "math.bitXor(uint, uint) -> uint"]),
        theirs("math.bitNot", &["math.bitNot(int) -> int", "math.bitNot(uint) -> uint"]),
        theirs("math.bitShiftLeft", &["math.bitShiftLeft(int, int) -> int", "math.bitShiftLeft(uint, int) -> uint"]),
        theirs("math.bitShiftRight", &["math.bitShiftRight(int, int) -> int", "math.bitShiftRight(uint, int) -> uint"]),
    ]
}
