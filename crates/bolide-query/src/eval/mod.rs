//! Evaluates bound expressions over a row.

mod operators;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use smallvec::SmallVec;

pub use operators::{binary, unary};
pub use rows::{Flow, each_row, each_source_row, key_of, project, run_subquery};

use crate::error::{QueryError, Result};
use crate::fuel;
use crate::functions::{Call, Function};
use crate::like::Like;
use crate::limits::VALUE_BYTES;
use crate::memory::seen_bytes;
use crate::path::PathStep;
use crate::program::{ITEM_SLOT, InSet, LikePattern, Scalar, Select, SubqueryForm};
use crate::session::Session;
use crate::value::{Item, ItemScan, Value, compare, equals, parse_json, truth, write_json};

/// The values of all names in scope, by slot.
#[derive(Debug)]
pub struct Row<'a> {
    pub slots: SmallVec<[Value<'a>; 6]>,
    pub session: &'a Session,
    /// The resource id of the item in slot 0.
    pub rid: u64,
    /// The item of slot 0. The slot itself is empty then, see [`Row::over`].
    scan: ItemScan<'a>,
    /// Whether the item is known to pass the filter. Not for queries with subqueries.
    pub passes_filter: bool,
    /// The number of items with equal rows that it stands for. Not for sums and lists.
    pub times: u64,
}

impl<'a> Row<'a> {
    /// A row without an item.
    pub fn new(slots: usize, session: &'a Session) -> Row<'a> {
        let mut values = SmallVec::with_capacity(slots.max(1));
        values.resize(slots.max(1), Value::Undefined);
        Row {
            slots: values,
            session,
            rid: 0,
            scan: ItemScan::default(),
            passes_filter: false,
            times: 1,
        }
    }

    /// A row over one item, whose members are looked up when needed.
    pub fn over(slots: usize, session: &'a Session, item: &'a Item<'a>, rid: u64) -> Row<'a> {
        Row {
            rid,
            scan: ItemScan::of(item),
            ..Row::new(slots, session)
        }
    }

    fn slot(&self, slot: usize) -> Value<'a> {
        match self.scan.item() {
            Some(item) if slot == ITEM_SLOT => item.value(),
            _ => self.slots[slot].clone(),
        }
    }

    fn path(&mut self, slot: usize, steps: &[PathStep]) -> Result<Value<'a>> {
        let fuel = &self.session.fuel;
        match self.scan.item() {
            Some(item) if slot == ITEM_SLOT => {
                fuel.burn(self.scan.units(item, steps))?;
                Ok(self.scan.walk(item, steps))
            }
            _ => {
                fuel.burn(step_units(&self.slots[slot]))?;
                Ok(walk(&self.slots[slot], steps))
            }
        }
    }
}

impl Value<'static> {
    /// The constant, without changing reference counts where possible.
    fn lend<'a>(&'a self) -> Value<'a> {
        match self {
            Value::String(text) => Value::String(crate::value::Text::Borrowed(text.as_str())),
            other => other.clone(),
        }
    }
}

impl Scalar {
    /// The value of this expression over a row.
    ///
    /// # Errors
    /// An exception in a UDF, or a scalar subquery with several rows. Wrong types give undefined, never an error.
    pub fn eval<'a>(&'a self, row: &mut Row<'a>) -> Result<Value<'a>> {
        row.session.fuel.burn(fuel::NODE)?;
        Ok(match self {
            Scalar::Const(value) => value.lend(),
            Scalar::Slot(slot) => row.slot(*slot),
            Scalar::Path { slot, steps } => row.path(*slot, steps)?,
            Scalar::Step(base, step) => {
                let base = base.eval(row)?;
                row.session.fuel.burn(step_units(&base))?;
                step.of(&base)
            }
            Scalar::Unary(op, operand) => unary(*op, &operand.eval(row)?),
            Scalar::Binary(op, sides) => {
                let left = sides.0.eval(row)?;
                binary(*op, &left, &sides.1.eval(row)?, row.session)?
            }
            Scalar::And(list) => logic(list, row, false)?,
            Scalar::Or(list) => logic(list, row, true)?,
            Scalar::Coalesce(list) => coalesce(list, row)?,
            Scalar::Conditional(parts) => {
                let (condition, then, otherwise) = &**parts;
                if condition.eval(row)?.is_true() {
                    then.eval(row)?
                } else {
                    otherwise.eval(row)?
                }
            }
            Scalar::Between(parts) => between(&parts.0.eval(row)?, &parts.1.eval(row)?, &parts.2.eval(row)?),
            Scalar::In(value, list) => is_in(value, list, row)?,
            Scalar::InSet(value, set) => set.holds(&value.eval(row)?, row.session),
            Scalar::Like(value, pattern) => like(value, pattern, row)?,
            Scalar::Array(items) => {
                let array = Value::array(eval_all(items, row)?);
                row.session.check(array)?
            }
            Scalar::Object(members) => {
                let object = object(members, row)?;
                row.session.check(object)?
            }
            Scalar::Call(function, args) => call(function, args, row)?,
            Scalar::Regex(text, pattern) => match text.eval(row)?.as_str() {
                Some(text) => {
                    let is_match = pattern.is_match(text, &row.session.fuel);
                    row.session.fuel.check()?;
                    is_match.map_or(Value::Undefined, Value::Bool)
                }
                None => Value::Undefined,
            },
            Scalar::Udf(name, args) => udf(name, &eval_all(args, row)?, row.session)?,
            Scalar::Computed(scalar) => scalar.eval(row)?,
            Scalar::Subquery(form, select) => subquery(*form, select, row)?,
        })
    }
}

