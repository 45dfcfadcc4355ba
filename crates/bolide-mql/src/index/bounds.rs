//! The part of an index that a query reads: a superset of the keys of the documents that its filter matches.
//!
//! ```text
//!   index {a: 1, b: -1}    {a: 5, b: {$gt: 2}}      →  a: [5, 5]  b: [inf.0, 2)
//!   index {a: 1, b: 1}     {a: {$gt: 1}, b: 7}      →  a: (1, inf.0]  b: [MinKey, MaxKey]
//!   index {a: 1}           {a: {$gt: 1, $lt: 5}}    →  a: (1, 5); in documents with an array there (1, inf.0]
//! ```
//!
//! In a document without arrays on the way a path has one value, for which all conditions on it hold. Where an array was opened, conditions may hold for
//! different elements, so one of them bounds a path, and paths that may lead through the same array are bounded together only by one `$elemMatch`
//! (mongo.md §14).

mod implication;
mod intervals;
mod order;
mod wildcard;

use bolide_index::codec;
use xxhash_rust::xxh3::xxh3_64;

use self::intervals::{Edge, Interval, Intervals, Strings};
pub use self::order::{IndexOrder, OrderedKeys, order};
use super::definition::IndexDefinition;
use super::pattern::{Field, Kind, Order};
use super::stored::{KEY_BYTES, MANY, MULTIKEY, PLAIN};
use crate::collation::Collation;
use crate::filter::{Condition, Conjunction};
use crate::path::index_of;

/// The most ranges of keys that a query reads.
const MAX_RANGES: usize = 8_192;

/// Stored keys between two ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyRange {
    /// Inclusive.
    pub from: Vec<u8>,
    /// Exclusive.
    pub to: Vec<u8>,
}

/// The part of an index that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexBounds {
    /// In order, without overlaps.
    pub ranges: Vec<KeyRange>,
    plain: ShownBounds,
    multikey: ShownBounds,
    is_whole: bool,
}

/// The name of each field with its intervals, as explain shows them.
pub type ShownBounds = Vec<(String, Vec<String>)>;

impl IndexBounds {
    /// The whole index.
    pub fn whole(definition: &IndexDefinition) -> IndexBounds {
        let none = vec![None; definition.key.fields().len()];
        let all = |marker| compose(definition, &none, marker).unwrap_or_default();
        IndexBounds {
            ranges: vec![KeyRange {
                from: vec![MANY],
                to: vec![MULTIKEY + 1],
            }],
            plain: all(PLAIN).shown,
            multikey: all(MULTIKEY).shown,
            is_whole: true,
        }
    }

    /// The bounds as explain shows them; `is_multikey`: for documents with arrays.
    pub fn shown(&self, is_multikey: bool) -> &ShownBounds {
        if is_multikey { &self.multikey } else { &self.plain }
    }

    /// How many fields it bounds.
    pub fn bounded_fields(&self) -> usize {
        let whole = |(_, intervals): &&(String, Vec<String>)| !matches!(&intervals[..], [only] if only == "[MinKey, MaxKey]" || only == "[MaxKey, MinKey]");
        self.plain.iter().filter(whole).count()
    }

    /// Whether it is all of the index.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }
}

/// The stored keys of documents with arrays: an index that has some is a multikey index.
pub fn multikey_range() -> KeyRange {
    KeyRange {
        from: vec![MULTIKEY],
        to: vec![MULTIKEY + 1],
    }
}

/// Whether documents have keys by which queries can read them.
pub fn has_stored_keys(definition: &IndexDefinition) -> bool {
    matches!(definition.kind(), Kind::Ordered | Kind::Hashed | Kind::Wildcard) && !definition.is_id()
}

/// Returns the parts of an index, each of which has all documents that match; none if the index cannot serve the query.
///
/// `collation`: that of the query.
pub fn bounds(
    definition: &IndexDefinition,
    query: &Conjunction<'_>,
    collation: Option<&Collation>,
) -> Vec<IndexBounds> {
    let own = definition.collation.as_deref();
    let strings = Strings {
        collation: own,
        is_same: own.map(Collation::to_document) == collation.map(Collation::to_document),
    };
    if !has_stored_keys(definition) {
        return Vec::new();
    }
    if let Some(partial) = &definition.partial
        && !(strings.is_same && implication::implies(query, &partial.filter().conditions(), own))
    {
        return Vec::new();
    }
    match definition.kind() {
        Kind::Wildcard => wildcard::bounds(definition, query, strings),
        _ => ordered(definition, query, strings).into_iter().collect(),
    }
}

/// What a condition says about an indexed path.
struct Found<'f> {
    /// The index's field.
    field: usize,
    intervals: Intervals,
    takes_missing: bool,
    /// The innermost `$elemMatch` that it is in, and its path inside.
    group: Option<(usize, &'f str)>,
}

