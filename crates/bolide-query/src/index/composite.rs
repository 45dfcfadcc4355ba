//! Composite indexes: the values of an item at several paths in one key, and the order of a query in them.
//!
//! ```text
//!   index (a, b)     ORDER BY a, b           all keys
//!                    ORDER BY a DESC, b DESC all keys, from the last to the first
//!                    a = 5 ORDER BY b        the keys that begin with 5
//!                    a = 5 AND b > 7         the keys from (5, 7) to the end of those that begin with 5
//! ```
//!
//! A key is the keys of all values, one after another, those of descending paths inverted, and is cut behind [`KEY_BYTES`]. Arrays and objects count as
//! undefined, as in a sort by several paths. A sort by one path, behind equal values of those before it, has them behind all other values: there the keys of
//! undefined are read once more.

use bolide_index::codec::{invert, sql_rank, sql_scalar_length};

use super::conditions::{IndexCondition, path_of};
use super::covering::ID;
use super::interval::{Interval, union};
use super::key::{self, KEY_BYTES, KEY_OF_UNDEFINED, is_exact};
use super::order::OrderedKeys;
use super::path::IndexPath;
use crate::bind::Bound;
use crate::program::SortKey;
use crate::value::{Item, Kind, Value, write_string};

/// Maximum length of what the keys of a query begin with, in bytes: what follows it must not be cut soon.
const MAX_FIXED_BYTES: usize = KEY_BYTES / 2;

/// Maximum number of beginnings of keys that equal values of several paths make: those of IN are combined.
const MAX_BEGINNINGS: usize = 1_000;
/// Maximum size of the keys that an index is asked for, in bytes.
const MAX_BYTES: usize = 512 * 1024;
/// Maximum number of intervals of a condition that are read in the order of rows; with more, everything between them is read, too.
const MAX_PARTS: usize = 256;

/// A path of a composite index.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CompositePath {
    /// Where the value is. Not of elements.
    pub path: IndexPath,
    /// From the highest value to the lowest.
    pub descending: bool,
}

/// A composite index: two or more paths, the first of them ascending.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CompositeIndex {
    paths: Vec<CompositePath>,
}

impl CompositeIndex {
    /// The index of these paths. An index is read in both directions, so that all directions are turned if the first one descends. `None` if there are fewer than two
    /// paths, or a path of elements.
    pub fn of(mut paths: Vec<CompositePath>) -> Option<CompositeIndex> {
        let turns = paths.first()?.descending;
        for path in &mut paths {
            path.descending ^= turns;
        }
        let is_possible = paths.len() > 1 && !paths.iter().any(|path| path.path.is_of_elements());
        is_possible.then_some(CompositeIndex { paths })
    }

    /// The paths, at least two. The first is ascending.
    pub fn paths(&self) -> &[CompositePath] {
        &self.paths
    }

    /// The key of an item.
    pub fn key(&self, item: &Item<'_>) -> Vec<u8> {
        let mut key = Vec::new();
        for own in &self.paths {
            let value = own.path.value(item, component);
            append(&mut key, &value, own.descending);
            if key.len() >= KEY_BYTES {
                break;
            }
        }
        key.truncate(KEY_BYTES);
        key
    }

    pub(crate) fn only_paths(&self) -> Vec<&IndexPath> {
        self.paths.iter().map(|own| &own.path).collect()
    }

    /// Whether there are items for keys: no two paths begin with the same name.
    pub(crate) fn has_items(&self) -> bool {
        let mut names: Vec<Option<&str>> = self.paths.iter().map(|own| own.path.names().next()).collect();
        names.sort_unstable();
        names.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// An item, as JSON, that has the values of a key at the paths, and nothing else. `None` if the key is not that of equal values only: where one is missing, an
    /// array or an object, or where the key was cut.
    pub fn item_with_key(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.item(key, None)
    }

    /// As [`CompositeIndex::item_with_key`], with the item's id.
    pub fn item_with_key_and_id(&self, key: &[u8], id: &str) -> Option<Vec<u8>> {
        self.item(key, Some(id))
    }

    fn item(&self, mut key: &[u8], id: Option<&str>) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(64 + key.len());
        out.push(b'{');
        if let Some(id) = id {
            out.extend_from_slice(b"\"id\":");
            write_string(id, &mut out);
        }
        for own in &self.paths {
            let mut rest = key.to_vec();
            if own.descending {
                invert(&mut rest);
            }
            let length = sql_scalar_length(&rest)?;
            key = &key[length..];
            // An id is a text, below which no path finds anything.
            if id.is_some() && own.path.names().next() == Some(ID) {
                continue;
            }
            if out.len() > 1 {
                out.push(b',');
            }
            own.path.write_member(&rest[..length], &mut out)?;
        }
        out.push(b'}');
        key.is_empty().then_some(out)
    }