fn call<'a>(function: &Function, args: &'a [Scalar], row: &mut Row<'a>) -> Result<Value<'a>> {
    let args = eval_all(args, row)?;
    if function.is_strict() && !args.iter().all(Value::is_defined) {
        return Ok(Value::Undefined);
    }
    let value = function.call(&Call {
        args: &args,
        session: row.session,
        rid: row.rid,
    });
    row.session.check(value)
}

fn eval_all<'a>(list: &'a [Scalar], row: &mut Row<'a>) -> Result<SmallVec<[Value<'a>; 4]>> {
    list.iter().map(|scalar| scalar.eval(row)).collect()
}

/// Cost of looking up a member or element of a value.
fn step_units(base: &Value<'_>) -> u64 {
    match base {
        Value::Json(text) => text.len() as u64 / 32,
        Value::Object(members) => members.len() as u64 * 2,
        _ => 0,
    }
}

fn walk<'a>(base: &Value<'a>, steps: &[PathStep]) -> Value<'a> {
    if let Value::Json(text) = base {
        return crate::value::walk(text, 0, steps);
    }
    let Some((first, rest)) = steps.split_first() else {
        return base.clone();
    };
    let mut value = first.of(base);
    for step in rest {
        if matches!(value, Value::Undefined) {
            return value;
        }
        value = step.of(&value);
    }
    value
}

/// AND (`decisive` false) and OR (`decisive` true): one decisive operand decides the result; otherwise a non-boolean operand makes it undefined.
fn logic<'a>(list: &'a [Scalar], row: &mut Row<'a>, decisive: bool) -> Result<Value<'a>> {
    let mut known = true;
    for operand in list {
        match truth(&operand.eval(row)?) {
            Some(value) if value == decisive => return Ok(Value::Bool(decisive)),
            Some(_) => {}
            None => known = false,
        }
    }
    Ok(if known {
        Value::Bool(!decisive)
    } else {
        Value::Undefined
    })
}

fn coalesce<'a>(list: &'a [Scalar], row: &mut Row<'a>) -> Result<Value<'a>> {
    for operand in list {
        let value = operand.eval(row)?;
        if value.is_defined() {
            return Ok(value);
        }
    }
    Ok(Value::Undefined)
}

fn between<'a>(value: &Value<'_>, low: &Value<'_>, high: &Value<'_>) -> Value<'a> {
    let above = compare(value, low).map(std::cmp::Ordering::is_ge);
    let below = compare(value, high).map(std::cmp::Ordering::is_le);
    match (above, below) {
        (Some(false), _) | (_, Some(false)) => Value::Bool(false),
        (Some(true), Some(true)) => Value::Bool(true),
        _ => Value::Undefined,
    }
}