/// Collects the conditions on paths.
struct Collector<'a> {
    names: Vec<(usize, &'a str)>,
    strings: Strings<'a>,
    groups: usize,
}

impl Collector<'_> {
    fn collect<'f>(
        &mut self,
        conditions: &[Condition<'f>],
        (before, group): (&str, Option<usize>),
        found: &mut Vec<Found<'f>>,
    ) {
        for condition in conditions {
            match condition {
                Condition::Field { path, test } => {
                    let is_it = |name: &str| name.strip_prefix(before) == Some(*path);
                    let Some((field, _)) = self.names.iter().find(|(_, name)| is_it(name)) else {
                        continue;
                    };
                    found.extend(Intervals::of_test(test, self.strings).map(|intervals| Found {
                        field: *field,
                        intervals,
                        takes_missing: test.takes_missing(),
                        group: group.map(|group| (group, *path)),
                    }));
                }
                Condition::Elements { path, conditions } => {
                    self.groups += 1;
                    let inside = format!("{before}{path}.");
                    let is_on_the_way = |(_, name): &(usize, &str)| name.starts_with(&inside);
                    if self.names.iter().any(is_on_the_way) {
                        let group = Some(self.groups);
                        self.collect(conditions, (&inside, group), found);
                    }
                }
            }
        }
    }
}

/// Returns the conditions on the fields of an index.
fn found<'f>(names: Vec<(usize, &str)>, query: &Conjunction<'f>, strings: Strings<'_>) -> Vec<Found<'f>> {
    let mut found = Vec::new();
    let mut collector = Collector {
        names,
        strings,
        groups: 0,
    };
    collector.collect(&query.conditions, ("", None), &mut found);
    found
}

/// Whether a name is a position in an array, too: such paths have other keys.
fn has_position(field: &Field) -> bool {
    field.path.iter().any(|name| index_of(name).is_some())
}

fn ordered(definition: &IndexDefinition, query: &Conjunction<'_>, strings: Strings<'_>) -> Option<IndexBounds> {
    let fields = definition.key.fields();
    let names = fields.iter().enumerate().filter(|(_, field)| !has_position(field));
    let found = found(names.map(|(at, field)| (at, &*field.name)).collect(), query, strings);
    // A sparse index lacks documents in which all of its fields are missing.
    if definition.sparse && found.iter().all(|found| found.takes_missing) {
        return None;
    }
    let is_narrowed = |found: &Found<'_>| found.field == 0 && (definition.sparse || !found.intervals.is_all());
    if !found.iter().any(is_narrowed) {
        return None;
    }
    let plain = plain_intervals(fields, &found);
    // No document with an array on the way is in a hashed index.
    let multikey = match definition.kind() {
        Kind::Hashed => plain.clone(),
        _ => of_elements(fields, &found),
    };
    let plain = compose(definition, &plain, PLAIN)?;
    let multikey = compose(definition, &multikey, MULTIKEY)?;
    Some(joined(plain, multikey))
}

fn joined(plain: Composed, multikey: Composed) -> IndexBounds {
    let many = KeyRange {
        from: vec![MANY],
        to: vec![PLAIN],
    };
    let ranges = [many].into_iter().chain(plain.ranges).chain(multikey.ranges);
    IndexBounds {
        ranges: ranges.collect(),
        plain: plain.shown,
        multikey: multikey.shown,
        is_whole: false,
    }
}

