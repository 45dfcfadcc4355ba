//! The built-in functions (cosmos-sql §18): one table per family, one function per entry.
//!
//! A body takes values and returns a value; a wrong type gives undefined, never an error. Strict bodies never see undefined arguments.

mod arrays;
mod calendar;
mod conversion;
mod datetime;
mod fulltext;
mod integers;
mod item;
mod math;
pub mod regex;
mod sets;
mod spatial;
mod strings;
#[cfg(test)]
mod tests;
mod types;
mod vector;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::fuel::{self, Fuel};
use crate::session::Session;
use crate::value::Value;

pub use fulltext::{Analyzer, Term, bm25, term_hits};
pub(crate) use spatial::{COVERED_POSITIONS, CoveredShape};
pub use spatial::{CellSurface, ShapeCells};

/// The call that a body implements.
#[derive(Debug)]
pub struct Call<'c, 'a> {
    pub args: &'c [Value<'a>],
    pub session: &'c Session,
    /// The resource id of the current item.
    pub rid: u64,
}

impl<'a> Call<'_, 'a> {
    fn arg(&self, at: usize) -> &Value<'a> {
        self.args.get(at).unwrap_or(&Value::Undefined)
    }

    fn str(&self, at: usize) -> Option<&str> {
        self.arg(at).as_str()
    }

    fn f64(&self, at: usize) -> Option<f64> {
        self.arg(at).as_f64()
    }

    /// Whether the result may have `bytes` bytes; if not, the query fails whatever the body returns.
    fn may_make(&self, bytes: usize) -> bool {
        self.session.memory.allows(bytes)
    }

    fn fuel(&self) -> &Fuel {
        &self.session.fuel
    }

    fn i64(&self, at: usize) -> Option<i64> {
        self.arg(at).as_i64()
    }
}

/// Computes a function.
pub type Body = for<'c, 'a> fn(&Call<'c, 'a>) -> Value<'a>;

/// How a function treats its arguments and its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// Undefined if an argument is undefined; the same arguments give the same result.
    Strict,
    /// Handles undefined arguments itself.
    Lenient,
    /// Depends on the time, on random numbers or on the item.
    Volatile,
}

/// A built-in function.
#[derive(Debug)]
pub struct Function {
    /// The name as in the documentation and error messages.
    pub name: &'static str,
    /// Minimum number of arguments.
    pub min_args: usize,
    /// Maximum number of arguments; `None`: any number.
    pub max_args: Option<usize>,
    pub nature: Nature,
    pub body: Body,
}

impl Function {
    const fn strict(name: &'static str, min_args: usize, max_args: usize, body: Body) -> Function {
        Function {
            name,
            min_args,
            max_args: Some(max_args),
            nature: Nature::Strict,
            body,
        }
    }

    const fn lenient(name: &'static str, min_args: usize, max_args: usize, body: Body) -> Function {
        Function {
            name,
            min_args,
            max_args: Some(max_args),
            nature: Nature::Lenient,
            body,
        }
    }

    const fn volatile(name: &'static str, min_args: usize, max_args: usize, body: Body) -> Function {
        Function {
            name,
            min_args,
            max_args: Some(max_args),
            nature: Nature::Volatile,
            body,
        }
    }

    const fn any_number(self) -> Function {
        Function { max_args: None, ..self }
    }

    /// Calls the function, if there is fuel for reading the arguments once.
    pub fn call<'a>(&self, call: &Call<'_, 'a>) -> Value<'a> {
        let arguments: u64 = call.args.iter().map(reading_units).sum();
        if !call.fuel().spend(fuel::CALL + arguments) {
            return Value::Undefined;
        }
        (self.body)(call)
    }

    /// Whether an undefined argument makes the result undefined.
    pub fn is_strict(&self) -> bool {
        self.nature != Nature::Lenient
    }

    /// Whether the same arguments give the same result, so that constants can be folded.
    pub fn is_pure(&self) -> bool {
        self.nature != Nature::Volatile
    }

    /// The service's message for a wrong number of arguments (SC2050).
    pub fn arity_message(&self) -> String {
        arity_message(self.name, self.min_args, self.max_args)
    }
}

/// The service's message for a wrong number of arguments (SC2050).
pub fn arity_message(name: &str, min_args: usize, max_args: Option<usize>) -> String {
    match max_args {
        None => format!("The {name} function requires at least {min_args} argument(s)."),
        Some(max_args) if max_args == min_args => format!("The {name} function requires {min_args} argument(s)."),
        Some(max_args) => format!("The {name} function requires {min_args} to {max_args} argument(s)."),
    }
}

/// Cost of reading an argument once, without values nested in one made during evaluation.
fn reading_units(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => text.as_str().len() as u64 / 4,
        Value::Json(text) => text.len() as u64 * 2,
        Value::Array(items) => items.len() as u64 * 4,
        Value::Object(members) => members.len() as u64 * 4,
        Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Finds a function by its name, in any case.
pub fn find(name: &str) -> Option<&'static Function> {
    static BY_NAME: OnceLock<HashMap<String, &'static Function>> = OnceLock::new();
    let families = [
        math::FUNCTIONS,
        integers::FUNCTIONS,
        types::FUNCTIONS,
        strings::FUNCTIONS,
        regex::FUNCTIONS,
        arrays::FUNCTIONS,
        sets::FUNCTIONS,
        conversion::FUNCTIONS,
        datetime::FUNCTIONS,
        spatial::FUNCTIONS,
        vector::FUNCTIONS,
        fulltext::FUNCTIONS,
        item::FUNCTIONS,
    ];
    let by_name = BY_NAME.get_or_init(|| {
        families
            .into_iter()
            .flatten()
            .map(|f| (f.name.to_uppercase(), f))
            .collect()
    });
    by_name.get(&name.to_uppercase()).copied()
}
