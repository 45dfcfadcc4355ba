//! The keys of an index whose rows a page may still want.

use super::{SortValue, Sorter};
use crate::index::{self, CompositeOrder, Interval};

impl Sorter {
    /// The keys, in an index on the first sort key, of rows that may still be wanted: behind those of earlier pages, and not behind the worst row kept if no
    /// more rows are needed.
    pub fn wanted_keys(&self) -> Interval {
        let key = |row: Option<(&[SortValue], _)>| row.and_then(|(values, _)| values.first()).map(SortValue::index_key);
        let (first, last) = (key(self.first_wanted()), key(self.last_wanted()));
        let (low, high) = if self.directions.descends(0) {
            (last, first)
        } else {
            (first, last)
        };
        Interval {
            from: low.unwrap_or_default(),
            to: high.and_then(|high| index::after(&high)),
        }
    }

    /// As [`Sorter::wanted_keys`], in a composite index.
    pub fn wanted_composite_keys(&self, order: &CompositeOrder) -> Interval {
        let is_own = |value: &SortValue| {
            !matches!(
                value,
                SortValue::Cut { .. } | SortValue::Array(_) | SortValue::Object(_)
            )
        };
        let keys = |values: &[SortValue]| {
            let keys = values.iter().map(|value| (value.index_key(), is_own(value)));
            keys.collect::<Vec<_>>().into_iter()
        };
        let row = |row: Option<(&[SortValue], _)>| row.map(|(values, rid)| (keys(values), rid));
        order.between(row(self.first_wanted()), row(self.last_wanted()))
    }

    /// The values, and perhaps the resource id, of the row before which none is wanted.
    fn first_wanted(&self) -> Option<(&[SortValue], Option<u64>)> {
        let boundary = self
            .boundary
            .as_ref()
            .map(|boundary| (&boundary.values[..], Some(boundary.rid)));
        boundary.or_else(|| self.filter.as_ref().map(|filter| filter.position()))
    }

    /// The same of the row behind which none is wanted.
    fn last_wanted(&self) -> Option<(&[SortValue], Option<u64>)> {
        let worst = self.best.worst().filter(|_| self.is_full());
        worst.map(|worst| (&worst.position.values[..], Some(worst.position.rid)))
    }
}
