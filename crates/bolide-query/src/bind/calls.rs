//! Binds function calls.

use std::sync::Arc;

use super::Binder;
use super::group::aggregate_of;
use crate::error::{QueryError, Result, Span};
use crate::fuel::Fuel;
use crate::functions::regex::Pattern;
use crate::functions::{self, Function};
use crate::program::Scalar;
use crate::schema::DistanceFunction;
use crate::text::ast::Call;
use crate::value::Value;

/// Full-text functions whose first argument is a path with a language.
const FULL_TEXT: &[&str] = &[
    "FullTextContains",
    "FullTextContainsAll",
    "FullTextContainsAny",
    "_FullTextWordCount",
    "_FullTextScore",
];

impl Binder<'_> {
    pub(super) fn call(&mut self, call: &Call, span: Span) -> Result<Scalar> {
        if let Some(kind) = aggregate_of(call) {
            return self.aggregate(kind, call, span);
        }
        if call.udf {
            let args = self.arguments(call)?;
            self.is_repeatable = false;
            return Ok(Scalar::Udf(call.name.as_str().into(), args));
        }
        if call.name.eq_ignore_ascii_case("FullTextScore") {
            let message = "The FullTextScore function is only allowed in the ORDER BY RANK clause.";
            return Err(QueryError::at("SC2240", message, span));
        }
        let Some(function) = functions::find(&call.name) else {
            // If an argument has an error, the service reports that error first.
            self.arguments(call)?;
            let message = format!("'{}' is not a recognized built-in function name.", call.name);
            return Err(QueryError::at("SC2005", message, call.name_span));
        };
        check_arity(function, call.args.len(), span)?;
        self.is_repeatable &= function.is_pure();
        let args = self.arguments(call)?;
        self.specialised(function, args, span)
    }

    fn arguments(&mut self, call: &Call) -> Result<Vec<Scalar>> {
        call.args.iter().map(|arg| self.expression(arg)).collect()
    }

    /// Computes at compile time what a function would otherwise compute for every row.
    fn specialised(&mut self, function: &'static Function, mut args: Vec<Scalar>, span: Span) -> Result<Scalar> {
        if function.name == "REGEXMATCH"
            && let Some(pattern) = constant_pattern(&args, &self.session.fuel)
        {
            if let Some(pattern) = &pattern {
                self.session.memory.take(pattern.bytes())?;
            }
            let text = Box::new(args.swap_remove(0));
            // With an invalid pattern every result is undefined.
            return Ok(pattern.map_or(Scalar::Const(Value::Undefined), |pattern| {
                Scalar::Regex(text, Arc::new(pattern))
            }));
        }
        if FULL_TEXT.contains(&function.name) {
            let language = self.language_of(&args[0])?;
            args.push(Scalar::Const(Value::string(language)));
        }
        if matches!(function.name, "VectorDistance" | "_VectorScore") {
            let distance = self.distance_function(&args, span)?;
            args.truncate(2);
            args.push(Scalar::Const(Value::int(distance as i64)));
        }
        Ok(Scalar::Call(function, args))
    }

    /// The language of the path that a full-text function reads.
    pub(super) fn language_of(&self, text: &Scalar) -> Result<String> {
        let path = self.path_of(text)?.unwrap_or_default();
        Ok(self.schema.language(&path).to_owned())
    }

    /// The distance function of a `VectorDistance`: from its options, else from the vector policy of its path, else cosine.
    pub(super) fn distance_function(&self, args: &[Scalar], span: Span) -> Result<DistanceFunction> {
        let options = args
            .get(3)
            .and_then(Scalar::as_const)
            .cloned()
            .unwrap_or(Value::Undefined);
        check_vector_options(&options, span)?;
        if let Some(name) = options.member("distanceFunction").as_str() {
            return DistanceFunction::parse(name)
                .ok_or_else(|| QueryError::at("SC2213", format!("Unsupported distance function '{name}'."), span));
        }
        let mut policy = None;
        for arg in args.iter().take(2) {
            let Some(path) = self.path_of(arg)? else { continue };
            policy = policy.or_else(|| self.schema.vectors.iter().find(|vector| vector.path[..] == path[..]));
        }
        Ok(policy.map_or(DistanceFunction::Cosine, |policy| policy.function))
    }
}

/// Checks the number of arguments.
pub(super) fn check_arity(function: &Function, count: usize, span: Span) -> Result<()> {
    if count < function.min_args || function.max_args.is_some_and(|max_args| count > max_args) {
        return Err(QueryError::at("SC2050", function.arity_message(), span));
    }
    Ok(())
}

/// The pattern of a REGEXMATCH with constant pattern and flags; the inner `None` is an invalid pattern.
fn constant_pattern(args: &[Scalar], fuel: &Fuel) -> Option<Option<Pattern>> {
    let text = args.get(1)?.as_const()?;
    let flags = match args.get(2) {
        None => Some(""),
        Some(flags) => flags.as_const()?.as_str(),
    };
    Some(
        text.as_str()
            .zip(flags)
            .and_then(|(text, flags)| Pattern::new(text, flags, fuel)),
    )
}

fn check_vector_options(options: &Value<'_>, span: Span) -> Result<()> {
    const RANGES: &[(&str, f64, f64)] = &[("searchListSizeMultiplier", 1.0, 100.0), ("filterPriority", 0.0, 1.0)];
    for (name, low, high) in RANGES {
        let value = options.member(name);
        if value.is_defined() && !value.as_f64().is_some_and(|value| (*low..=*high).contains(&value)) {
            let message =
                format!("The value of the VectorDistance option '{name}' must be a number between {low} and {high}.");
            return Err(QueryError::at("SC2213", message, span));
        }
    }
    let data_type = options.member("dataType");
    let known = |name: &str| {
        ["float32", "float16", "int8", "uint8"]
            .iter()
            .any(|own| own.eq_ignore_ascii_case(name))
    };
    if data_type.is_defined() && !data_type.as_str().is_some_and(known) {
        return Err(QueryError::at(
            "SC2213",
            "Unsupported value of the VectorDistance option 'dataType'.",
            span,
        ));
    }
    Ok(())
}
