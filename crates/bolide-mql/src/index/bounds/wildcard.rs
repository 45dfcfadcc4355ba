//! The parts of wildcard indexes: the keys of one path, whose values are scalar.

use bson::raw::{RawBson, RawBsonRef};

use super::super::definition::IndexDefinition;
use super::super::pattern::{Field, Order};
use super::super::stored::{MULTIKEY, PLAIN};
use super::super::wildcard::has_values;
use super::intervals::{Intervals, Strings};
use super::{Composed, IndexBounds, KeyRange, MAX_RANGES, found, joined, range, width};
use crate::filter::{Condition, Conjunction, Test};
use crate::value;

/// The most paths that are compared.
const MAX_PATHS: usize = 16;

/// Returns the bounds of each path that has conditions.
pub fn bounds(definition: &IndexDefinition, query: &Conjunction<'_>, strings: Strings<'_>) -> Vec<IndexBounds> {
    let scalars = of_scalars(&query.conditions);
    let mut paths: Vec<String> = Vec::new();
    scalar_paths(&scalars.conditions, "", &mut paths);
    paths.sort_unstable();
    paths.dedup();
    paths.retain(|path| has_values(&definition.key, definition.wildcard.as_ref(), path));
    paths.truncate(MAX_PATHS);
    let of_path = |path: &String| {
        let found = found(vec![(0, path)], &scalars, strings);
        let plain = found
            .iter()
            .map(|found| found.intervals.clone())
            .reduce(|all, next| all.and(&next))?;
        let multikey = found
            .iter()
            .min_by_key(|found| width(&found.intervals))?
            .intervals
            .clone();
        Some(joined(
            of_wildcard(definition, path, &plain, PLAIN)?,
            of_wildcard(definition, path, &multikey, MULTIKEY)?,
        ))
    };
    paths.iter().filter_map(of_path).collect()
}

fn of_wildcard(definition: &IndexDefinition, path: &str, intervals: &Intervals, marker: u8) -> Option<Composed> {
    let field = Field {
        order: Order::Ascending,
        ..definition.key.fields().first()?.clone()
    };
    if intervals.0.len() > MAX_RANGES {
        return None;
    }
    let mut begin = vec![marker];
    value::key::encode(RawBsonRef::String(path), None, &mut begin);
    let shown = intervals.0.iter().map(|each| each.shown(false)).collect();
    let mut ranges: Vec<KeyRange> = intervals.0.iter().map(|each| range(&begin, &field, each)).collect();
    ranges.sort_unstable();
    ranges.dedup();
    Some(Composed {
        ranges,
        shown: vec![
            ("$_path".to_owned(), vec![format!("[\"{path}\", \"{path}\"]")]),
            (path.to_owned(), shown),
        ],
    })
}

/// Collects the paths that have conditions.
fn scalar_paths(conditions: &[Condition<'_>], before: &str, paths: &mut Vec<String>) {
    for condition in conditions {
        match condition {
            Condition::Field { path, .. } => paths.push(format!("{before}{path}")),
            Condition::Elements { path, conditions } => {
                scalar_paths(conditions, &format!("{before}{path}."), paths);
            }
        }
    }
}

/// The conditions that only scalar values fulfil: of others, a wildcard index has the parts.
fn of_scalars<'f>(conditions: &[Condition<'f>]) -> Conjunction<'f> {
    fn keep<'f>(condition: &Condition<'f>) -> Option<Condition<'f>> {
        match condition {
            Condition::Field { test, .. } => is_of_scalars(test).then(|| condition.clone()),
            Condition::Elements { path, conditions } => Some(Condition::Elements {
                path,
                conditions: conditions.iter().filter_map(keep).collect(),
            }),
        }
    }
    Conjunction {
        conditions: conditions.iter().filter_map(keep).collect(),
        ..Conjunction::default()
    }
}

fn is_of_scalars(test: &Test<'_>) -> bool {
    let is_scalar = |value: &RawBson| {
        !matches!(
            value,
            RawBson::Null
                | RawBson::Undefined
                | RawBson::MinKey
                | RawBson::MaxKey
                | RawBson::Document(_)
                | RawBson::Array(_)
        )
    };
    match test {
        Test::Comparison(_, value) => is_scalar(value),
        Test::Membership(values, _) => values.iter().all(is_scalar),
        Test::Pattern(..) => true,
        Test::Element(tests) => tests.iter().any(is_of_scalars) && tests.iter().all(is_of_scalars),
        Test::Exists => false,
    }
}
