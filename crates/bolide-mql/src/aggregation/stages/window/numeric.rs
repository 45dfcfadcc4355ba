//! Functions of numbers along the axis of `sortBy`: averages, slopes, areas, covariances.

use bson::raw::RawBson;

use super::bounds::Bounds;
use super::dates::DateUnit;
use super::function::Values;
use super::partition::{Coordinate, Partition};
use crate::context::memory::StageMemory;
use crate::error::{Code, Error, Result};
use crate::expression::Expression;
use crate::value::number::Number;
use crate::value::types;

/// `$expMovingAvg`: what is no number leaves the average as it was.
pub(super) fn moving_average(
    input: &Expression,
    alpha: &RawBson,
    partition: &Partition,
    memory: &mut StageMemory,
) -> Result<Values> {
    let alpha = Number::of(alpha.as_raw_bson_ref()).unwrap_or(Number::Double(1.0));
    let rest = Number::Int32(1).sub(alpha);
    let mut average: Option<Number> = None;
    let mut values = Values::with_capacity(partition.len());
    for value in partition.evaluate(input, memory)? {
        let number = value.and_then(|value| Number::of(value.as_raw_bson_ref()));
        if let Some(number) = number {
            let next = match average {
                Some(average) => number.mul(alpha).add(average.mul(rest)),
                None => number,
            };
            average = Some(match next {
                Number::Decimal(_) => next,
                other => Number::Double(other.to_f64()),
            });
        }
        values.push(Some(average.map_or(RawBson::Null, RawBson::from)));
    }
    Ok(values)
}

/// A function along the axis, and the codes of its errors.
struct Along {
    name: &'static str,
    unit_without_date: i32,
    date_without_unit: i32,
    no_number: i32,
}

const DERIVATIVE: Along = Along {
    name: "$derivative",
    unit_without_date: 5624900,
    date_without_unit: 5624901,
    no_number: 5624902,
};

const INTEGRAL: Along = Along {
    name: "$integral",
    unit_without_date: 5423901,
    date_without_unit: 5423902,
    no_number: 5423902,
};

/// The code of an input that is null or missing.
const NULL_INPUT: i32 = 5624903;

/// The numbers of the input, and where they are on the axis.
struct Points {
    x: Vec<Number>,
    y: Vec<Option<Number>>,
    /// Milliseconds of the unit.
    scale: Option<Number>,
    name: &'static str,
}

impl Points {
    fn new(
        function: &Along,
        input: &Expression,
        unit: Option<DateUnit>,
        partition: &Partition,
        memory: &mut StageMemory,
    ) -> Result<Points> {
        let name = function.name;
        let coordinate = |coordinate| match (coordinate, unit) {
            (Coordinate::Number(number), None) => Ok(number),
            (Coordinate::Date(date), Some(_)) => Ok(Number::Int64(date)),
            (Coordinate::Date(_), None) => {
                let text = format!("{name} where the sortBy is a Date requires an 'unit'");
                Err(Error::new(function.date_without_unit, text))
            }
            (Coordinate::Number(_), Some(_)) => {
                let text = format!("{name} with 'unit' expects the sortBy field to be a Date");
                Err(Error::new(function.unit_without_date, text))
            }
        };
        let neither = match unit {
            Some(_) => function.unit_without_date,
            None => function.no_number,
        };
        let coordinates = partition.coordinates(neither, name)?;
        let values = partition.evaluate(input, memory)?;
        Ok(Points {
            x: coordinates.into_iter().map(coordinate).collect::<Result<_>>()?,
            y: values
                .iter()
                .map(|value| number(name, value.as_ref()))
                .collect::<Result<_>>()?,
            scale: unit.and_then(DateUnit::milliseconds).map(Number::Int64),
            name,
        })
    }

    /// Returns a point.
    ///
    /// # Errors
    /// [`NULL_INPUT`]
    fn at(&self, index: usize) -> Result<(Number, Number)> {
        let y = self.y.get(index).copied().flatten();
        self.x.get(index).copied().zip(y).ok_or_else(|| {
            let text = format!("{} input must not be null or missing", self.name);
            Error::new(NULL_INPUT, text)
        })
    }

    /// Returns the distance between two points on the axis, in units.
    fn distance(&self, from: Number, to: Number) -> Number {
        let distance = to.sub(from);
        match self.scale {
            Some(scale) => distance.div(scale).unwrap_or(distance),
            None => distance,
        }
    }
}

