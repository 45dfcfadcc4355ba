//! Which part of an index has the documents that a query matches in the order of a sort.
//!
//! ```text
//!   index {a: 1, b: 1}     sort {a: -1, b: -1}                    →  all keys, from the last to the first
//!   index {a: 1, b: -1}    {a: 5}             sort {b: -1}        →  the keys that begin with 5
//!   index {a: 1, b: 1}     {a: {$in: [5, 7]}} sort {b: 1}         →  those that begin with 5 and those that begin with 7, merged by what follows
//!   index {a: 1}           {a: {$gt: 5}}      sort {a: 1}         →  the keys above 5; of documents with arrays all keys
//! ```
//!
//! A document with an array sorts by its first key in the direction of the sort, whatever the query says of the other keys. So its keys are read as a whole, and
//! only its first one counts. Behind an equality its first key there need not be the first of all: then there must be no document with an array.

use super::super::definition::IndexDefinition;
use super::super::pattern::{Field, Kind, Order};
use super::super::stored::{KEY_BYTES, MANY, MULTIKEY, PLAIN};
use super::intervals::{Intervals, Strings};
use super::{
    IndexBounds, KeyRange, ShownBounds, beginning_with, found, has_position, implication, in_order, plain_intervals,
    range,
};
use crate::collation::Collation;
use crate::filter::Conjunction;
use crate::path::field::FieldPath;
use crate::sort::{Sort, SortKey, SortSource};

/// The most parts of an index that are merged.
const MAX_PARTS: usize = 32;
/// The most ranges of a part; more are read as one, with what is between them.
const MAX_RANGES: usize = 1_000;

/// How an index has the documents that a query matches in the order of a sort.
#[derive(Debug, Clone)]
pub struct IndexOrder {
    /// Whether it is read from its end.
    pub is_backward: bool,
    /// The order in which documents come: the sort, then the other fields of the index.
    pub sort: Sort,
    /// The keys that are read: merged by what is behind the beginning of each part, they are in order.
    pub parts: Vec<OrderedKeys>,
    /// If the index has keys here, it does not have the order.
    pub obstacles: Vec<KeyRange>,
    /// As explain shows the keys.
    pub bounds: IndexBounds,
    /// Whether the parts have single values of some fields.
    pub has_equalities: bool,
}

/// Keys with one beginning, in the order of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedKeys {
    /// What all of them begin with.
    pub begin: Vec<u8>,
    /// In the order of the index, whatever the direction.
    pub ranges: Vec<KeyRange>,
}

/// Returns how an index has the documents that match in the order of a sort; `None` if it has not.
///
/// `collation`: that of the query. The keys of the index on `_id` are encoded values without a marker.
///
/// Agrees with: [`Sort::key`], [`super::super::stored_keys`].
pub fn order(
    definition: &IndexDefinition,
    query: &Conjunction<'_>,
    collation: Option<&Collation>,
    sort: &Sort,
) -> Option<IndexOrder> {
    let own = definition.collation.as_deref();
    let is_same = own.map(Collation::to_document) == collation.map(Collation::to_document);
    let fields = definition.key.fields();
    if definition.kind() != Kind::Ordered || !is_same || fields.iter().any(has_position) {
        return None;
    }
    if let Some(partial) = &definition.partial
        && !implication::implies(query, &partial.filter().conditions(), own)
    {
        return None;
    }
    let names = fields.iter().enumerate().map(|(at, field)| (at, &*field.name));
    let strings = Strings {
        collation: own,
        is_same,
    };
    let found = found(names.collect(), query, strings);
    // A sparse index lacks documents in which all of its fields are missing.
    if definition.sparse && found.iter().all(|found| found.takes_missing) {
        return None;
    }
    let known = plain_intervals(fields, &found);
    let fit = Fit::of(fields, &known, sort)?;
    let is_id = definition.is_id();
    let marker: &[u8] = if is_id { &[] } else { &[PLAIN] };
    let mut parts = parts(fields, &known, &fit, marker)?;
    let mut obstacles = Vec::new();
    if !is_id {
        let all = |from, to| KeyRange {
            from: vec![from],
            to: vec![to],
        };
        obstacles.push(all(MANY, PLAIN));
        match fit.has_equalities {
            true => obstacles.push(all(MULTIKEY, MULTIKEY + 1)),
            false => parts.push(OrderedKeys {
                begin: vec![MULTIKEY],
                ranges: vec![all(MULTIKEY, MULTIKEY + 1)],
            }),
        }
    }
    Some(IndexOrder {
        sort: fit.complete(fields, sort)?,
        bounds: fit.shown(fields, &known),
        is_backward: fit.is_backward,
        has_equalities: fit.has_equalities,
        parts,
        obstacles,
    })
}

/// How the fields of an index fit a sort.
struct Fit {
    /// The number of fields at the start that have single values in each part.
    prefix: usize,
    is_backward: bool,
    /// Whether some fields have single values.
    has_equalities: bool,
}

