//! `$geoNear`

use std::sync::Arc;

use bson::raw::{CString, RawBson, RawBsonRef, RawDocumentBuf, cstr};

use super::nested;
use crate::aggregation::document::Document;
use crate::aggregation::options::Options;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::BoxSource;
use crate::aggregation::stage::{Blocking, Output, Run, Stage};
use crate::context::memory::StageMemory;
use crate::error::{Code, Error, Result};
use crate::expression::{Expression, Scope};
use crate::filter::Filter;
use crate::geo::Near;
use crate::path::field::FieldPath;
use crate::path::{self, Path};
use crate::projection::check_depth;
use crate::sort::Sorter;
use crate::value::number::Number;
use crate::value::{is_truthy, types};

/// The stage.
#[derive(Debug, Clone)]
struct GeoNear {
    key: Path,
    near: Arc<Expression>,
    is_spherical: bool,
    min: Option<f64>,
    max: Option<f64>,
    query: Filter,
    multiplier: f64,
    distance_field: FieldPath,
    locations: Option<FieldPath>,
    /// How many documents are taken from it.
    limit: Option<usize>,
}

const OPTIONS: &[&str] = &[
    "near",
    "distanceField",
    "spherical",
    "maxDistance",
    "minDistance",
    "query",
    "distanceMultiplier",
    "includeLocs",
    "key",
    "limit",
    "num",
    "start",
    "uniqueDocs",
];

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let wrong = |_: &'static str| Error::new(10603, "the $geoNear stage specification must be an object");
    let options = Options::parse("$geoNear", spec, OPTIONS, wrong)?;
    for (name, code) in [("limit", 50858), ("num", 50857), ("start", 50856)] {
        if options.get(name)?.is_some() {
            let text = format!("$geoNear no longer supports the '{name}' parameter. Use a $limit stage instead.");
            return Err(Error::new(code, text));
        }
    }
    let near = options
        .get("near")?
        .ok_or_else(|| Error::new(5860400, "$geoNear requires a 'near' argument"))?;
    let near = Expression::parse(near, &mut parser.scope)?;
    let reads = near.field_paths();
    if reads.is_whole_document || !reads.paths.is_empty() {
        return Err(Error::new(5860402, "$geoNear requires a constant near argument"));
    }
    let Some(distance_field) = options.get("distanceField")?.and_then(|field| field.as_str()) else {
        return Err(Error::new(
            16606,
            "$geoNear requires a 'distanceField' option as a String",
        ));
    };
    let query = match options.document("query")? {
        Some(query) => Filter::parse_in(query, &parser.scope)?,
        None => Filter::all(),
    };
    if query.has_near() {
        return Err(Error::bad_value("$geoNear cannot contain a $near or $nearSphere query"));
    }
    Ok(Parsed::stage(GeoNear {
        key: Path::parse(&parse_key(&options, parser)?)?,
        near: Arc::new(near),
        is_spherical: options.get("spherical")?.is_some_and(is_truthy),
        min: distance(&options, "minDistance")?,
        max: distance(&options, "maxDistance")?,
        query,
        multiplier: distance(&options, "distanceMultiplier")?.unwrap_or(1.0),
        distance_field: FieldPath::parse(distance_field)?,
        locations: options.string("includeLocs")?.map(FieldPath::parse).transpose()?,
        limit: None,
    }))
}

/// Returns a number that is not negative.
fn distance(options: &Options<'_>, name: &str) -> Result<Option<f64>> {
    let Some(value) = options.get(name)? else {
        return Ok(None);
    };
    let Some(number) = Number::of(value) else {
        let found = types::name(value);
        let text = format!("$geoNear parameter '{name}' must be of type number but found type: {found}");
        return Err(Error::new(Code::TYPE_MISMATCH, text));
    };
    let number = number.to_f64();
    match number >= 0.0 {
        true => Ok(Some(number)),
        false => Err(Error::bad_value(format!(
            "$geoNear parameter '{name}' must be nonnegative"
        ))),
    }
}