/// Returns a number; `None` for null and missing.
fn number(name: &str, value: Option<&RawBson>) -> Result<Option<Number>> {
    let Some(value) = value.filter(|value| !matches!(value, RawBson::Null | RawBson::Undefined)) else {
        return Ok(None);
    };
    let value = value.as_raw_bson_ref();
    match Number::of(value) {
        Some(number) => Ok(Some(number)),
        None => {
            let found = types::name(value);
            Err(Error::new(
                Code::TYPE_MISMATCH,
                format!("The input value of {name} window function must be a number, but found {found}"),
            ))
        }
    }
}

/// `$derivative`: the slope between the first and the last document of the window.
pub(super) fn derivative(
    input: &Expression,
    unit: Option<DateUnit>,
    bounds: &Bounds,
    partition: &Partition,
    memory: &mut StageMemory,
) -> Result<Values> {
    let points = Points::new(&DERIVATIVE, input, unit, partition, memory)?;
    let slope = |span: std::ops::Range<usize>| -> Result<Option<Number>> {
        let last = span.end.saturating_sub(1);
        if last <= span.start {
            return Ok(None);
        }
        let ((x1, y1), (x2, y2)) = (points.at(span.start)?, points.at(last)?);
        let distance = points.distance(x1, x2);
        Ok(if distance.is_zero() {
            None
        } else {
            y2.sub(y1).div(distance)
        })
    };
    let mut values = Values::with_capacity(partition.len());
    for span in bounds.spans(partition)? {
        values.push(Some(slope(span)?.map_or(RawBson::Null, RawBson::from)));
    }
    Ok(values)
}

/// `$integral`: the area below the points of the window, by the trapezoidal rule.
pub(super) fn integral(
    input: &Expression,
    unit: Option<DateUnit>,
    bounds: &Bounds,
    partition: &Partition,
    memory: &mut StageMemory,
) -> Result<Values> {
    let points = Points::new(&INTEGRAL, input, unit, partition, memory)?;
    let mut values = Values::with_capacity(partition.len());
    for span in bounds.spans(partition)? {
        if span.is_empty() {
            values.push(Some(RawBson::Null));
            continue;
        }
        let mut area = Number::Int32(0);
        for index in span.start + 1..span.end {
            partition.run.context.interrupt.check(1)?;
            let ((x1, y1), (x2, y2)) = (points.at(index - 1)?, points.at(index)?);
            let twice = y1.add(y2).mul(points.distance(x1, x2));
            area = area.add(twice.div(Number::Int32(2)).unwrap_or(Number::Int32(0)));
        }
        values.push(Some(area.into()));
    }
    Ok(values)
}

/// `$covariancePop` and `$covarianceSamp`; pairs that are not both numbers do not count.
pub(super) fn covariance(
    (x, y): (&Expression, &Expression),
    is_sample: bool,
    bounds: &Bounds,
    partition: &Partition,
    memory: &mut StageMemory,
) -> Result<Values> {
    let number = |value: Option<RawBson>| value.and_then(|value| Number::of(value.as_raw_bson_ref()));
    let xs = partition.evaluate(x, memory)?;
    let ys = partition.evaluate(y, memory)?;
    let pairs: Vec<Option<(f64, f64)>> = xs
        .into_iter()
        .zip(ys)
        .map(|(x, y)| Some((number(x)?.to_f64(), number(y)?.to_f64())))
        .collect();
    let mut values = Values::with_capacity(pairs.len());
    for span in bounds.spans(partition)? {
        let window = pairs.get(span).unwrap_or_default();
        partition.run.context.interrupt.check(window.len() as u64)?;
        let covariance = covariance_of(window.iter().flatten(), is_sample);
        values.push(Some(covariance.map_or(RawBson::Null, RawBson::Double)));
    }
    Ok(values)
}

fn covariance_of<'a>(pairs: impl Iterator<Item = &'a (f64, f64)>, is_sample: bool) -> Option<f64> {
    let (mut count, mut mean_x, mut mean_y, mut products) = (0.0, 0.0, 0.0, 0.0);
    for (x, y) in pairs {
        count += 1.0;
        let distance = x - mean_x;
        mean_x += distance / count;
        mean_y += (y - mean_y) / count;
        products += distance * (y - mean_y);
    }
    let divisor = if is_sample { count - 1.0 } else { count };
    (divisor > 0.0).then(|| products / divisor)
}
