//! GeoJSON and legacy points. Errors are 2 `BadValue`, with MongoDB's texts.

use bson::raw::{RawArray, RawBsonRef, RawDocument};

use super::geometry::{Geometry, Polygon};
use super::plane::{FlatPoint, FlatShape};
use super::sphere::{self, Point, Ring};
use crate::error::{Error, Result};
use crate::value;
use crate::value::number::Number;

/// Names of the coordinate system of longitude and latitude.
const NAMED_SYSTEMS: [&str; 2] = ["urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326"];

/// The same system, with polygons whose inside is left of their edges.
const STRICT_WINDING: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";

/// Rings with more points are not checked for edges that cross, which takes the square of their number.
const CHECKED_POINTS: usize = 1000;

fn bad(message: impl Into<String>) -> Error {
    Error::bad_value(message)
}

fn text(value: RawBsonRef<'_>) -> String {
    value::text::render(value)
}

/// The geometry in a field of a document; `None` if there is none, or a malformed one.
pub fn stored(value: RawBsonRef<'_>) -> Option<Geometry> {
    field_value(value).ok()
}

/// The geometry in a field of a document.
pub fn field_value(value: RawBsonRef<'_>) -> Result<Geometry> {
    match value {
        RawBsonRef::Document(document) if geojson_type(document).is_some() => {
            let geometry = geojson(document)?;
            if geometry.is_strict {
                return Err(bad("Strict winding order is only supported in queries"));
            }
            Ok(geometry)
        }
        _ => flat_point(value, true).map(legacy),
    }
}

/// A legacy point, with its place on the sphere if it has one.
pub fn legacy(flat: FlatPoint) -> Geometry {
    Geometry {
        points: on_sphere(flat).into_iter().collect(),
        flat: Some(flat),
        ..Geometry::default()
    }
}

/// A point of a query: legacy, `[x, y]` or `{x, y}`, or GeoJSON. Tells whether it is GeoJSON.
pub fn query_point(value: RawBsonRef<'_>) -> Result<(FlatPoint, bool)> {
    if let RawBsonRef::Document(document) = value {
        let first = document.iter().flatten().next();
        if first.is_none_or(|(_, value)| Number::of(value).is_none()) {
            return Ok((geojson_point(document)?, true));
        }
    }
    Ok((flat_point(value, false)?, false))
}

/// The place of a point whose coordinates are longitude and latitude.
pub fn on_sphere(flat: FlatPoint) -> Option<Point> {
    let [longitude, latitude] = flat;
    let is_valid = (-180.0..=180.0).contains(&longitude) && (-90.0..=90.0).contains(&latitude);
    is_valid.then(|| sphere::point(longitude, latitude))
}

fn sphere_point(flat: FlatPoint) -> Result<Point> {
    on_sphere(flat).ok_or_else(|| {
        let [longitude, latitude] = flat.map(|coordinate| text(RawBsonRef::Double(coordinate)));
        let [longitude, latitude] = [&longitude, &latitude].map(|number| number.trim_end_matches(".0"));
        bad(format!(
            "Longitude/latitude is out of bounds, lng: {longitude} lat: {latitude}"
        ))
    })
}

/// Two numbers in an array or document.
fn flat_point(value: RawBsonRef<'_>, allows_more: bool) -> Result<FlatPoint> {
    let Some(values) = elements(value) else {
        return Err(bad("Point must be an array or object"));
    };
    let mut values = values;
    let mut coordinate = || {
        let number = values.next().and_then(Number::of);
        number
            .map(Number::to_f64)
            .ok_or_else(|| bad("Point must only contain numeric elements"))
    };
    let point = [coordinate()?, coordinate()?];
    if !allows_more && values.next().is_some() {
        return Err(bad("Point must only contain two numeric elements"));
    }
    if !point.iter().all(|number| number.is_finite()) {
        return Err(bad("Point coordinates must be finite numbers"));
    }
    Ok(point)
}

/// The values of an array or document, in order.
fn elements<'v>(value: RawBsonRef<'v>) -> Option<Box<dyn Iterator<Item = RawBsonRef<'v>> + 'v>> {
    match value {
        RawBsonRef::Array(array) => Some(Box::new(array.into_iter().flatten())),
        RawBsonRef::Document(document) => Some(Box::new(document.iter().flatten().map(|(_, value)| value))),
        _ => None,
    }
}

fn field<'d>(document: &'d RawDocument, name: &str) -> Option<RawBsonRef<'d>> {
    document.get(name).ok().flatten()
}

fn array<'d>(document: &'d RawDocument, name: &str, message: &str) -> Result<&'d RawArray> {
    let array = field(document, name).and_then(RawBsonRef::as_array);
    array.ok_or_else(|| bad(message))
}

/// `type`, if it is one of GeoJSON.
fn geojson_type(document: &RawDocument) -> Option<&str> {
    const TYPES: [&str; 7] = [
        "Point",
        "LineString",
        "Polygon",
        "MultiPoint",
        "MultiLineString",
        "MultiPolygon",
        "GeometryCollection",
    ];
    let name = field(document, "type")?.as_str()?;
    TYPES.contains(&name).then_some(name)
}

