//! Rows: the nested loops of FROM, the pipeline of a subquery, projections (cosmos-sql §5, §10, §16).

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::Row;
use crate::error::Result;
use crate::fuel::KEY_BYTE;
use crate::group::Groups;
use crate::memory::seen_bytes;
use crate::program::{Grouping, Input, Projection, Select, Source};
use crate::session::Session;
use crate::value::{SameKey, Text, Value, append_same_key, same_key};

/// Whether a producer of rows should continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Stop,
}

/// Receives a row.
pub type RowSink<'s, 'a> = &'s mut dyn FnMut(&mut Row<'a>) -> Result<Flow>;

/// Receives a result of a subquery.
pub type ValueSink<'s, 'a> = &'s mut dyn FnMut(&mut Row<'a>, Value<'a>) -> Result<Flow>;

/// Runs `sink` for every row of FROM and WHERE.
pub fn each_row<'a>(select: &'a Select, row: &mut Row<'a>, sink: RowSink<'_, 'a>) -> Result<Flow> {
    each_source_row(&select.inputs, row, &mut |row| {
        if let Some(filter) = &select.filter
            && !row.passes_filter
            && !filter.eval(row)?.is_true()
        {
            return Ok(Flow::Continue);
        }
        sink(row)
    })
}

/// Runs `sink` for every combination of the inputs.
pub fn each_source_row<'a>(inputs: &'a [Input], row: &mut Row<'a>, sink: RowSink<'_, 'a>) -> Result<Flow> {
    row.session.count_row()?;
    let Some((input, rest)) = inputs.split_first() else {
        return sink(row);
    };
    let slot = input.slot;
    match &input.source {
        Source::Item => each_source_row(rest, row, sink),
        Source::Value(scalar) => {
            let value = scalar.eval(row)?;
            if !value.is_defined() {
                return Ok(Flow::Continue);
            }
            row.slots[slot] = value;
            each_source_row(rest, row, sink)
        }
        Source::Each(scalar) => {
            let array = scalar.eval(row)?;
            each_element(&array, slot, row, &mut |row| each_source_row(rest, row, sink))
        }
        Source::Subquery(inner) => run_subquery(inner, row, &mut |row, value| {
            row.slots[slot] = value;
            each_source_row(rest, row, sink)
        }),
        Source::EachOfSubquery(inner) => run_subquery(inner, row, &mut |row, value| {
            each_element(&value, slot, row, &mut |row| each_source_row(rest, row, sink))
        }),
    }
}

fn each_element<'a>(array: &Value<'a>, slot: usize, row: &mut Row<'a>, sink: RowSink<'_, 'a>) -> Result<Flow> {
    let fuel = &row.session.fuel;
    if let Value::Json(text) = array {
        fuel.burn(text.len() as u64 / 4)?;
    }
    let flow = array.each_element(|element| {
        row.slots[slot] = element;
        match sink(row) {
            Ok(Flow::Continue) => ControlFlow::Continue(()),
            other => ControlFlow::Break(other),
        }
    });
    flow.break_value().unwrap_or(Ok(Flow::Continue))
}

/// Runs `sink` for every result of a subquery over the current row.
pub fn run_subquery<'a>(select: &'a Select, row: &mut Row<'a>, sink: ValueSink<'_, 'a>) -> Result<Flow> {
    let session = row.session;
    let mut seen = select.distinct.then(HashSet::<SameKey>::new);
    let mut held = 0;
    let mut sink = |row: &mut Row<'a>, value: Value<'a>| {
        if !value.is_defined() {
            return Ok(Flow::Continue);
        }
        if let Some(seen) = &mut seen {
            let key = key_of(&value, session);
            let key_bytes = seen_bytes(&key);
            if !seen.insert(key) {
                return Ok(Flow::Continue);
            }
            held += key_bytes;
            session.memory.take(key_bytes)?;
        }
        sink(row, value)
    };
    let flow = match &select.grouping {
        None => each_row(select, row, &mut |row| {
            let value = project(&select.projection, row)?;
            sink(row, value)
        }),
        Some(grouping) => each_group(select, grouping, row, &mut sink),
    }?;
    session.memory.release(held);
    Ok(flow)
}

fn each_group<'a>(
    select: &'a Select,
    grouping: &'a Grouping,
    row: &mut Row<'a>,
    sink: ValueSink<'_, 'a>,
) -> Result<Flow> {
    let mut groups = Groups::new(grouping);
    each_row(select, row, &mut |row| {
        groups.add(grouping, row).map(|()| Flow::Continue)
    })?;
    let bytes = groups.bytes();
    let mut flow = Flow::Continue;
    for group in groups.finish(grouping) {
        group.fill(grouping, row);
        let value = project(&select.projection, row)?;
        flow = sink(row, value)?;
        if flow == Flow::Stop {
            break;
        }
    }
    row.session.memory.release(bytes);
    Ok(flow)
}

/// The hash that identifies a value.
pub fn key_of(value: &Value<'_>, session: &Session) -> SameKey {
    let mut canonical = Vec::new();
    append_same_key(value, &mut canonical);
    session.fuel.spend_each(canonical.len(), KEY_BYTE);
    same_key(&canonical)
}

/// The result of a row; undefined if the row has none.
pub fn project<'a>(projection: &'a Projection, row: &mut Row<'a>) -> Result<Value<'a>> {
    match projection {
        Projection::Value(scalar) => scalar.eval(row),
        Projection::List(columns) => {
            let mut members: Vec<(Text<'a>, Value<'a>)> = Vec::with_capacity(columns.len());
            for (name, scalar) in columns {
                let value = scalar.eval(row)?;
                if value.is_defined() {
                    members.push((Text::Borrowed(name), value));
                }
            }
            Ok(Value::Object(Arc::new(members)))
        }
    }
}
