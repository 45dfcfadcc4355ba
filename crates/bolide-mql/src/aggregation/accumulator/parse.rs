//! The parser of accumulators.

use bson::raw::{RawBsonRef, RawDocument};

use super::{Accumulator, Input, Operation};
use crate::error::{Code, Error, Result};
use crate::expression::{Expression, ParseScope};
use crate::sort::Sort;
use crate::value::number::Number;
use crate::value::{text, types};

impl Accumulator {
    /// Parses the accumulator `name`, with its `$`.
    ///
    /// # Errors
    /// 15952 if there is none of that name; those of the operator's arguments.
    pub(in crate::aggregation) fn parse(
        name: &str,
        argument: RawBsonRef<'_>,
        scope: &mut ParseScope,
    ) -> Result<Accumulator> {
        let operation = match name {
            "$addToSet" => Operation::AddToSet,
            "$avg" => Operation::Average,
            "$first" => Operation::First,
            "$last" => Operation::Last,
            "$max" => Operation::Max,
            "$mergeObjects" => Operation::MergeObjects,
            "$min" => Operation::Min,
            "$push" => Operation::Push,
            "$stdDevPop" => Operation::DeviationOfPopulation,
            "$stdDevSamp" => Operation::DeviationOfSample,
            "$sum" => Operation::Sum,
            "$count" => return count(argument),
            "$firstN" => return several(name, Operation::FirstN, argument, scope),
            "$lastN" => return several(name, Operation::LastN, argument, scope),
            "$maxN" => return several(name, Operation::MaxN, argument, scope),
            "$minN" => return several(name, Operation::MinN, argument, scope),
            "$bottom" => return ordered(name, Operation::Bottom, argument, scope),
            "$bottomN" => return ordered(name, Operation::BottomN, argument, scope),
            "$top" => return ordered(name, Operation::Top, argument, scope),
            "$topN" => return ordered(name, Operation::TopN, argument, scope),
            "$median" => return percentile(name, Operation::Median, argument, scope),
            "$percentile" => return percentile(name, Operation::Percentile, argument, scope),
            "$accumulator" => {
                let text = "$accumulator is not supported: there is no server-side JavaScript";
                return Err(Error::new(Code::NOT_IMPLEMENTED, text));
            }
            _ => return Err(Error::new(15952, format!("unknown group operator '{name}'"))),
        };
        if matches!(argument, RawBsonRef::Array(_)) {
            return Err(Error::new(40237, format!("The {name} accumulator is a unary operator")));
        }
        Ok(Accumulator {
            operation,
            input: Input::Value(Expression::parse(argument, scope)?),
            n: None,
            fractions: Vec::new(),
        })
    }
}

fn count(argument: RawBsonRef<'_>) -> Result<Accumulator> {
    match argument {
        RawBsonRef::Document(nothing) if nothing.is_empty() => Ok(Accumulator::count()),
        _ => Err(Error::new(
            Code::TYPE_MISMATCH,
            "$count takes no arguments, i.e. $count:{}",
        )),
    }
}

/// The error codes of one form of arguments.
struct Codes {
    not_object: i32,
    unknown: i32,
    missing: fn(&str) -> i32,
}

/// Reads named arguments, all required.
fn arguments<'a, const N: usize>(
    operator: &str,
    argument: RawBsonRef<'a>,
    names: [&str; N],
    codes: &Codes,
) -> Result<[RawBsonRef<'a>; N]> {
    let RawBsonRef::Document(object) = argument else {
        let shown = text::render(argument);
        let text = format!("specification must be an object; found {operator}: {shown}");
        return Err(Error::new(codes.not_object, text));
    };
    check_names(operator, object, &names, codes.unknown)?;
    let mut values = [RawBsonRef::Null; N];
    for (value, name) in values.iter_mut().zip(names) {
        *value = object
            .get(name)?
            .ok_or_else(|| Error::new((codes.missing)(name), format!("Missing value for '{name}'")))?;
    }
    Ok(values)
}

