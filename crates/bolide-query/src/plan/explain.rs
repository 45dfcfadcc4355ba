//! A plan as text.

use std::fmt::Write;

use super::KeyRanges;
use crate::bind::Bound;
use crate::program::{Ordering, Source};

/// Describes what an execution does, one step per line.
pub fn explain(bound: &Bound, ranges: &KeyRanges) -> String {
    let select = &bound.select;
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").expect("writing to a String does not fail");
    line(format!("keys: {ranges}"));
    for input in &select.inputs {
        line(match &input.source {
            Source::Item => "scan: items".to_owned(),
            Source::Value(_) => "join: value".to_owned(),
            Source::Each(_) => "join: elements of an array".to_owned(),
            Source::Subquery(_) => "join: rows of a subquery".to_owned(),
            Source::EachOfSubquery(_) => "join: elements of arrays from a subquery".to_owned(),
        });
    }
    if select.filter.is_some() {
        line("filter".to_owned());
    }
    if let Some(grouping) = &select.grouping {
        let names: Vec<&str> = grouping
            .aggregates
            .iter()
            .map(|aggregate| aggregate.kind.name())
            .collect();
        line(format!(
            "group: keys={} aggregates=[{}]",
            grouping.keys.len(),
            names.join(", ")
        ));
    }
    match &select.ordering {
        Ordering::None => {}
        Ordering::Keys(keys) => line(format!("sort: keys={}", keys.len())),
        Ordering::Rank(ranking) => line(format!("rank: components={}", ranking.components.len())),
    }
    if select.distinct {
        line("distinct".to_owned());
    }
    if select.skip > 0 {
        line(format!("skip: {}", select.skip));
    }
    if let Some(take) = select.take {
        line(format!("take: {take}"));
    }
    out
}
