//! Distances of `$near`, `$nearSphere` and `$geoNear`.
//!
//! | centre | distances |
//! | --- | --- |
//! | GeoJSON | on the sphere, in metres |
//! | legacy, with `$nearSphere` | on the sphere, in radians |
//! | legacy, with `$near` | on the plane, in the unit of the coordinates; between points only |

use bson::raw::{RawBsonRef, RawDocument};

use super::parse;
use super::plane::{self, FlatPoint};
use super::sphere::{EARTH_RADIUS_METERS, Point};
use super::{is_near, is_near_option};
use crate::error::{Error, Result};
use crate::value;
use crate::value::number::Number;

const INVALID_ARGUMENT: i32 = 34413;
const NOT_A_NUMBER: i32 = 16893;
const NEGATIVE: i32 = 16894;
const NEGATIVE_IN_POINT: i32 = 18522;
const NOT_GEOJSON: i32 = 16681;
const OUT_OF_BOUNDS: i32 = 17444;

/// A centre, and the range of distances that count; both ends included.
#[derive(Debug, Clone, PartialEq)]
pub struct Near {
    center: Center,
    min: f64,
    max: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Center {
    Meters(Point),
    Radians(Point),
    Plane(FlatPoint),
}

impl Near {
    /// Reads the operators of a field that has `$near`, `$nearSphere` or `$geoNear`.
    ///
    /// # Errors
    /// 2 `BadValue` for a malformed centre, 16893 to 16900 and 18522 for a bad distance, 34413 for other operators beside it, 17444 for a legacy
    /// centre that is no longitude and latitude.
    pub fn parse(operators: &RawDocument) -> Result<Near> {
        let mut given = Given::default();
        for element in operators.iter() {
            let (name, value) = element.map_err(Error::malformed)?;
            match name.as_str() {
                name if is_near(name) => given.center(value, name == "$nearSphere")?,
                name if is_near_option(name) => given.option(name, value)?,
                name => {
                    let text = format!("invalid argument in geo near query: {name}");
                    return Err(Error::new(INVALID_ARGUMENT, text));
                }
            }
        }
        given.finish()
    }

    /// The distances of the stage `$geoNear`: on the plane for a legacy centre unless `is_spherical`.
    ///
    /// # Errors
    /// Those of [`Near::parse`].
    pub fn around(center: RawBsonRef<'_>, is_spherical: bool, min: Option<f64>, max: Option<f64>) -> Result<Near> {
        let mut given = Given::default();
        given.point(center, is_spherical)?;
        given.min = min;
        given.max = max;
        given.finish()
    }

    /// The distance of a value, if it has a place within the range.
    pub fn distance(&self, value: RawBsonRef<'_>) -> Option<f64> {
        let geometry = parse::stored(value)?;
        let distance = match self.center {
            Center::Meters(center) => geometry.distance(center)? * EARTH_RADIUS_METERS,
            Center::Radians(center) => geometry.distance(center)?,
            Center::Plane(center) => plane::distance(center, geometry.flat?),
        };
        (self.min..=self.max).contains(&distance).then_some(distance)
    }

    /// Whether distances are on a sphere, so that an index on a plane does not serve.
    pub fn is_spherical(&self) -> bool {
        !matches!(self.center, Center::Plane(_))
    }
}

#[derive(Default)]
struct Given {
    center: Option<Center>,
    min: Option<f64>,
    max: Option<f64>,
}

impl Given {
    fn center(&mut self, value: RawBsonRef<'_>, is_sphere: bool) -> Result<()> {
        match value {
            RawBsonRef::Document(document) if document.get("$geometry").ok().flatten().is_some() => {
                self.geometry(document)
            }
            RawBsonRef::Document(_) | RawBsonRef::Array(_) => self.legacy(value, is_sphere),
            _ => Err(Error::bad_value("geo near query argument is not an object")),
        }
    }

    /// `{$geometry: point, $minDistance, $maxDistance}`
    fn geometry(&mut self, document: &RawDocument) -> Result<()> {
        for element in document.iter() {
            let (name, value) = element.map_err(Error::malformed)?;
            match name.as_str() {
                "$geometry" => {
                    let (flat, is_geojson) = parse::query_point(value).map_err(|error| {
                        Error::bad_value(format!(
                            "invalid point in geo near query $geometry argument: {}  {}",
                            value::text::render(value),
                            error.message
                        ))
                    })?;
                    if !is_geojson {
                        let text = format!("$near requires geojson point, given {}", value::text::render(value));
                        return Err(Error::new(NOT_GEOJSON, text));
                    }
                    self.center = parse::on_sphere(flat).map(Center::Meters);
                }
                name if is_near_option(name) => self.option(name, value)?,
                name => {
                    return Err(Error::bad_value(format!("invalid argument in geo near query: {name}")));
                }
            }
        }
        Ok(())
    }

    /// `[x, y]`, `{x, y}`, a GeoJSON point, or `[x, y, maximum]`.
    fn legacy(&mut self, value: RawBsonRef<'_>, is_sphere: bool) -> Result<()> {
        let Some(array) = value.as_array() else {
            return self.point(value, is_sphere);
        };
        let numbers: Vec<Option<f64>> = array
            .into_iter()
            .flatten()
            .take(4)
            .map(|number| Number::of(number).map(Number::to_f64))
            .collect();
        let [Some(x), Some(y), Some(max)] = numbers[..] else {
            return self.point(value, is_sphere);
        };
        // NaN is refused as well.
        if max.is_nan() || max < 0.0 {
            return Err(Error::new(NEGATIVE_IN_POINT, "max distance must be non-negative"));
        }
        self.max = Some(max);
        self.flat([x, y], is_sphere)
    }

    fn point(&mut self, value: RawBsonRef<'_>, is_sphere: bool) -> Result<()> {
        let (flat, is_geojson) = parse::query_point(value)?;
        if is_geojson {
            self.center = parse::on_sphere(flat).map(Center::Meters);
            return Ok(());
        }
        self.flat(flat, is_sphere)
    }

    fn flat(&mut self, flat: FlatPoint, is_sphere: bool) -> Result<()> {
        if !is_sphere {
            self.center = Some(Center::Plane(flat));
            return Ok(());
        }
        let center = parse::on_sphere(flat)
            .ok_or_else(|| Error::new(OUT_OF_BOUNDS, "Legacy point is out of bounds for spherical query"))?;
        self.center = Some(Center::Radians(center));
        Ok(())
    }

    fn option(&mut self, name: &str, value: RawBsonRef<'_>) -> Result<()> {
        if name == "$uniqueDocs" {
            return Ok(());
        }
        let is_max = name == "$maxDistance";
        // The codes for the maximum are two above those for the minimum.
        let code = |code: i32| if is_max { code + 2 } else { code };
        let Some(number) = Number::of(value).map(Number::to_f64) else {
            return Err(Error::new(code(NOT_A_NUMBER), format!("{name} must be a number")));
        };
        if number.is_nan() || number < 0.0 {
            return Err(Error::new(code(NEGATIVE), format!("{name} must be non-negative")));
        }
        *(if is_max { &mut self.max } else { &mut self.min }) = Some(number);
        Ok(())
    }

    fn finish(self) -> Result<Near> {
        let Some(center) = self.center else {
            return Err(Error::bad_value("$geometry is required for geo near query"));
        };
        Ok(Near {
            center,
            min: self.min.unwrap_or(0.0),
            max: self.max.unwrap_or(f64::INFINITY),
        })
    }
}

#[cfg(test)]
mod tests;