/// A GeoJSON object.
pub fn geojson(document: &RawDocument) -> Result<Geometry> {
    match geojson_type(document) {
        None => Err(bad(format!(
            "unknown GeoJSON type: {}",
            value::text::render_document(document)
        ))),
        Some("GeometryCollection") => collection(document),
        Some(kind) => simple(kind, document),
    }
}

fn simple(kind: &str, document: &RawDocument) -> Result<Geometry> {
    let is_strict = is_strict(document, kind == "Polygon")?;
    let coordinates = field(document, "coordinates");
    let mut geometry = Geometry {
        is_strict,
        ..Geometry::default()
    };
    match kind {
        "Point" => {
            let flat = flat_point(coordinates.unwrap_or(RawBsonRef::Undefined), true)?;
            geometry.points.push(sphere_point(flat)?);
            geometry.flat = Some(flat);
        }
        "MultiPoint" => {
            geometry.points = points(coordinates)?;
            if geometry.points.is_empty() {
                return Err(bad("MultiPoint coordinates must have at least 1 element"));
            }
        }
        "LineString" => geometry.lines.push(line(coordinates)?),
        "Polygon" => geometry.polygons.push(polygon(coordinates, is_strict)?),
        "MultiLineString" => {
            for item in many(document, kind)? {
                geometry.lines.push(line(Some(item))?);
            }
        }
        _ => {
            for item in many(document, kind)? {
                geometry.polygons.push(polygon(Some(item), false)?);
            }
        }
    }
    Ok(geometry)
}

fn geojson_point(document: &RawDocument) -> Result<FlatPoint> {
    is_strict(document, false)?;
    let flat = flat_point(field(document, "coordinates").unwrap_or(RawBsonRef::Undefined), true)?;
    sphere_point(flat)?;
    Ok(flat)
}

fn many<'d>(document: &'d RawDocument, kind: &str) -> Result<Vec<RawBsonRef<'d>>> {
    let items = array(document, "coordinates", &format!("{kind} coordinates must be an array"))?;
    let items: Vec<RawBsonRef<'_>> = items.into_iter().flatten().collect();
    if items.is_empty() {
        return Err(bad(format!("{kind} coordinates must have at least 1 element")));
    }
    Ok(items)
}

fn collection(document: &RawDocument) -> Result<Geometry> {
    let items = array(document, "geometries", "GeometryCollection geometries must be an array")?;
    let mut all = Geometry::default();
    let mut is_empty = true;
    for (index, item) in items.into_iter().flatten().enumerate() {
        is_empty = false;
        let Some(inner) = item.as_document() else {
            return Err(bad(format!("Element {index} of \"geometries\" is not an object")));
        };
        let geometry = match geojson_type(inner) {
            None => return Err(bad(format!("Unknown GeoJSON type: {}", text(item)))),
            Some("GeometryCollection") => {
                return Err(bad(format!("GeometryCollections cannot be nested: {}", text(item))));
            }
            Some(kind) => simple(kind, inner)?,
        };
        all.points.extend(geometry.points);
        all.lines.extend(geometry.lines);
        all.polygons.extend(geometry.polygons);
        all.is_strict |= geometry.is_strict;
    }
    if is_empty {
        return Err(bad("GeometryCollection geometries must have at least 1 element"));
    }
    Ok(all)
}

/// Whether the coordinate system is the one with strict winding.
fn is_strict(document: &RawDocument, allows_strict: bool) -> Result<bool> {
    let Some(system) = field(document, "crs") else {
        return Ok(false);
    };
    let Some(system) = system.as_document() else {
        return Err(bad("GeoJSON CRS must be an object"));
    };
    if field(system, "type").and_then(RawBsonRef::as_str) != Some("name") {
        return Err(bad("GeoJSON CRS must have field \"type\": \"name\""));
    }
    let Some(properties) = field(system, "properties").and_then(RawBsonRef::as_document) else {
        return Err(bad("CRS must have field \"properties\" which is an object"));
    };
    match field(properties, "name").and_then(RawBsonRef::as_str) {
        None => Err(bad("In CRS, \"properties.name\" must be a string")),
        Some(name) if NAMED_SYSTEMS.contains(&name) => Ok(false),
        Some(STRICT_WINDING) if allows_strict => Ok(true),
        Some(STRICT_WINDING) => Err(bad("Strict winding order is only supported by polygon")),
        Some(name) => Err(bad(format!("Unknown CRS name: {name}"))),
    }
}

fn points(coordinates: Option<RawBsonRef<'_>>) -> Result<Vec<Point>> {
    let Some(items) = coordinates.and_then(RawBsonRef::as_array) else {
        return Err(bad("GeoJSON coordinates must be an array of coordinates"));
    };
    let items = items.into_iter().flatten().map(|item| {
        if item.as_array().is_none() {
            return Err(bad("GeoJSON coordinates must be an array"));
        }
        // More elements, such as an altitude, are allowed.
        sphere_point(flat_point(item, true)?)
    });
    items.collect()
}