fn check_names(operator: &str, object: &RawDocument, names: &[&str], code: i32) -> Result<()> {
    for element in object {
        let (name, _) = element?;
        if !names.contains(&name.as_str()) {
            let text = format!("Unknown argument for '{operator}' operator: {name}");
            return Err(Error::new(code, text));
        }
    }
    Ok(())
}

fn several(name: &str, operation: Operation, argument: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Accumulator> {
    let codes = Codes {
        not_object: 5787900,
        unknown: 5787901,
        missing: |name| if name == "n" { 5787906 } else { 5787907 },
    };
    let [n, input] = arguments(name, argument, ["n", "input"], &codes)?;
    Ok(Accumulator {
        operation,
        input: Input::Value(Expression::parse(input, scope)?),
        n: Some(Expression::parse(n, scope)?),
        fractions: Vec::new(),
    })
}

fn ordered(name: &str, operation: Operation, argument: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Accumulator> {
    let codes = Codes {
        not_object: 5788001,
        unknown: 5788002,
        missing: |name| match name {
            "n" => 5788003,
            "output" => 5788004,
            _ => 5788005,
        },
    };
    let is_single = matches!(operation, Operation::Top | Operation::Bottom);
    let (n, sort_by, output) = if is_single {
        let [sort_by, output] = arguments(name, argument, ["sortBy", "output"], &codes)?;
        (None, sort_by, output)
    } else {
        let [n, sort_by, output] = arguments(name, argument, ["n", "sortBy", "output"], &codes)?;
        (Some(n), sort_by, output)
    };
    let RawBsonRef::Document(sort_by) = sort_by else {
        let found = types::name(sort_by);
        let text = format!("expected 'sortBy' to already be an object in the arguments to {name}, but found {found}");
        return Err(Error::new(5788604, text));
    };
    let input = Input::Ordered {
        sort: Sort::parse(sort_by)?,
        output: Expression::parse(output, scope)?,
    };
    Ok(Accumulator {
        operation,
        input,
        n: n.map(|n| Expression::parse(n, scope)).transpose()?,
        fractions: Vec::new(),
    })
}

fn percentile(
    name: &str,
    operation: Operation,
    argument: RawBsonRef<'_>,
    scope: &mut ParseScope,
) -> Result<Accumulator> {
    let is_median = operation == Operation::Median;
    let codes = Codes {
        not_object: if is_median { 7436100 } else { 7429703 },
        unknown: 40415,
        missing: |_| 40414,
    };
    let (input, method, fractions) = if is_median {
        let [input, method] = arguments(name, argument, ["input", "method"], &codes)?;
        (input, method, Vec::new())
    } else {
        let [input, method, p] = arguments(name, argument, ["input", "method", "p"], &codes)?;
        (input, method, parse_fractions(p)?)
    };
    if method.as_str() != Some("approximate") {
        let text = "Currently only 'approximate' can be used as percentile 'method'.";
        return Err(Error::bad_value(text));
    }
    Ok(Accumulator {
        operation,
        input: Input::Value(Expression::parse(input, scope)?),
        n: None,
        fractions,
    })
}

/// Parses the `p` of `$percentile`: numbers from 0 to 1.
fn parse_fractions(p: RawBsonRef<'_>) -> Result<Vec<f64>> {
    let wrong = |code| {
        let shown = text::render(p);
        let text = format!(
            "The $percentile 'p' field must be an array of numbers from the [0.0, 1.0] range, but found: {shown}"
        );
        Error::new(code, text)
    };
    let RawBsonRef::Array(array) = p else {
        return Err(wrong(7750301));
    };
    let mut fractions = Vec::new();
    for element in array {
        let fraction = Number::of(element?).ok_or_else(|| wrong(7750302))?.to_f64();
        if !(0.0..=1.0).contains(&fraction) {
            return Err(wrong(7750303));
        }
        fractions.push(fraction);
    }
    match fractions.is_empty() {
        true => Err(wrong(7750301)),
        false => Ok(fractions),
    }
}
