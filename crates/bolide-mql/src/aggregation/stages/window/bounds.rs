//! The bounds of a window: by documents, or by a range of the field of `sortBy`.

use std::cmp::Ordering;
use std::ops::Range;

use bson::raw::{RawArray, RawBsonRef, RawDocument};

use super::dates::{DateUnit, add_to_date};
use super::partition::{Coordinate, Partition};
use crate::error::{Code, Error, Result};
use crate::sort::Sort;
use crate::value::number::Number;
use crate::value::{text, types};

/// The bounds, both inclusive.
#[derive(Debug, Clone, Copy)]
pub(in crate::aggregation::stages) enum Bounds {
    /// Documents before and after, by their number.
    Documents { low: Bound<i64>, high: Bound<i64> },
    /// Documents whose field is in a range around that of the current one.
    Range {
        low: Bound<Number>,
        high: Bound<Number>,
        unit: Option<DateUnit>,
    },
}

/// One bound.
#[derive(Debug, Clone, Copy)]
pub(in crate::aggregation::stages) enum Bound<T> {
    Unbounded,
    Current,
    /// The distance from the current document; negative before it.
    Offset(T),
}

/// The whole partition.
pub(super) const UNBOUNDED: Bounds = Bounds::Documents {
    low: Bound::Unbounded,
    high: Bound::Unbounded,
};

fn failed(text: impl Into<String>) -> Error {
    Error::new(Code::FAILED_TO_PARSE, text)
}

impl Bounds {
    /// Parses `window`.
    ///
    /// # Errors
    /// `FailedToParse` for other shapes than `documents: [low, high]` and `range: [low, high], unit`; 5339901 and 5339902 without the
    /// order that it needs.
    pub(super) fn parse(window: &RawDocument, sort: Option<&Sort>) -> Result<Bounds> {
        let (mut documents, mut range, mut unit) = (None, None, None);
        for element in window {
            let (name, value) = element?;
            match name.as_str() {
                "documents" => documents = Some(value),
                "range" => range = Some(value),
                "unit" => unit = Some(value),
                other => {
                    return Err(failed(format!(
                        "'window' field that specifies an unknown option: {other}"
                    )));
                }
            }
        }
        match (documents, range) {
            (Some(_), Some(_)) => Err(failed(
                "Window bounds can specify either 'documents' or 'unit', not both.",
            )),
            (None, None) if unit.is_some() => {
                Err(failed("Window bounds can only specify 'unit' with range-based bounds."))
            }
            (Some(_), None) if unit.is_some() => Err(failed(
                "Window bounds can specify either 'documents' or 'unit', not both.",
            )),
            (None, None) => Ok(UNBOUNDED),
            (Some(documents), None) => parse_documents(documents, sort),
            (None, Some(range)) => parse_range(range, unit, sort),
        }
    }

    /// Returns true if the window is the whole partition for every document.
    fn is_unbounded(&self) -> bool {
        matches!(
            self,
            Bounds::Documents {
                low: Bound::Unbounded,
                high: Bound::Unbounded
            }
        )
    }

    /// Returns the documents in the window of each document. Neither end goes back from one document to the next.
    pub(super) fn spans(&self, partition: &Partition) -> Result<Vec<Range<usize>>> {
        let count = partition.len();
        match self {
            Bounds::Documents { low, high } => {
                let span = |index| {
                    let start = document(*low, index, 0, count);
                    let end = document(*high, index, 1, count);
                    start..end.max(start)
                };
                Ok((0..count).map(span).collect())
            }
            Bounds::Range { low, high, unit } => range_spans(*low, *high, *unit, partition),
        }
    }
}

fn parse_pair<'a>(name: &str, value: RawBsonRef<'a>) -> Result<(RawBsonRef<'a>, RawBsonRef<'a>)> {
    let wrong = || {
        failed(format!(
            "Window bounds must be a 2-element array: {name}: {}",
            text::render(value)
        ))
    };
    let RawBsonRef::Array(array) = value else {
        return Err(wrong());
    };
    let array: &RawArray = array;
    let elements = array.into_iter().take(3).collect::<bson::error::Result<Vec<_>>>()?;
    match elements.as_slice() {
        [low, high] => Ok((*low, *high)),
        _ => Err(wrong()),
    }
}

fn parse_bound<T>(
    value: RawBsonRef<'_>,
    offset: impl FnOnce(RawBsonRef<'_>) -> Option<T>,
    expected: &str,
) -> Result<Bound<T>> {
    match value {
        RawBsonRef::String("unbounded") => Ok(Bound::Unbounded),
        RawBsonRef::String("current") => Ok(Bound::Current),
        RawBsonRef::String(_) => Err(failed("Window bounds must be 'unbounded', 'current', or a number.")),
        other => offset(other).map(Bound::Offset).ok_or_else(|| {
            let shown = text::render(other);
            failed(format!("{expected}, but found: {shown}"))
        }),
    }
}

fn parse_documents(value: RawBsonRef<'_>, sort: Option<&Sort>) -> Result<Bounds> {
    let (low, high) = parse_pair("documents", value)?;
    let expected = "Numeric document-based bounds must be an integer";
    let offset = |value: RawBsonRef<'_>| Number::of(value).and_then(Number::whole);
    let low = parse_bound(low, offset, expected)?;
    let high = parse_bound(high, offset, expected)?;
    if let (Some(first), Some(last)) = (distance(low), distance(high))
        && first > last
    {
        return Err(Error::new(
            5339900,
            "Lower bound must not exceed upper bound: documents",
        ));
    }
    let bounds = Bounds::Documents { low, high };
    if sort.is_none() && !bounds.is_unbounded() {
        return Err(Error::new(5339901, "Document-based bounds require a sortBy"));
    }
    Ok(bounds)
}

fn distance(bound: Bound<i64>) -> Option<i64> {
    match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(0),
        Bound::Offset(offset) => Some(offset),
    }
}

