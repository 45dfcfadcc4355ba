//! `VectorDistance` (cosmos-sql §18.8).
//!
//! The binder replaces the options by the distance function, as a number in the third argument.

use super::{Call, Function};
use crate::schema::DistanceFunction;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("VectorDistance", 2, 4, distance),
    // The planner writes this into the component queries of a ranking.
    Function::strict("_VectorScore", 2, 4, distance),
];

fn distance<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let (Some(a), Some(b)) = (vector(call.arg(0)), vector(call.arg(1))) else {
        return Value::Undefined;
    };
    if a.len() != b.len() || a.is_empty() {
        return Value::Undefined;
    }
    if !call.fuel().spend_each(a.len(), 10) {
        return Value::Undefined;
    }
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    Value::float(match call.i64(2) {
        Some(function) if function == DistanceFunction::DotProduct as i64 => dot(&a, &b),
        Some(function) if function == DistanceFunction::Euclidean as i64 => {
            a.iter().zip(&b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt()
        }
        _ => {
            let norms = (dot(&a, &a) * dot(&b, &b)).sqrt();
            if norms == 0.0 { 0.0 } else { dot(&a, &b) / norms }
        }
    })
}

fn vector(value: &Value<'_>) -> Option<Vec<f64>> {
    value.elements()?.iter().map(Value::as_f64).collect()
}
