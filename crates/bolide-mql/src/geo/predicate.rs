//! The predicates `$geoWithin` and `$geoIntersects`, and the distance of `$near` as one.

use bson::raw::{RawBsonRef, RawDocument};

use super::geometry::Geometry;
use super::near::Near;
use super::plane::FlatShape;
use super::sphere::Point;
use super::{is_near, parse};
use crate::error::{Error, Result};
use crate::value;

/// A condition on the place of a value.
#[derive(Debug, Clone)]
pub struct Predicate(Box<Condition>);

#[derive(Debug, Clone)]
enum Condition {
    Within(Region),
    Intersects(Region),
    Near(Near),
}

#[derive(Debug, Clone)]
enum Region {
    /// `$geometry`
    Sphere(Geometry),
    /// `$centerSphere`: centre, and radius in radians.
    Circle(Point, f64),
    /// `$box`, `$center`, `$polygon`
    Plane(FlatShape),
}

impl Predicate {
    /// Reads an operator of a filter; `siblings` are all operators of the field, the distances of a legacy `$near` among them.
    ///
    /// # Errors
    /// 2 `BadValue` for malformed geometry, with MongoDB's texts; those of [`Near`].
    pub fn parse(operator: &str, value: RawBsonRef<'_>, siblings: &RawDocument) -> Result<Predicate> {
        if is_near(operator) {
            return Near::parse(siblings).map(|near| Predicate(Box::new(Condition::Near(near))));
        }
        let names = siblings.iter().flatten().map(|(name, _)| name.as_str());
        if let Some(extra) = names.into_iter().find(|name| *name != operator) {
            return Err(Error::bad_value(format!("can't parse extra field: {extra}")));
        }
        let Some(specifiers) = value.as_document() else {
            return Err(Error::bad_value("geometry must be an object"));
        };
        let region = region(specifiers)?;
        let shown = || value::text::render_document(siblings);
        let condition = if operator == "$geoIntersects" {
            if let Region::Plane(_) = region {
                let text = format!("$geoIntersect not supported with provided geometry: {}", shown());
                return Err(Error::bad_value(text));
            }
            Condition::Intersects(region)
        } else {
            if let Region::Sphere(geometry) = &region
                && !geometry.has_area()
            {
                let text = format!("$within not supported with provided geometry: {}", shown());
                return Err(Error::bad_value(text));
            }
            Condition::Within(region)
        };
        Ok(Predicate(Box::new(condition)))
    }

    /// The distance by which documents are ordered, if the operator is one of `$near`.
    pub fn near(&self) -> Option<&Near> {
        match &*self.0 {
            Condition::Near(near) => Some(near),
            _ => None,
        }
    }

    /// Whether a value, which is not opened if it is an array, satisfies the condition. A value without geometry does not.
    ///
    /// # Errors
    /// 96 `OperationFailed` for geometries with too many edges.
    pub fn matches(&self, value: RawBsonRef<'_>) -> Result<bool> {
        if let Condition::Near(near) = &*self.0 {
            return Ok(near.distance(value).is_some());
        }
        let Some(geometry) = parse::stored(value) else {
            return Ok(false);
        };
        match &*self.0 {
            Condition::Within(region) => region.contains(&geometry),
            Condition::Intersects(region) => region.intersects(&geometry),
            Condition::Near(_) => Ok(false),
        }
    }
}

impl Region {
    fn contains(&self, geometry: &Geometry) -> Result<bool> {
        match self {
            Region::Sphere(region) => region.contains(geometry),
            Region::Circle(center, radius) => {
                Ok(geometry.largest_distance(*center).is_some_and(|angle| angle <= *radius))
            }
            Region::Plane(shape) => Ok(geometry.flat.is_some_and(|p| shape.contains(p))),
        }
    }

    fn intersects(&self, geometry: &Geometry) -> Result<bool> {
        match self {
            Region::Sphere(region) => region.intersects(geometry),
            Region::Circle(center, radius) => Ok(geometry.distance(*center).is_some_and(|angle| angle <= *radius)),
            Region::Plane(_) => Ok(false),
        }
    }
}

/// The last geometry counts, as in MongoDB.
fn region(specifiers: &RawDocument) -> Result<Region> {
    let mut region = None;
    for element in specifiers.iter() {
        let (name, value) = element.map_err(Error::malformed)?;
        match name.as_str() {
            "$uniqueDocs" => {}
            "$geometry" => {
                let Some(document) = value.as_document() else {
                    return Err(unknown(name.as_str(), value));
                };
                region = Some(Region::Sphere(parse::geojson(document)?));
            }
            "$centerSphere" => {
                let (center, radius) = parse::sphere_circle(value)?;
                region = Some(Region::Circle(center, radius));
            }
            name @ ("$box" | "$center" | "$polygon") => region = Some(Region::Plane(parse::flat_shape(name, value)?)),
            name => return Err(unknown(name, value)),
        }
    }
    region.ok_or_else(|| Error::bad_value("geo query doesn't have any geometry"))
}

fn unknown(name: &str, value: RawBsonRef<'_>) -> Error {
    Error::bad_value(format!("unknown geo specifier: {name}: {}", value::text::render(value)))
}

#[cfg(test)]
mod tests;