fn parse_range(value: RawBsonRef<'_>, unit: Option<RawBsonRef<'_>>, sort: Option<&Sort>) -> Result<Bounds> {
    let (low, high) = parse_pair("range", value)?;
    let unit = match unit {
        None => None,
        Some(RawBsonRef::String(name)) => Some(DateUnit::parse(name)?),
        Some(other) => {
            let found = types::name(other);
            return Err(failed(format!("'unit' must be a string, but found {found}")));
        }
    };
    let expected = match unit {
        Some(_) => "With 'unit', range-based bounds must be an integer",
        None => "Range-based bounds expression must be a number",
    };
    let offset = |value: RawBsonRef<'_>| {
        let number = Number::of(value).filter(|number| !number.is_nan())?;
        match unit {
            Some(_) => number.whole().map(Number::Int64),
            None => Some(number),
        }
    };
    let low = parse_bound(low, offset, expected)?;
    let high = parse_bound(high, offset, expected)?;
    let is_ascending = sort.is_some_and(|sort| match sort.keys() {
        [key] => !key.is_descending,
        _ => false,
    });
    if !is_ascending {
        return Err(Error::new(
            5339902,
            "Range-based bounds require sortBy a single ascending field",
        ));
    }
    let zero = Number::Int32(0);
    let at = |bound| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(zero),
        Bound::Offset(offset) => Some(offset),
    };
    if let (Some(first), Some(last)) = (at(low), at(high))
        && first.compare(last) == Ordering::Greater
    {
        return Err(Error::new(5339900, "Lower bound must not exceed upper bound: range"));
    }
    Ok(Bounds::Range { low, high, unit })
}

/// Returns the index that a bound by documents means: of the first document in the window, or with `after` 1 of the first behind it.
fn document(bound: Bound<i64>, index: usize, after: usize, count: usize) -> usize {
    let offset = match bound {
        Bound::Unbounded => return after * count,
        Bound::Current => 0,
        Bound::Offset(offset) => offset,
    };
    let distance = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
    let end = if offset < 0 {
        // Before the first document there is none, so the end is before it too.
        match index.checked_sub(distance) {
            Some(index) => index + after,
            None => 0,
        }
    } else {
        index.saturating_add(distance).saturating_add(after)
    };
    end.min(count)
}

fn range_spans(
    low: Bound<Number>,
    high: Bound<Number>,
    unit: Option<DateUnit>,
    partition: &Partition,
) -> Result<Vec<Range<usize>>> {
    let coordinates = partition.coordinates(if unit.is_some() { 5429513 } else { 5429414 }, "Invalid range")?;
    let mut spans = Vec::with_capacity(coordinates.len());
    for coordinate in &coordinates {
        partition.run.context.interrupt.check(1)?;
        check_unit(*coordinate, unit)?;
        let start = match low {
            Bound::Unbounded => 0,
            bound => {
                let least = shifted(*coordinate, bound, unit)?;
                coordinates.partition_point(|other| compare(*other, least) == Ordering::Less)
            }
        };
        let end = match high {
            Bound::Unbounded => coordinates.len(),
            bound => {
                let most = shifted(*coordinate, bound, unit)?;
                coordinates.partition_point(|other| compare(*other, most) != Ordering::Greater)
            }
        };
        spans.push(start..end.max(start));
    }
    Ok(spans)
}

fn check_unit(coordinate: Coordinate, unit: Option<DateUnit>) -> Result<()> {
    match (coordinate, unit) {
        (Coordinate::Number(_), Some(_)) => {
            let text = "Invalid range: Expected the sortBy field to be a date, because of 'unit', but it was a number";
            Err(Error::new(5429513, text))
        }
        (Coordinate::Date(_), None) => {
            let text = "Invalid range: For windows that involve date or time ranges, a unit must be provided.";
            Err(Error::new(5429413, text))
        }
        _ => Ok(()),
    }
}

fn shifted(coordinate: Coordinate, bound: Bound<Number>, unit: Option<DateUnit>) -> Result<Coordinate> {
    let Bound::Offset(offset) = bound else {
        return Ok(coordinate);
    };
    match (coordinate, unit) {
        (Coordinate::Number(number), _) => Ok(Coordinate::Number(number.add(offset))),
        (Coordinate::Date(date), unit) => {
            let amount = offset.whole().unwrap_or(0);
            Ok(Coordinate::Date(add_to_date(
                date,
                unit.unwrap_or(DateUnit::Millisecond),
                amount,
            )?))
        }
    }
}

/// Compares coordinates; numbers come before dates, as everywhere.
fn compare(a: Coordinate, b: Coordinate) -> Ordering {
    match (a, b) {
        (Coordinate::Number(a), Coordinate::Number(b)) => a.compare(b),
        (Coordinate::Date(a), Coordinate::Date(b)) => a.cmp(&b),
        (Coordinate::Number(_), Coordinate::Date(_)) => Ordering::Less,
        (Coordinate::Date(_), Coordinate::Number(_)) => Ordering::Greater,
    }
}
