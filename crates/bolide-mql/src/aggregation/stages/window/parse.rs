//! The parser of `$setWindowFields`.

use std::collections::HashSet;

use bolide_model::UnixMillis;
use bson::raw::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use super::Window;
use super::bounds::{Bounds, UNBOUNDED};
use super::dates::DateUnit;
use super::function::{Function, Rank};
use crate::aggregation::accumulator::Accumulator;
use crate::aggregation::options::Options;
use crate::aggregation::parser::{Parsed, Parser};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::{Expression, ParseScope, Scope};
use crate::path::field::FieldPath;
use crate::sort::Sort;
use crate::value::number::Number;
use crate::value::text;

const STAGE: &str = "$setWindowFields";

fn failed(text: impl Into<String>) -> Error {
    Error::new(Code::FAILED_TO_PARSE, text)
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let wrong = |found: &'static str| {
        failed(format!(
            "the {STAGE} stage specification must be an object, found {found}"
        ))
    };
    let options = Options::parse(STAGE, spec, &["partitionBy", "sortBy", "output"], wrong)?;
    let sort_by = options
        .document("sortBy")?
        .map(Sort::parse)
        .transpose()?
        .filter(|sort| !sort.is_empty());
    let output = options.required("output")?;
    let RawBsonRef::Document(output) = output else {
        return Err(options.wrong_type("output", output, "object"));
    };
    let mut functions: Vec<(FieldPath, Function)> = Vec::new();
    let mut paths = OutputPaths::default();
    for field in output {
        let (name, value) = field?;
        let path = FieldPath::parse(name.as_str())?;
        paths.add(&path)?;
        let RawBsonRef::Document(function) = value else {
            let text = format!("The field '{name}' must be a window function specification object");
            return Err(failed(text));
        };
        functions.push((path, Function::parse(function, sort_by.as_ref(), &mut parser.scope)?));
    }
    let partition_by = options.get("partitionBy")?;
    Ok(Parsed::stage(Window {
        partition_by: partition_by
            .map(|value| Expression::parse(value, &mut parser.scope))
            .transpose()?,
        sort_by,
        output: functions,
    }))
}

/// The paths of the output, to find conflicts.
#[derive(Default)]
struct OutputPaths {
    whole: HashSet<String>,
    /// What stands before a dot of a path.
    beginnings: HashSet<String>,
}

impl OutputPaths {
    /// Adds a path.
    ///
    /// # Errors
    /// 6307900 if it is, contains, or begins another.
    fn add(&mut self, path: &FieldPath) -> Result<()> {
        let text = path.text();
        let beginnings = text.match_indices('.').filter_map(|(end, _)| text.get(..end));
        let is_inside = beginnings.clone().any(|beginning| self.whole.contains(beginning));
        self.beginnings.extend(beginnings.map(str::to_owned));
        if is_inside || self.beginnings.contains(&text) || !self.whole.insert(text.clone()) {
            let text = format!(
                "$setWindowFields 'output' specification contains two conflicting paths, of which one is '{text}'"
            );
            return Err(Error::new(6307900, text));
        }
        Ok(())
    }
}

impl Window {
    /// Returns a stage.
    pub(in crate::aggregation::stages) fn new(
        partition_by: Option<Expression>,
        sort_by: Option<Sort>,
        output: Vec<(FieldPath, Function)>,
    ) -> Window {
        Window {
            partition_by,
            sort_by,
            output,
        }
    }
}

impl Function {
    /// Parses `{$function: arguments, window: {…}}`.
    ///
    /// # Errors
    /// `FailedToParse` for other shapes and unknown functions; those of the functions.
    pub(super) fn parse(spec: &RawDocument, sort: Option<&Sort>, scope: &mut ParseScope) -> Result<Function> {
        let (mut function, mut window) = (None, None);
        for element in spec {
            let (name, value) = element?;
            match (name.as_str(), value) {
                ("window", RawBsonRef::Document(bounds)) => window = Some(bounds),
                ("window", _) => return Err(failed("'window' field must be an object")),
                (name, value) if name.starts_with('$') => {
                    if function.replace((name, value)).is_some() {
                        return Err(failed("Expected a single window function in the specification object"));
                    }
                }
                (name, _) => {
                    let text = format!("Window function found an unknown argument: {name}");
                    return Err(failed(text));
                }
            }
        }
        let Some((name, argument)) = function else {
            return Err(failed("Expected a $-prefixed window function"));
        };
        let parser = FunctionParser {
            name,
            argument,
            window,
            sort,
        };
        parser.parse(scope)
    }
}

