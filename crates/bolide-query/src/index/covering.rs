//! Queries that the keys of an index answer, without the items.

use bolide_index::codec::{SqlScalar, decode_sql_scalar};

use super::conditions::is_exact_filter;
use super::key::KEY_OF_UNDEFINED;
use super::order::order;
use super::path::IndexPath;
use crate::aggregate::AggregateKind;
use crate::bind::Bound;
use crate::number::Number;
use crate::path::PathStep;
use crate::program::{Aggregate, Grouping, ITEM_SLOT, Ordering, Projection, Scalar, Select};
use crate::value::write_string;

/// Whether the query counts all items and reads nothing of them.
pub(crate) fn counts_items(select: &Select) -> bool {
    let is_count = |grouping: &Grouping| !grouping.explicit && grouping.aggregates.iter().all(is_count_of_rows);
    select.filter.is_none() && select.is_over_items_only() && select.grouping.as_ref().is_some_and(is_count)
}

/// Whether the query counts the items whose keys one condition admits, and reads nothing else of them.
pub(crate) fn counts_condition(bound: &Bound) -> bool {
    let select = &bound.select;
    let is_count = |grouping: &Grouping| !grouping.explicit && grouping.aggregates.iter().all(is_count_of_rows);
    select.is_over_items_only() && select.grouping.as_ref().is_some_and(is_count) && is_exact_filter(bound)
}

/// Whether an aggregate counts all rows: its argument is defined in each.
fn is_count_of_rows(aggregate: &Aggregate) -> bool {
    let is_counted = aggregate.argument.as_const().is_some_and(|value| value.is_defined());
    aggregate.kind == AggregateKind::Count && is_counted
}

/// The path whose values are all that the query reads of each item, if it groups or aggregates items, or returns each value once.
pub(crate) fn covering_path(bound: &Bound) -> Option<IndexPath> {
    let select = &bound.select;
    let is_of_values = select.grouping.is_some() || is_distinct_only(select);
    if !select.is_over_items_only() || !is_of_values {
        return None;
    }
    let (keys, aggregates) = match &select.grouping {
        Some(grouping) => (&grouping.keys[..], &grouping.aggregates[..]),
        None => (&[][..], &[][..]),
    };
    let mut read = Read::default();
    match &select.ordering {
        Ordering::None => {}
        Ordering::Keys(keys) => keys.iter().for_each(|key| read.add(&key.value)),
        Ordering::Rank(_) => return None,
    }
    select.filter.iter().for_each(|filter| read.add(filter));
    keys.iter().for_each(|(key, _)| read.add(key));
    aggregates.iter().for_each(|aggregate| read.add(&aggregate.argument));
    match &select.projection {
        Projection::Value(value) => read.add(value),
        Projection::List(columns) => columns.iter().for_each(|(_, column)| read.add(column)),
    }
    let steps = read.steps.filter(|_| !read.is_more)?;
    // The order of a list of values is that of the items.
    let has_list = aggregates
        .iter()
        .any(|aggregate| matches!(aggregate.kind, AggregateKind::MakeList | AggregateKind::MakeSet));
    IndexPath::of_steps(steps).filter(|path| !path.is_of_elements() && !has_list)
}

/// Whether the rows are made of nothing of the items but the values at some paths and the id.
pub(crate) fn covers_rows(bound: &Bound, paths: &[&IndexPath]) -> bool {
    let select = &bound.select;
    let is_of_elements = paths.iter().any(|path| path.is_of_elements());
    if !select.is_over_items_only() || select.grouping.is_some() || select.distinct || is_of_elements {
        return false;
    }
    let mut read = Read {
        has_ids: true,
        known: paths.iter().map(|path| path.steps()).collect(),
        ..Read::default()
    };
    match &select.ordering {
        Ordering::None => {}
        Ordering::Keys(keys) => keys.iter().for_each(|key| read.add(&key.value)),
        Ordering::Rank(_) => return false,
    }
    select.filter.iter().for_each(|filter| read.add(filter));
    match &select.projection {
        Projection::Value(value) => read.add(value),
        Projection::List(columns) => columns.iter().for_each(|(_, column)| read.add(column)),
    }
    read.steps.is_none() && !read.is_more
}

/// Whether a key of the index in whose order the rows come tells whether an item has a row.
pub(crate) fn tells_rows(bound: &Bound) -> bool {
    let select = &bound.select;
    if select.skip == 0 || order(bound).is_none_or(|order| order.has_more_paths) {
        return false;
    }
    has_row_by_keys(select, Read::default())
}

/// Whether a key of a composite index in whose order the rows come tells whether an item has a row.
pub(crate) fn tells_rows_of(bound: &Bound, paths: &[&IndexPath]) -> bool {
    let known = paths.iter().map(|path| path.steps()).collect();
    let read = Read {
        known,
        ..Read::default()
    };
    bound.select.skip > 0 && has_row_by_keys(&bound.select, read)
}