/// Returns the intervals that bound the keys of documents without arrays: all conditions hold for the one value of each field.
fn plain_intervals(fields: &[Field], found: &[Found<'_>]) -> Vec<Option<Intervals>> {
    let mut plain = vec![None; fields.len()];
    for condition in found {
        let known: &mut Option<Intervals> = &mut plain[condition.field];
        *known = Some(match known.take() {
            Some(known) => known.and(&condition.intervals),
            None => condition.intervals.clone(),
        });
    }
    plain
}

/// Returns the intervals that bound the keys of documents with arrays: one condition for each field at most.
fn of_elements(fields: &[Field], found: &[Found<'_>]) -> Vec<Option<Intervals>> {
    let mut chosen: Vec<&Found<'_>> = Vec::new();
    for at in 0..fields.len() {
        let allowed = found
            .iter()
            .filter(|next| next.field == at && chosen.iter().all(|known| are_together(fields, known, next)));
        chosen.extend(allowed.min_by_key(|next| width(&next.intervals)));
    }
    let mut intervals = vec![None; fields.len()];
    for condition in chosen {
        intervals[condition.field] = Some(condition.intervals.clone());
    }
    intervals
}

/// Smaller is better.
fn width(intervals: &Intervals) -> (u8, usize) {
    let kind = match () {
        () if intervals.are_points() => 0,
        () if intervals.is_all() => 2,
        () => 1,
    };
    (kind, intervals.0.len())
}

/// Whether both conditions hold for one key of a document: no array is on the way to both, or they hold for the same element, and inside it no array is.
fn are_together(fields: &[Field], a: &Found<'_>, b: &Found<'_>) -> bool {
    let (first, second) = (&fields[a.field], &fields[b.field]);
    if first.path.first() != second.path.first() {
        return true;
    }
    let root = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
    match (a.group, b.group) {
        (Some((a, a_path)), Some((b, b_path))) => a == b && root(a_path) != root(b_path),
        _ => false,
    }
}

/// Ranges of keys, and how they are shown.
#[derive(Default)]
struct Composed {
    ranges: Vec<KeyRange>,
    shown: ShownBounds,
}

/// Puts the bounds of the fields together: all combinations of single values of the first fields, then the intervals of the next one. `None` if there are
/// too many of the first field.
fn compose(definition: &IndexDefinition, intervals: &[Option<Intervals>], marker: u8) -> Option<Composed> {
    let fields = definition.key.fields();
    let all = Intervals::all();
    let shown = |field: &Field, intervals: &Intervals| {
        let is_descending = field.order == Order::Descending;
        let mut texts: Vec<String> = intervals.0.iter().map(|each| each.shown(is_descending)).collect();
        if is_descending {
            texts.reverse();
        }
        (field.name.to_string(), texts)
    };
    let mut composed = Composed {
        shown: fields.iter().map(|field| shown(field, &all)).collect(),
        ranges: Vec::new(),
    };
    let mut beginnings = vec![vec![marker]];
    let mut is_open = true;
    for (at, field) in fields.iter().enumerate() {
        let Some(own) = &intervals[at] else { break };
        let hashed = (field.order == Order::Special).then(|| hashed(own));
        let own = match &hashed {
            Some(Some(hashed)) => hashed,
            Some(None) => break,
            None => own,
        };
        if beginnings.len() * own.0.len() > MAX_RANGES {
            match at {
                0 => return None,
                _ => break,
            }
        }
        composed.shown[at] = shown(field, own);
        if own.are_points() {
            beginnings = beginnings
                .iter()
                .flat_map(|begin| {
                    own.0
                        .iter()
                        .map(|point| [&begin[..], &in_order(field, &point.low)].concat())
                })
                .collect();
            continue;
        }
        composed.ranges = beginnings
            .iter()
            .flat_map(|begin| own.0.iter().map(|interval| range(begin, field, interval)))
            .collect();
        is_open = false;
        break;
    }
    if is_open {
        composed.ranges = beginnings.iter().map(|begin| beginning_with(begin)).collect();
    }
    composed.ranges.sort_unstable();
    composed.ranges.dedup();
    Some(composed)
}

/// Single values as a hashed index has them; `None` for intervals.
fn hashed(intervals: &Intervals) -> Option<Intervals> {
    let point = |interval: &Interval| {
        let mut edge = interval.low.clone();
        edge.key = xxh3_64(&edge.key).to_be_bytes().to_vec();
        Interval {
            low: edge.clone(),
            high: edge,
        }
    };
    intervals
        .are_points()
        .then(|| Intervals(intervals.0.iter().map(point).collect()))
}

/// The encoded value as the index has it.
fn in_order(field: &Field, edge: &Edge) -> Vec<u8> {
    let mut key = edge.key.clone();
    if field.order == Order::Descending {
        codec::invert(&mut key);
    }
    key
}

/// The keys with a beginning.
fn beginning_with(begin: &[u8]) -> KeyRange {
    cut(begin.to_vec(), after(begin))
}

/// The keys with a beginning and then a value of an interval.
fn range(begin: &[u8], field: &Field, interval: &Interval) -> KeyRange {
    let (first, last) = match field.order {
        Order::Descending => (&interval.high, &interval.low),
        _ => (&interval.low, &interval.high),
    };
    let key = |edge: &Edge| [begin, &in_order(field, edge)].concat();
    let from = match first.is_inclusive {
        true => key(first),
        false => after(&key(first)),
    };
    let to = match last.is_inclusive {
        true => after(&key(last)),
        false => key(last),
    };
    cut(from, to)
}

/// Widens a range whose ends are longer than stored keys.
fn cut(mut from: Vec<u8>, mut to: Vec<u8>) -> KeyRange {
    let end = 1 + KEY_BYTES;
    from.truncate(end);
    if to.len() > end {
        to = after(&to[..end]);
    }
    KeyRange { from, to }
}

/// The lowest bytes above all that begin with a key, which begins with a marker.
fn after(key: &[u8]) -> Vec<u8> {
    let last = key.iter().rposition(|byte| *byte != u8::MAX).unwrap_or(0);
    let mut end = key[..=last].to_vec();
    end[last] = end[last].saturating_add(1);
    end
}

#[cfg(test)]
mod tests;