/// The parts of one function.
struct FunctionParser<'a> {
    name: &'a str,
    argument: RawBsonRef<'a>,
    window: Option<&'a RawDocument>,
    sort: Option<&'a Sort>,
}

/// The accumulators that are functions of windows.
const ACCUMULATORS: &[&str] = &[
    "$addToSet",
    "$avg",
    "$bottom",
    "$bottomN",
    "$count",
    "$first",
    "$firstN",
    "$last",
    "$lastN",
    "$max",
    "$maxN",
    "$median",
    "$min",
    "$minN",
    "$percentile",
    "$push",
    "$stdDevPop",
    "$stdDevSamp",
    "$sum",
    "$top",
    "$topN",
];

impl FunctionParser<'_> {
    fn parse(&self, scope: &mut ParseScope) -> Result<Function> {
        match self.name {
            "$rank" => self.rank(Rank::WithGaps),
            "$denseRank" => self.rank(Rank::Dense),
            "$documentNumber" => self.rank(Rank::Document),
            "$shift" => self.shift(scope),
            "$expMovingAvg" => self.moving_average(scope),
            "$derivative" | "$integral" => self.along_axis(scope),
            "$covariancePop" => self.covariance(false, scope),
            "$covarianceSamp" => self.covariance(true, scope),
            "$linearFill" => {
                self.no_window()?;
                self.one_sort_key(605001)?;
                Ok(Function::LinearFill(Expression::parse(self.argument, scope)?))
            }
            "$locf" => {
                self.no_window()?;
                Ok(Function::LastObserved(Expression::parse(self.argument, scope)?))
            }
            name if ACCUMULATORS.contains(&name) => Ok(Function::Accumulate {
                accumulator: Accumulator::parse(name, self.argument, scope)?,
                bounds: self.bounds()?,
            }),
            name => Err(failed(format!("Unrecognized window function, {name}"))),
        }
    }

    fn bounds(&self) -> Result<Bounds> {
        self.window
            .map_or(Ok(UNBOUNDED), |window| Bounds::parse(window, self.sort))
    }

    fn no_window(&self) -> Result<()> {
        let name = self.name;
        match self.window {
            Some(_) => Err(failed(format!("{name} does not accept a 'window' field"))),
            None => Ok(()),
        }
    }

    fn one_sort_key(&self, code: i32) -> Result<()> {
        let name = self.name;
        match self.sort.map(Sort::keys) {
            Some([_]) => Ok(()),
            _ => {
                let text =
                    format!("{name} must be specified with a top level sortBy expression with exactly one element");
                Err(Error::new(code, text))
            }
        }
    }

    fn rank(&self, rank: Rank) -> Result<Function> {
        match (self.argument, self.window) {
            (RawBsonRef::Document(nothing), None) if nothing.is_empty() => {}
            (RawBsonRef::Document(_), None) => {
                let text = format!("{} must be specified with '{{}}' as the value", self.name);
                return Err(Error::new(5371603, text));
            }
            _ => {
                return Err(Error::new(
                    5371601,
                    "Rank style window functions take no other arguments",
                ));
            }
        }
        self.one_sort_key(5371602)?;
        Ok(Function::Rank(rank))
    }

    fn arguments<'a>(&'a self, known: &[&str]) -> Result<&'a RawDocument> {
        let name = self.name;
        let RawBsonRef::Document(arguments) = self.argument else {
            let shown = text::render(self.argument);
            return Err(failed(format!(
                "Argument to {name} must be an object, but found: {shown}"
            )));
        };
        for argument in arguments {
            let (argument, _) = argument?;
            if !known.contains(&argument.as_str()) {
                return Err(failed(format!("{name} got unexpected argument: {argument}")));
            }
        }
        Ok(arguments)
    }

    fn required<'a>(&self, arguments: &'a RawDocument, argument: &str) -> Result<RawBsonRef<'a>> {
        let name = self.name;
        arguments
            .get(argument)?
            .ok_or_else(|| failed(format!("{name} requires '{argument}'")))
    }

    fn shift(&self, scope: &mut ParseScope) -> Result<Function> {
        self.no_window()?;
        if self.sort.is_none() {
            return Err(failed("'$shift' requires a sortBy"));
        }
        let arguments = self.arguments(&["output", "by", "default"])?;
        let by = self.required(arguments, "by")?;
        let Some(by) = Number::of(by).and_then(Number::whole) else {
            let shown = text::render(by);
            return Err(failed(format!(
                "'$shift:by' field must be an integer, but found by: {shown}"
            )));
        };
        let default = match arguments.get("default")? {
            Some(default) => constant(default, scope)?,
            None => RawBson::Null,
        };
        Ok(Function::Shift {
            output: Expression::parse(self.required(arguments, "output")?, scope)?,
            by,
            default,
        })
    }

    fn moving_average(&self, scope: &mut ParseScope) -> Result<Function> {
        self.no_window()?;
        if self.sort.is_none() {
            return Err(failed("$expMovingAvg requires an explicit 'sortBy'"));
        }
        let arguments = self.arguments(&["input", "N", "alpha"])?;
        let input = Expression::parse(self.required(arguments, "input")?, scope)?;
        let alpha = match (arguments.get("N")?, arguments.get("alpha")?) {
            (Some(n), None) => match Number::of(n).and_then(Number::whole) {
                Some(n) if n > 0 => Number::Int32(2).div(Number::Int64(n).add(Number::Int32(1))),
                _ => {
                    let shown = text::render(n);
                    let text = format!("'N' field must be an integer greater than zero, but found  N: {shown}");
                    return Err(failed(text));
                }
            },
            (None, Some(alpha)) => match Number::of(alpha) {
                Some(number) if number.to_f64() > 0.0 && number.to_f64() < 1.0 => Some(number),
                _ => {
                    let shown = text::render(alpha);
                    let text = format!("'alpha' must be between 0 and 1 (exclusive), found alpha: {shown}");
                    return Err(failed(text));
                }
            },
            _ => {
                let text = "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field or an 'alpha' \
                            field";
                return Err(failed(text));
            }
        };
        Ok(Function::MovingAverage {
            input,
            alpha: alpha.unwrap_or(Number::Double(1.0)).into(),
        })
    }

    fn along_axis(&self, scope: &mut ParseScope) -> Result<Function> {
        let name = self.name;
        let arguments = self.arguments(&["input", "unit"])?;
        let input = Expression::parse(self.required(arguments, "input")?, scope)?;
        let unit = match arguments.get("unit")? {
            None => None,
            Some(RawBsonRef::String(unit)) => {
                let unit = DateUnit::parse(unit)?;
                if unit.milliseconds().is_none() {
                    let text = format!("unit must be 'week' or smaller in {name}");
                    return Err(Error::new(5490710, text));
                }
                Some(unit)
            }
            Some(_) => return Err(failed(format!("'unit' of {name} must be a string"))),
        };
        match self.sort.map(Sort::keys) {
            Some([_]) => {}
            Some(_) => return Err(failed(format!("{name} requires a non-compound sortBy"))),
            None => return Err(failed(format!("{name} requires a sortBy"))),
        }
        if name == "$derivative" {
            if self.window.is_none() {
                return Err(failed("$derivative requires explicit window bounds"));
            }
            let bounds = self.bounds()?;
            return Ok(Function::Derivative { input, unit, bounds });
        }
        let bounds = self.bounds()?;
        Ok(Function::Integral { input, unit, bounds })
    }

    fn covariance(&self, is_sample: bool, scope: &mut ParseScope) -> Result<Function> {
        let wrong = || {
            let text = format!("{} expects an array of exactly two expressions", self.name);
            failed(text)
        };
        let RawBsonRef::Array(array) = self.argument else {
            return Err(wrong());
        };
        let elements = array.into_iter().take(3).collect::<bson::error::Result<Vec<_>>>()?;
        let [x, y] = elements.as_slice() else {
            return Err(wrong());
        };
        Ok(Function::Covariance {
            x: Expression::parse(*x, scope)?,
            y: Expression::parse(*y, scope)?,
            is_sample,
            bounds: self.bounds()?,
        })
    }
}

/// Returns the value of the default of `$shift`.
fn constant(value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<RawBson> {
    let expression = Expression::parse(value, scope)?;
    if !expression.is_constant() {
        let shown = text::render(value);
        let text = format!("'$shift:default' expression must yield a constant value, but got: {shown}");
        return Err(failed(text));
    }
    let (context, nothing) = (Context::new(UnixMillis(0)), RawDocumentBuf::new());
    let value = expression.evaluate(&Scope::new(&context, &nothing))?;
    Ok(value.unwrap_or(RawBson::Null))
}