    /// The keys of items that can pass some conditions: equal values of the first paths, and a range of the next one. Sorted, without overlaps. `None` unless
    /// conditions on two paths or more narrow the keys.
    pub fn intervals(&self, conditions: &[IndexCondition]) -> Option<Vec<Interval>> {
        let mut begins = vec![Vec::new()];
        let mut paths = 0;
        let mut intervals = None;
        for own in &self.paths {
            let Some(condition) = on(conditions, &own.path) else {
                break;
            };
            if let Some(longer) = combined(&begins, own, condition) {
                begins = longer;
                paths += 1;
                continue;
            }
            let bytes: usize = condition.intervals.iter().map(Interval::bytes).sum();
            if is_short(&begins, (condition.intervals.len() + 1, bytes)) {
                intervals = Some(begins.iter().flat_map(|begin| ranges(begin, own, condition)).collect());
                paths += 1;
            }
            break;
        }
        let intervals = intervals.unwrap_or_else(|| begins.into_iter().map(Interval::of_prefix).collect());
        (paths > 1).then(|| union(intervals))
    }

    /// What all keys begin with that some conditions admit: the values of the first paths that must equal a constant. With their number.
    fn fixed(&self, conditions: &[IndexCondition]) -> (Vec<u8>, usize) {
        let (mut fixed, mut count) = (Vec::new(), 0);
        for own in &self.paths {
            let Some(value) = on(conditions, &own.path).and_then(only_key) else {
                break;
            };
            if fixed.len() + value.len() > MAX_FIXED_BYTES {
                break;
            }
            append(&mut fixed, value, own.descending);
            count += 1;
        }
        (fixed, count)
    }
}

/// As in the lists of indexes that the service shows: `/a ASC, /b DESC`.
impl std::fmt::Display for CompositeIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, own) in self.paths.iter().enumerate() {
            let text = own.path.to_string();
            let separator = if at > 0 { ", " } else { "" };
            let direction = if own.descending { "DESC" } else { "ASC" };
            write!(f, "{separator}{} {direction}", text.strip_suffix("/?").unwrap_or(&text))?;
        }
        Ok(())
    }
}

/// The key of a value in a composite index.
fn component(value: &Value<'_>) -> Vec<u8> {
    match value.kind() {
        Kind::Array | Kind::Object => KEY_OF_UNDEFINED.to_vec(),
        _ => key::key_of(value).unwrap_or_else(|| KEY_OF_UNDEFINED.to_vec()),
    }
}

fn append(key: &mut Vec<u8>, component: &[u8], descending: bool) {
    let start = key.len();
    key.extend_from_slice(component);
    if descending {
        invert(&mut key[start..]);
    }
}

fn on<'c>(conditions: &'c [IndexCondition], path: &IndexPath) -> Option<&'c IndexCondition> {
    conditions.iter().find(|condition| condition.path == *path)
}

/// The key of the only value that a condition admits.
fn only_key(condition: &IndexCondition) -> Option<&[u8]> {
    match &condition.intervals[..] {
        [interval] if condition.is_equality => own_key(interval),
        _ => None,
    }
}

/// The only key of an interval, if no other value has it.
fn own_key(interval: &Interval) -> Option<&[u8]> {
    let is_one = is_exact(&interval.from) && interval.to == key::after(&interval.from);
    is_one.then_some(&interval.from)
}

/// The beginnings of keys with each of the values that a condition admits behind them; `None` if it admits others than single values, or if there are
/// too many.
fn combined(begins: &[Vec<u8>], own: &CompositePath, condition: &IndexCondition) -> Option<Vec<Vec<u8>>> {
    let values = condition.intervals.iter().map(own_key);
    let values: Vec<&[u8]> = values.collect::<Option<_>>().filter(|_| condition.is_equality)?;
    if !is_short(begins, (values.len(), values.iter().map(|value| value.len()).sum())) {
        return None;
    }
    let mut longer = Vec::with_capacity(begins.len() * values.len());
    for begin in begins {
        for value in &values {
            let mut key = begin.clone();
            append(&mut key, value, own.descending);
            longer.push(key);
        }
    }
    let are_whole = longer.iter().all(|key| key.len() <= MAX_FIXED_BYTES);
    are_whole.then_some(longer)
}