fn line(coordinates: Option<RawBsonRef<'_>>) -> Result<Vec<Point>> {
    let mut line = points(coordinates)?;
    line.dedup();
    if line.len() < 2 {
        return Err(bad(format!(
            "GeoJSON LineString must have at least 2 vertices: {}",
            text(coordinates.unwrap_or(RawBsonRef::Undefined))
        )));
    }
    Ok(line)
}

fn polygon(coordinates: Option<RawBsonRef<'_>>, is_strict: bool) -> Result<Polygon> {
    let Some(rings) = coordinates.and_then(RawBsonRef::as_array) else {
        return Err(bad("Polygon coordinates must be an array"));
    };
    let mut rings = rings.into_iter().flatten();
    let Some(first) = rings.next() else {
        return Err(bad("Polygon has no loops."));
    };
    let outer = ring_points(first)?;
    if is_strict {
        if rings.next().is_some() {
            return Err(bad(format!(
                "Only one simple loop is allowed in a big polygon: {}",
                text(coordinates.unwrap_or(RawBsonRef::Undefined))
            )));
        }
        return Ok(Polygon {
            outer: Ring::left(outer),
            holes: Vec::new(),
        });
    }
    let outer = Ring::smaller(outer);
    let mut holes = Vec::new();
    for value in rings {
        let hole = Ring::smaller(ring_points(value)?);
        if !hole.points().iter().all(|p| outer.contains(*p)) {
            return Err(bad(format!(
                "Secondary loops not contained by first exterior loop - secondary loops must be holes: {} first loop: {}",
                text(value),
                text(first)
            )));
        }
        holes.push(hole);
    }
    Ok(Polygon { outer, holes })
}

/// The points of a closed ring, the last one left out.
fn ring_points(value: RawBsonRef<'_>) -> Result<Vec<Point>> {
    let mut points = points(Some(value))?;
    let Some(first) = points.first().copied() else {
        return Err(bad(format!("Loop has no vertices: {}", text(value))));
    };
    if points.last() != Some(&first) {
        return Err(bad(format!("Loop is not closed: {}", text(value))));
    }
    points.dedup();
    points.pop();
    if points.len() < 3 {
        return Err(bad(format!(
            "Loop must have at least 3 different vertices: {}",
            text(value)
        )));
    }
    if let Some(problem) = crossing(&points) {
        return Err(bad(format!("Loop is not valid: {} {problem}", text(value))));
    }
    Ok(points)
}

/// Two edges of a ring that cross, or two equal points.
fn crossing(points: &[Point]) -> Option<String> {
    let count = points.len();
    if count > CHECKED_POINTS {
        return None;
    }
    let edge = |index: usize| (points[index], points[(index + 1) % count]);
    for first in 0..count {
        for second in first + 1..count {
            if points[first] == points[second] {
                return Some(format!("Duplicate vertices: {first} and {second}"));
            }
            let (a, b) = edge(first);
            let (c, d) = edge(second);
            let are_neighbours = second == first + 1 || (first == 0 && second + 1 == count);
            if !are_neighbours && sphere::do_cross(a, b, c, d) {
                return Some(format!("Edges {first} and {second} cross"));
            }
        }
    }
    None
}

/// A shape of a legacy query.
pub fn flat_shape(name: &str, value: RawBsonRef<'_>) -> Result<FlatShape> {
    let Some(mut values) = elements(value) else {
        return Err(bad(format!("unknown geo specifier: {name}: {}", text(value))));
    };
    let mut next = || values.next().unwrap_or(RawBsonRef::Undefined);
    match name {
        "$box" => {
            let (a, b) = (flat_point(next(), false)?, flat_point(next(), false)?);
            let min = [a[0].min(b[0]), a[1].min(b[1])];
            Ok(FlatShape::Box(min, [a[0].max(b[0]), a[1].max(b[1])]))
        }
        "$center" => {
            let (center, radius) = circle(value)?;
            Ok(FlatShape::Circle(center, radius))
        }
        _ => {
            let points: Vec<FlatPoint> = values.map(|point| flat_point(point, false)).collect::<Result<_>>()?;
            if points.len() < 3 {
                return Err(bad("Polygon must have at least 3 points"));
            }
            Ok(FlatShape::Polygon(points))
        }
    }
}

/// A centre and a radius.
pub fn circle(value: RawBsonRef<'_>) -> Result<(FlatPoint, f64)> {
    let Some(mut values) = elements(value) else {
        return Err(bad("radius must be a non-negative number"));
    };
    let center = flat_point(values.next().unwrap_or(RawBsonRef::Undefined), false)?;
    let radius = values.next().and_then(Number::of).map(Number::to_f64);
    let Some(radius) = radius.filter(|radius| *radius >= 0.0) else {
        return Err(bad("radius must be a non-negative number"));
    };
    if values.next().is_some() {
        return Err(bad("Only 2 fields allowed for circular region"));
    }
    Ok((center, radius))
}

/// A circle on the sphere: centre, and radius in radians.
pub fn sphere_circle(value: RawBsonRef<'_>) -> Result<(Point, f64)> {
    let (center, radius) = circle(value)?;
    Ok((sphere_point(center)?, radius))
}

#[cfg(test)]
mod tests;