/// Whether the filter and the order read nothing but one path, or known ones, and every item that passes has a row.
fn has_row_by_keys<'q>(select: &'q Select, mut read: Read<'q>) -> bool {
    if let Ordering::Keys(keys) = &select.ordering {
        keys.iter().for_each(|key| read.add(&key.value));
    }
    select.filter.iter().for_each(|filter| read.add(filter));
    let is_always_defined =
        |path: &[PathStep]| is_id(path) || matches!(path, [PathStep::Name(name)] if &**name == "_ts");
    let has_row = match &select.projection {
        Projection::List(_) | Projection::Value(Scalar::Slot(ITEM_SLOT)) => true,
        Projection::Value(Scalar::Path { slot: ITEM_SLOT, steps }) => is_always_defined(steps),
        Projection::Value(_) => false,
    };
    has_row && !read.is_more
}

/// Whether the order in which items come has no influence on the result: there is one group, and nothing is summed.
pub(crate) fn is_independent_of_order(select: &Select) -> bool {
    select
        .grouping
        .as_ref()
        .is_some_and(|grouping| !grouping.explicit && sums_nothing(grouping))
}

/// Whether it makes no difference to the result where among the others an equal value comes again.
pub(crate) fn counts_runs(select: &Select) -> bool {
    match &select.grouping {
        Some(grouping) => sums_nothing(grouping),
        None => is_distinct_only(select),
    }
}

/// A sum of doubles depends on their order, and so does a list.
fn sums_nothing(grouping: &Grouping) -> bool {
    grouping.aggregates.iter().all(|aggregate| {
        matches!(
            aggregate.kind,
            AggregateKind::Count | AggregateKind::CountIf | AggregateKind::Min | AggregateKind::Max
        )
    })
}

/// Whether each row comes once, in the order in which they are found.
fn is_distinct_only(select: &Select) -> bool {
    select.distinct && select.grouping.is_none() && matches!(select.ordering, Ordering::None)
}

fn is_id(path: &[PathStep]) -> bool {
    matches!(path, [PathStep::Name(name)] if &**name == ID)
}

pub(super) const ID: &str = "id";

/// What expressions read of an item.
#[derive(Default)]
struct Read<'q> {
    /// Whether the ids of the items are known, so that they need not be read.
    has_ids: bool,
    /// Paths whose values are known.
    known: Vec<Vec<PathStep>>,
    /// The first other path.
    steps: Option<&'q [PathStep]>,
    /// Anything beside the values at that path.
    is_more: bool,
}

impl<'q> Read<'q> {
    fn add(&mut self, scalar: &'q Scalar) {
        match scalar {
            Scalar::Slot(ITEM_SLOT) | Scalar::Subquery(..) | Scalar::Udf(..) => self.is_more = true,
            Scalar::Path { slot: ITEM_SLOT, steps } if self.has_ids && is_id(steps) => {}
            Scalar::Path { slot: ITEM_SLOT, steps } if self.known.iter().any(|known| **known == **steps) => {}
            Scalar::Path { slot: ITEM_SLOT, steps } => {
                let first = *self.steps.get_or_insert(steps);
                self.is_more |= first != &**steps;
            }
            // It is evaluated with the item.
            Scalar::Computed(scalar) => self.add(scalar),
            _ => scalar.for_each_operand(&mut |operand| self.add(operand)),
        }
    }
}

impl IndexPath {
    /// An item, as JSON, that has at this path the value of a key, and nothing else; at [`KEY_OF_UNDEFINED`] nothing at all.
    ///
    /// `None` if the key is not that of equal values only, see [`super::is_exact`].
    pub fn item_with_key(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(64);
        out.push(b'{');
        self.write_member(key, &mut out)?;
        out.push(b'}');
        Some(out)
    }

    /// As [`IndexPath::item_with_key`], with the item's id.
    pub fn item_with_key_and_id(&self, key: &[u8], id: &str) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(64 + id.len());
        out.extend_from_slice(b"{\"id\":");
        write_string(id, &mut out);
        // An id is a text, below which no path finds anything.
        if self.names().next() != Some(ID) {
            let before = out.len();
            out.push(b',');
            self.write_member(key, &mut out)?;
            if out.len() == before + 1 {
                out.pop();
            }
        }
        out.push(b'}');
        Some(out)
    }

    /// Appends the member of the item that has the value of a key; nothing if the key is that of no value.
    pub(super) fn write_member(&self, key: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if key == KEY_OF_UNDEFINED {
            return Some(());
        }
        let names = self.names();
        for (depth, name) in names.clone().enumerate() {
            if depth > 0 {
                out.push(b'{');
            }
            write_string(name, out);
            out.push(b':');
        }
        write_scalar(&decode_sql_scalar(key)?, out)?;
        out.extend(names.skip(1).map(|_| b'}'));
        Some(())
    }
}

/// Appends JSON that is read as the same value; `None` if there is none.
fn write_scalar(scalar: &SqlScalar, out: &mut Vec<u8>) -> Option<()> {
    match scalar {
        SqlScalar::Null => out.extend_from_slice(b"null"),
        SqlScalar::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        SqlScalar::Integer(value) => Number::Int(*value).write_plain(out),
        SqlScalar::Double(value) if value.is_nan() => return None,
        // Beyond the doubles.
        SqlScalar::Double(value) if value.is_infinite() => {
            out.extend_from_slice(if *value > 0.0 { b"1e400" } else { b"-1e400" });
        }
        SqlScalar::Double(value) => Number::Float(*value).write_plain(out),
        SqlScalar::String(text) => write_string(text, out),
    }
    Some(())
}