impl Fit {
    fn of(fields: &[Field], known: &[Option<Intervals>], sort: &Sort) -> Option<Fit> {
        let mut wanted = sort.keys().iter().peekable();
        let mut is_backward = None;
        let (mut prefix, mut is_in_prefix, mut has_equalities) = (0, true, false);
        for (field, own) in fields.iter().zip(known) {
            let next = wanted.peek().copied();
            if next.is_none() && !is_in_prefix {
                break;
            }
            let points = own.as_ref().filter(|own| own.are_points()).map(|own| own.0.len());
            let next = next.filter(|key| is_on(key, field));
            match (next, points) {
                // All documents have the same value there.
                (next, Some(1)) => {
                    if next.is_some() {
                        wanted.next();
                    }
                    has_equalities = true;
                    prefix += usize::from(is_in_prefix);
                }
                (Some(key), _) => {
                    let direction = key.is_descending != (field.order == Order::Descending);
                    if *is_backward.get_or_insert(direction) != direction {
                        return None;
                    }
                    is_in_prefix = false;
                    wanted.next();
                }
                (None, Some(_)) if is_in_prefix && wanted.peek().is_some() => {
                    has_equalities = true;
                    prefix += 1;
                }
                (None, _) => break,
            }
        }
        wanted.next().is_none().then_some(Fit {
            prefix,
            is_backward: is_backward.unwrap_or(false),
            has_equalities,
        })
    }

    /// The order of the keys: that of the sort, then of the other fields.
    fn complete(&self, fields: &[Field], sort: &Sort) -> Option<Sort> {
        let others = fields[self.prefix..]
            .iter()
            .filter(|field| !sort.keys().iter().any(|key| is_on(key, field)));
        let others = others.map(|field| {
            Some(SortKey {
                source: SortSource::Path(FieldPath::parse(&field.name).ok()?),
                is_descending: self.is_backward != (field.order == Order::Descending),
            })
        });
        Some(sort.then(others.collect::<Option<Vec<SortKey>>>()?))
    }

    /// The keys as explain shows them, in the direction in which they are read.
    fn shown(&self, fields: &[Field], known: &[Option<Intervals>]) -> IndexBounds {
        let all = Intervals::all();
        let shown = |field: &Field, intervals: &Intervals| {
            let is_reversed = self.is_backward != (field.order == Order::Descending);
            let mut texts: Vec<String> = intervals.0.iter().map(|each| each.shown(is_reversed)).collect();
            if is_reversed {
                texts.reverse();
            }
            (field.name.to_string(), texts)
        };
        let whole: ShownBounds = fields.iter().map(|field| shown(field, &all)).collect();
        let mut plain = whole.clone();
        for (at, field) in fields.iter().enumerate().take(self.prefix + 1) {
            if let Some(own) = &known[at] {
                plain[at] = shown(field, own);
            }
        }
        IndexBounds {
            ranges: Vec::new(),
            is_whole: plain == whole,
            multikey: match self.has_equalities {
                true => plain.clone(),
                false => whole,
            },
            plain,
        }
    }
}

fn is_on(key: &SortKey, field: &Field) -> bool {
    matches!(&key.source, SortSource::Path(path) if path.text() == *field.name)
}

/// Returns the keys of documents without arrays; `None` if they have too many beginnings, or one that is too long.
fn parts(fields: &[Field], known: &[Option<Intervals>], fit: &Fit, marker: &[u8]) -> Option<Vec<OrderedKeys>> {
    let mut begins = vec![marker.to_vec()];
    for (field, own) in fields.iter().zip(known).take(fit.prefix) {
        let own = own.as_ref()?;
        if begins.len() * own.0.len() > MAX_PARTS {
            return None;
        }
        let with_each = |begin: &Vec<u8>| {
            let points = own.0.iter().map(|point| in_order(field, &point.low));
            points.map(|point| [&begin[..], &point].concat()).collect::<Vec<_>>()
        };
        begins = begins.iter().flat_map(with_each).collect();
    }
    if begins.iter().any(|begin| begin.len() > KEY_BYTES) {
        return None;
    }
    let next = fields.get(fit.prefix).zip(known.get(fit.prefix));
    let of_part = |begin: Vec<u8>| {
        let mut ranges = match next {
            Some((field, Some(own))) => own.0.iter().map(|interval| range(&begin, field, interval)).collect(),
            _ if begin.is_empty() => vec![KeyRange {
                from: Vec::new(),
                to: vec![u8::MAX],
            }],
            _ => vec![beginning_with(&begin)],
        };
        ranges.sort_unstable();
        if ranges.len() > MAX_RANGES
            && let (Some(first), Some(last)) = (ranges.first(), ranges.last())
        {
            ranges = vec![KeyRange {
                from: first.from.clone(),
                to: last.to.clone(),
            }];
        }
        OrderedKeys { begin, ranges }
    };
    Some(begins.into_iter().map(of_part).collect())
}

#[cfg(test)]
mod tests;