/// Returns `key`, or the one field that has a geometric index.
fn parse_key(options: &Options<'_>, parser: &Parser) -> Result<String> {
    match options.get("key")? {
        Some(RawBsonRef::String("")) => Err(Error::bad_value("$geoNear parameter 'key' cannot be the empty string")),
        Some(RawBsonRef::String(key)) => Ok(key.to_owned()),
        Some(other) => {
            let found = types::name(other);
            let text = format!("$geoNear parameter 'key' must be of type string but found type: {found}");
            Err(Error::new(Code::TYPE_MISMATCH, text))
        }
        None => match parser.geo_fields.as_slice() {
            [field] => Ok(field.clone()),
            [] => {
                let text = "$geoNear requires a 2d or 2dsphere index, but none were found";
                Err(Error::new(Code::INDEX_NOT_FOUND, text))
            }
            _ => {
                let text = "There is more than one 2d or 2dsphere index; unsure which to use for $geoNear";
                Err(Error::new(Code::INDEX_NOT_FOUND, text))
            }
        },
    }
}

impl Stage for GeoNear {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let near = self.near(run)?;
        let run = Arc::clone(run);
        Ok(Blocking::source(move || self.collect(input, &near, &run)))
    }

    fn with_limit(&self, limit: u64) -> Option<Arc<dyn Stage>> {
        Some(Arc::new(GeoNear {
            limit: usize::try_from(limit).ok(),
            ..self.clone()
        }))
    }
}

impl GeoNear {
    /// Computes the centre; it may name variables, but no fields.
    fn near(&self, run: &Run) -> Result<Near> {
        let nothing = RawDocumentBuf::new();
        let center = self.near.evaluate(&Scope::new(&run.context, &nothing))?;
        let center = center.unwrap_or(RawBson::Null);
        match center.as_raw_bson_ref() {
            center @ (RawBsonRef::Document(_) | RawBsonRef::Array(_)) => {
                Near::around(center, self.is_spherical, self.min, self.max)
            }
            other => {
                let found = types::name(other);
                let text = format!(
                    "$geoNear requires near argument to be a GeoJSON object or a legacy point(array), but found type: {found}"
                );
                Err(Error::new(5860401, text))
            }
        }
    }

    fn collect(&self, mut input: BoxSource, near: &Near, run: &Run) -> Result<Output> {
        let mut sorter = Sorter::new(self.limit, StageMemory::new("$geoNear"));
        while let Some(document) = input.next()? {
            if !self.query.matches(&document.bytes, &run.context)? {
                continue;
            }
            let Some((distance, document)) = self.measured(&document, near)? else {
                continue;
            };
            // The bits of numbers that are not negative have their order.
            let key = distance.to_bits().to_be_bytes().to_vec();
            let bytes = document.memory();
            sorter.push(key, document, bytes)?;
        }
        Ok(Box::new(sorter.finish()))
    }

    /// Returns the distance of the document's nearest place, and the document with it; `None` if it has no place in range.
    fn measured(&self, document: &Document, near: &Near) -> Result<Option<(f64, Document)>> {
        let mut nearest: Option<(f64, RawBsonRef<'_>)> = None;
        for value in path::values(&document.bytes, &self.key).into_iter().flatten() {
            let Some(distance) = near.distance(value) else { continue };
            if nearest.is_none_or(|(least, _)| distance < least) {
                nearest = Some((distance, value));
            }
        }
        let Some((distance, place)) = nearest else {
            return Ok(None);
        };
        let shown = RawBsonRef::Double(distance * self.multiplier);
        let mut bytes = nested::set(&document.bytes, self.distance_field.names(), Some(shown))?;
        if let Some(locations) = &self.locations {
            bytes = nested::set(&bytes, locations.names(), Some(place))?;
        }
        check_depth(&bytes)?;
        let mut metadata = RawDocumentBuf::new();
        metadata.append(CString::from(cstr!("geoNearDistance")), distance);
        metadata.append(CString::from(cstr!("geoNearPoint")), place);
        let mut measured = document.successor(bytes);
        measured.metadata = Some(Arc::new(metadata));
        Ok(Some((distance, measured)))
    }
}