fn is_in<'a>(value: &'a Scalar, list: &'a [Scalar], row: &mut Row<'a>) -> Result<Value<'a>> {
    let value = value.eval(row)?;
    if !value.is_defined() {
        return Ok(Value::Undefined);
    }
    for item in list {
        if equals(&value, &item.eval(row)?, &row.session.fuel) == Some(true) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

impl InSet {
    /// Collects the constants of a list in a set; undefined ones never match.
    ///
    /// # Errors
    /// [`QueryError::Interrupted`]; as [`crate::memory::Memory::take`].
    pub fn new(values: Vec<Value<'static>>, session: &Session) -> Result<InSet> {
        session.memory.take(size_of_val(&values[..]))?;
        let mut keys = HashSet::new();
        for value in values.iter().filter(|value| value.is_defined()) {
            session.fuel.check()?;
            let key = key_of(value, session);
            session.memory.take(seen_bytes(&key))?;
            keys.insert(key);
        }
        Ok(InSet { values, keys })
    }

    fn holds<'a>(&self, value: &Value<'_>, session: &Session) -> Value<'a> {
        match value {
            Value::Undefined => Value::Undefined,
            // NaN equals nothing, not even itself.
            Value::Number(number) if number.as_f64().is_nan() => Value::Bool(false),
            _ => Value::Bool(self.keys.contains(&key_of(value, session))),
        }
    }
}

fn like<'a>(value: &'a Scalar, pattern: &'a LikePattern, row: &mut Row<'a>) -> Result<Value<'a>> {
    let value = value.eval(row)?;
    let Some(text) = value.as_str() else {
        return Ok(Value::Undefined);
    };
    let fuel = &row.session.fuel;
    let matched = match pattern {
        LikePattern::Constant(like) => Some(like.matches(text, fuel)),
        LikePattern::Dynamic(pattern, escape) => match pattern.eval(row)?.as_str() {
            Some(pattern) => {
                fuel.burn(Like::units(pattern))?;
                row.session.memory.check_bytes(Like::bytes(pattern))?;
                Some(Like::new(pattern, *escape).matches(text, fuel))
            }
            None => None,
        },
    };
    fuel.check()?;
    Ok(matched.map_or(Value::Undefined, Value::Bool))
}

fn object<'a>(members: &'a [(std::sync::Arc<str>, Scalar)], row: &mut Row<'a>) -> Result<Value<'a>> {
    let mut out = Vec::with_capacity(members.len());
    for (name, value) in members {
        out.push((crate::value::Text::Borrowed(name), value.eval(row)?));
    }
    Ok(Value::object(out))
}

fn udf<'a>(name: &str, args: &[Value<'a>], session: &Session) -> Result<Value<'a>> {
    let Some(udfs) = &session.udfs else {
        return Err(QueryError::refused(format!(
            "User defined functions are not available here. name='{name}'"
        )));
    };
    if !args.iter().all(Value::is_defined) {
        return Ok(Value::Undefined);
    }
    let arguments: Vec<String> = args.iter().map(json_text).collect();
    session
        .fuel
        .burn(arguments.iter().map(|text| text.len() as u64 * 4).sum())?;
    let result = udfs.0.call(name, &arguments).map_err(QueryError::refused)?;
    // The duration of this call is unknown, so check the limits now.
    session.fuel.check_interrupts();
    session.fuel.check()?;
    session
        .fuel
        .burn(result.as_ref().map_or(0, |text| text.len() as u64 * 10))?;
    Ok(result.and_then(|text| parse_json(&text)).unwrap_or(Value::Undefined))
}

/// The JSON text of a defined value.
pub fn json_text(value: &Value<'_>) -> String {
    let mut out = Vec::new();
    write_json(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn subquery<'a>(form: SubqueryForm, select: &'a Select, row: &mut Row<'a>) -> Result<Value<'a>> {
    let mut found: Vec<Value<'a>> = Vec::new();
    let mut bytes = 0;
    run_subquery(select, row, &mut |row, value| {
        match form {
            SubqueryForm::Last => found.clear(),
            SubqueryForm::Single if !found.is_empty() => {
                return Err(QueryError::refused(
                    "The cardinality of a scalar subquery result set cannot be greater than one.",
                ));
            }
            _ => {}
        }
        if form == SubqueryForm::Array {
            let value_bytes = value.written_out_bytes(VALUE_BYTES);
            bytes += value_bytes;
            row.session.fuel.burn(value_bytes as u64 / 16)?;
            row.session.memory.check_bytes(bytes)?;
        }
        found.push(value);
        Ok(match form {
            SubqueryForm::Exists | SubqueryForm::None | SubqueryForm::First => Flow::Stop,
            SubqueryForm::Single | SubqueryForm::Array | SubqueryForm::Last => Flow::Continue,
        })
    })?;
    Ok(match form {
        SubqueryForm::Exists => Value::Bool(!found.is_empty()),
        SubqueryForm::None => Value::Bool(found.is_empty()),
        SubqueryForm::Array => Value::array(found),
        SubqueryForm::Single | SubqueryForm::First | SubqueryForm::Last => found.pop().unwrap_or(Value::Undefined),
    })
}