/// Whether the beginnings are few with so many values behind each, which together have so many bytes.
fn is_short(begins: &[Vec<u8>], (values, bytes): (usize, usize)) -> bool {
    let longest = begins.iter().map(Vec::len).max().unwrap_or(0);
    begins.len() * values <= MAX_BEGINNINGS && begins.len() * (bytes + 2 * values * longest) <= MAX_BYTES
}

/// The keys behind a beginning that a condition admits.
fn ranges(begin: &[u8], own: &CompositePath, condition: &IndexCondition) -> Vec<Interval> {
    let of_component = |keys: &Interval| of_component(begin, keys, own.descending);
    let [undefined, values, others] = zones();
    let is_admitted = |zone: &Interval| condition.intervals.iter().any(|keys| keys.overlap(zone).is_some());
    let is_undefined = is_admitted(&undefined) || is_admitted(&others);
    let values = condition.intervals.iter().filter_map(|keys| keys.overlap(&values));
    let values = values.map(|keys| of_component(&keys));
    values.chain(is_undefined.then(|| of_component(&undefined))).collect()
}

/// The keys of undefined, of values with an order, and of arrays and objects.
fn zones() -> [Interval; 3] {
    let zone = |from: u8, to: u8| Interval {
        from: vec![from],
        to: Some(vec![to]),
    };
    [
        zone(sql_rank::UNDEFINED, sql_rank::NULL),
        zone(sql_rank::NULL, sql_rank::ARRAY),
        zone(sql_rank::ARRAY, sql_rank::END),
    ]
}

/// How the rows of a query come in a composite index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositeOrder {
    /// Whether the index is read from its end.
    pub is_backward: bool,
    /// The keys that pass the filter, in the order of their rows.
    pub parts: Vec<OrderedKeys>,
    /// Paths whose conditions the parts regard: those with fixed values, and perhaps the next one.
    pub paths: Vec<IndexPath>,
    /// Number of these that have fixed values.
    pub fixed_paths: usize,
    /// What all keys begin with.
    fixed: Vec<u8>,
    /// Number of first sort keys whose values are part of that.
    fixed_sort_keys: usize,
    /// Whether the components of the further sort keys descend in the index.
    descends: Vec<bool>,
    /// Whether the items of a key come in the order of the rows.
    has_order_of_items: bool,
}

/// The order of a query in an index; `None` if the rows do not come in its order, or if an index on the only sort path does the same.
pub(crate) fn composite_order(
    bound: &Bound,
    index: &CompositeIndex,
    conditions: &[IndexCondition],
) -> Option<CompositeOrder> {
    let sort = bound.select.sort_keys()?;
    let wanted: Vec<IndexPath> = sort
        .iter()
        .map(|key| path_of(bound, &key.value))
        .collect::<Option<_>>()?;
    let (fixed, fixed_paths) = index.fixed(conditions);
    let is_at = |at: &usize| {
        let own = index.paths.get(*at..*at + wanted.len());
        own.is_some_and(|own| own.iter().map(|own| &own.path).eq(&wanted))
    };
    let begin = (0..=fixed_paths).find(is_at)?;
    if begin == 0 && sort.len() < 2 {
        return None;
    }
    let end = begin + sort.len();
    let fixed_sort_keys = (fixed_paths - begin).min(sort.len());
    let free = index.paths.get(fixed_paths..end).unwrap_or_default();
    let mut turns = free
        .iter()
        .zip(&sort[fixed_sort_keys..])
        .map(|(own, key)| own.descending != key.descending);
    let is_backward = turns.next().unwrap_or(sort[0].descending);
    if turns.any(|turns| turns != is_backward) {
        return None;
    }
    let read = index.paths[..fixed_paths.max(end.min(fixed_paths + 1))].iter();
    Some(CompositeOrder {
        is_backward,
        parts: match free.first() {
            Some(own) => parts(
                &fixed,
                (own, on(conditions, &own.path)),
                &sort[fixed_sort_keys..],
                sort.len() > 1,
            ),
            None => vec![OrderedKeys::of(Interval::of_prefix(fixed.clone()))],
        },
        paths: read.map(|own| own.path.clone()).collect(),
        fixed_paths,
        fixed_sort_keys,
        descends: free.iter().map(|own| own.descending).collect(),
        // Rows with equal values come by resource id, in the direction of the first sort key.
        has_order_of_items: fixed_paths.max(end) == index.paths.len() && is_backward == sort[0].descending,
        fixed,
    })
}

