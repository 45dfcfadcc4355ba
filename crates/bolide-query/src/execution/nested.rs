//! A FROM subquery over the container that groups or removes duplicates: its results exist only after all items are processed, or must be remembered
//! from item to item.

use super::distinct::Distinct;
use super::emitted_rows;
use crate::error::Result;
use crate::eval::{Flow, Row, each_row, each_source_row, project};
use crate::group::Groups;
use crate::program::{Input, Select, Source};
use crate::value::Value;

/// The state of such a subquery, and of another one nested in it.
#[derive(Debug)]
pub(super) struct Nested {
    groups: Option<Groups>,
    distinct: Option<Distinct>,
    inner: Option<Box<Nested>>,
}

type RowSink<'s, 'a> = &'s mut dyn FnMut(&mut Row<'a>) -> Result<Flow>;
type ValueSink<'s, 'a> = &'s mut dyn FnMut(&mut Row<'a>, Value<'a>) -> Result<Flow>;

/// The subquery of the first input.
fn first_subquery(select: &Select) -> Option<(&Input, &Select)> {
    let input = select.inputs.first()?;
    match &input.source {
        Source::Subquery(inner) | Source::EachOfSubquery(inner) => Some((input, inner)),
        _ => None,
    }
}

impl Nested {
    /// The state for a query whose first input is such a subquery; `None` for other queries.
    pub fn of(select: &Select) -> Option<Nested> {
        let (_, inner) = first_subquery(select)?;
        let nested = Nested::of(inner);
        let needed = inner.reads_items() && (inner.grouping.is_some() || inner.distinct || nested.is_some());
        needed.then(|| Nested {
            groups: inner.grouping.as_ref().map(Groups::new),
            distinct: inner.distinct.then(Distinct::default),
            inner: nested.map(Box::new),
        })
    }

    fn take_row<'a>(&mut self, inner: &'a Select, row: &mut Row<'a>, emit: ValueSink<'_, 'a>) -> Result<Flow> {
        match (&mut self.groups, &inner.grouping) {
            (Some(groups), Some(grouping)) => groups.add(grouping, row).map(|()| Flow::Continue),
            _ => {
                let value = project(&inner.projection, row)?;
                self.emit_new(value, row, emit)
            }
        }
    }

    fn emit_new<'a>(&mut self, value: Value<'a>, row: &mut Row<'a>, emit: ValueSink<'_, 'a>) -> Result<Flow> {
        if !value.is_defined() {
            return Ok(Flow::Continue);
        }
        let Some(distinct) = &mut self.distinct else {
            return emit(row, value);
        };
        if !distinct.is_new(&value, row.session)? {
            return Ok(Flow::Continue);
        }
        let hash = distinct.hash_of_last();
        with_replaced_id(hash, row, |row| emit(row, value))
    }
}

/// Runs `emit` for a row that belongs to no item. Its hash replaces the resource id, so that ties and continuations do not depend on which items exist.
fn with_replaced_id<'a>(hash: u64, row: &mut Row<'a>, emit: impl FnOnce(&mut Row<'a>) -> Result<Flow>) -> Result<Flow> {
    let rid = std::mem::replace(&mut row.rid, hash);
    let flow = emit(row);
    row.rid = rid;
    flow
}

/// Runs `sink` for the rows of one more item.
pub(super) fn each_item_row<'a>(
    select: &'a Select,
    nested: Option<&mut Nested>,
    row: &mut Row<'a>,
    sink: RowSink<'_, 'a>,
) -> Result<Flow> {
    let (Some(nested), Some((input, inner))) = (nested, first_subquery(select)) else {
        return each_row(select, row, sink);
    };
    let mut below = nested.inner.take();
    let flow = each_item_row(inner, below.as_deref_mut(), row, &mut |row| {
        nested.take_row(inner, row, &mut |row, value| {
            outer_rows(select, input, value, row, sink)
        })
    });
    nested.inner = below;
    flow
}

/// Runs `sink` for the rows that were held back until all items were processed.
pub(super) fn each_row_at_end<'a>(
    select: &'a Select,
    nested: Option<Nested>,
    row: &mut Row<'a>,
    sink: RowSink<'_, 'a>,
) -> Result<Flow> {
    let (Some(mut nested), Some((input, inner))) = (nested, first_subquery(select)) else {
        return Ok(Flow::Continue);
    };
    let below = nested.inner.take().map(|nested| *nested);
    let flow = each_row_at_end(inner, below, row, &mut |row| {
        nested.take_row(inner, row, &mut |row, value| {
            outer_rows(select, input, value, row, sink)
        })
    })?;
    if flow == Flow::Stop {
        return Ok(flow);
    }
    if let (Some(groups), Some(grouping)) = (nested.groups.take(), &inner.grouping) {
        for group in groups.finish(grouping) {
            row.session.begin_item();
            let hash = emitted_rows::hash(group.key());
            group.fill(grouping, row);
            let value = project(&inner.projection, row)?;
            let flow = with_replaced_id(hash, row, |row| {
                nested.emit_new(value, row, &mut |row, value| {
                    outer_rows(select, input, value, row, sink)
                })
            })?;
            if flow == Flow::Stop {
                return Ok(flow);
            }
        }
    }
    Ok(Flow::Continue)
}

/// The rows of the outer query over one result of its first input.
fn outer_rows<'a>(
    select: &'a Select,
    input: &'a Input,
    value: Value<'a>,
    row: &mut Row<'a>,
    sink: RowSink<'_, 'a>,
) -> Result<Flow> {
    let values: Vec<Value<'a>> = match &input.source {
        Source::EachOfSubquery(_) => value.elements().unwrap_or_default().into_owned(),
        _ => vec![value],
    };
    for value in values {
        row.slots[input.slot] = value;
        let flow = each_source_row(&select.inputs[1..], row, &mut |row| {
            if let Some(filter) = &select.filter
                && !filter.eval(row)?.is_true()
            {
                return Ok(Flow::Continue);
            }
            sink(row)
        })?;
        if flow == Flow::Stop {
            return Ok(flow);
        }
    }
    Ok(Flow::Continue)
}