/// The keys behind `fixed` in the order of their rows.
fn parts(
    fixed: &[u8],
    (own, condition): (&CompositePath, Option<&IndexCondition>),
    sort: &[SortKey],
    has_more_keys: bool,
) -> Vec<OrderedKeys> {
    let [undefined, values, others] = zones();
    let whole = [undefined.clone(), values.clone(), others.clone()];
    let condition = condition.filter(|condition| condition.intervals.len() <= MAX_PARTS);
    let admitted = condition.map_or(&whole[..], |condition| &condition.intervals);
    let is_admitted = |zone: &Interval| admitted.iter().any(|keys| keys.overlap(zone).is_some());
    let in_index = |keys: &Interval| of_component(fixed, keys, own.descending);
    let values = admitted.iter().filter_map(|keys| keys.overlap(&values));
    let mut values: Vec<OrderedKeys> = values.map(|keys| OrderedKeys::of(in_index(&keys))).collect();
    let mut parts = Vec::new();
    if is_admitted(&undefined) || (has_more_keys && is_admitted(&others)) {
        parts.push(OrderedKeys::of(in_index(&undefined)));
    }
    parts.append(&mut values);
    if !has_more_keys && is_admitted(&others) {
        parts.push(OrderedKeys {
            keys: in_index(&undefined),
            rows_at: Some(in_index(&others)),
        });
    }
    if sort.first().is_some_and(|key| key.descending) {
        parts.reverse();
    }
    parts
}

/// The keys that begin with `fixed` and have one of some values behind it.
fn of_component(fixed: &[u8], values: &Interval, descending: bool) -> Interval {
    let with = |bytes: &[u8]| {
        let mut key = fixed.to_vec();
        append(&mut key, bytes, descending);
        key
    };
    let whole = Interval::of_prefix(fixed.to_vec());
    let (from, to) = match descending {
        false => (Some(with(&values.from)), values.to.as_deref().map(with)),
        // What begins with an end is above it, and inverted still begins with it.
        true => (
            values.to.as_deref().and_then(|to| key::after(&with(to))),
            key::after(&with(&values.from)),
        ),
    };
    let (from, to) = (from.unwrap_or(whole.from), to.or(whole.to));
    Interval {
        // Keys are cut, too.
        to: match to {
            Some(to) if to.len() > KEY_BYTES => key::after(&to[..KEY_BYTES]),
            to => to,
        },
        from: from[..from.len().min(KEY_BYTES)].to_vec(),
    }
}

impl CompositeOrder {
    /// Whether the items of a key come in the order of their rows.
    pub fn has_order_of_items(&self) -> bool {
        self.has_order_of_items
    }

    /// The keys between those of two rows, each included; without a row up to the end. A row is given by the keys of its sort values, each with whether
    /// only equal values have it, and by the number of its item.
    pub(crate) fn between<V: Iterator<Item = (Vec<u8>, bool)>>(
        &self,
        first: Option<(V, Option<u64>)>,
        last: Option<(V, Option<u64>)>,
    ) -> Interval {
        let (low, high) = if self.is_backward { (last, first) } else { (first, last) };
        let place = |row: Option<(V, Option<u64>)>| row.map_or_else(|| self.fixed.clone(), |row| self.place(row));
        Interval {
            from: place(low),
            to: key::after(&place(high)),
        }
    }

    /// What the entry of a row begins with.
    fn place(&self, (values, number): (impl Iterator<Item = (Vec<u8>, bool)>, Option<u64>)) -> Vec<u8> {
        let mut key = self.fixed.clone();
        for ((value, is_own), descends) in values.skip(self.fixed_sort_keys).zip(&self.descends) {
            append(&mut key, &value, *descends);
            if !is_own || key.len() >= KEY_BYTES {
                key.truncate(KEY_BYTES);
                return key;
            }
        }
        let number = number.filter(|_| self.has_order_of_items);
        key.extend(number.iter().flat_map(|number| number.to_be_bytes()));
        key
    }
}

#[cfg(test)]
mod tests;
