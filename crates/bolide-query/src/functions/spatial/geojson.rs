//! Reads and validates GeoJSON.

use std::fmt;

use crate::limits::POLYGON_POINTS;
use crate::value::Value;

/// Longitude (x) and latitude (y).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    pub x: f64,
    pub y: f64,
}

/// A closed ring; its last position repeats the first.
pub type Ring = Vec<Position>;

/// A shape.
#[derive(Debug, Clone, PartialEq)]
pub enum Geometry {
    Point(Position),
    Line(Vec<Position>),
    /// Polygons as rings: a shell, then holes.
    Polygons(Vec<Vec<Ring>>),
}

/// Why a value is not a valid shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    NotGeoJson,
    Latitude,
    Longitude,
    ShortLine,
    ShortRing,
    NoPolygon,
    OpenRing,
    TooManyPoints,
    SelfCrossing,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Invalid::NotGeoJson => "The value is not a GeoJSON Point, LineString, Polygon or MultiPolygon.",
            Invalid::Latitude => "Latitude values must be between -90 and 90 degrees.",
            Invalid::Longitude => "Longitude values must be between -180 and 180 degrees.",
            Invalid::ShortLine => "A LineString must have at least two positions.",
            Invalid::ShortRing => "A Polygon ring must have at least four positions.",
            Invalid::NoPolygon => "A MultiPolygon must have at least one polygon.",
            Invalid::OpenRing => "The first and last positions of a Polygon ring must be equal.",
            Invalid::TooManyPoints => "A Polygon must not have more than 4096 positions.",
            Invalid::SelfCrossing => "The edges of a Polygon ring must not cross each other.",
        })
    }
}

impl Geometry {
    /// Reads a shape. On a plane coordinates may be any numbers.
    ///
    /// # Errors
    /// The first rule that the value breaks.
    pub fn read(value: &Value<'_>, plane: bool) -> Result<Geometry, Invalid> {
        let coordinates = value.member("coordinates");
        match value.member("type").as_str() {
            Some("Point") => position(&coordinates, plane).map(Geometry::Point),
            Some("LineString") => match positions(&coordinates, plane)? {
                line if line.len() < 2 => Err(Invalid::ShortLine),
                line => Ok(Geometry::Line(line)),
            },
            Some("Polygon") => Ok(Geometry::Polygons(vec![polygon(&coordinates, plane)?])),
            Some("MultiPolygon") => {
                let polygons = list(&coordinates)?;
                if polygons.is_empty() {
                    return Err(Invalid::NoPolygon);
                }
                polygons
                    .iter()
                    .map(|rings| polygon(rings, plane))
                    .collect::<Result<_, _>>()
                    .map(Geometry::Polygons)
            }
            _ => Err(Invalid::NotGeoJson),
        }
    }

    /// Number of positions.
    pub fn position_count(&self) -> u64 {
        let count = match self {
            Geometry::Point(_) => 1,
            Geometry::Line(line) => line.len(),
            Geometry::Polygons(polygons) => polygons.iter().flatten().map(Vec::len).sum(),
        };
        count as u64
    }

    /// All positions.
    pub fn positions(&self) -> Vec<Position> {
        match self {
            Geometry::Point(position) => vec![*position],
            Geometry::Line(line) => line.clone(),
            Geometry::Polygons(polygons) => polygons.iter().flatten().flatten().copied().collect(),
        }
    }

    /// All edges.
    pub fn edges(&self) -> Vec<(Position, Position)> {
        let of = |line: &[Position]| line.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>();
        match self {
            Geometry::Point(_) => Vec::new(),
            Geometry::Line(line) => of(line),
            Geometry::Polygons(polygons) => polygons.iter().flatten().flat_map(|ring| of(ring)).collect(),
        }
    }
}

fn list<'a>(value: &Value<'a>) -> Result<Vec<Value<'a>>, Invalid> {
    value
        .elements()
        .map(|items| items.into_owned())
        .ok_or(Invalid::NotGeoJson)
}

fn position(value: &Value<'_>, plane: bool) -> Result<Position, Invalid> {
    let numbers: Option<Vec<f64>> = list(value)?.iter().map(Value::as_f64).collect();
    // Altitude and further numbers are allowed and ignored.
    let (x, y) = match numbers.as_deref() {
        Some([x, y, ..]) if x.is_finite() && y.is_finite() => (*x, *y),
        _ => return Err(Invalid::NotGeoJson),
    };
    if !plane && !(-90.0..=90.0).contains(&y) {
        return Err(Invalid::Latitude);
    }
    if !plane && !(-180.0..=180.0).contains(&x) {
        return Err(Invalid::Longitude);
    }
    Ok(Position { x, y })
}

fn positions(value: &Value<'_>, plane: bool) -> Result<Vec<Position>, Invalid> {
    list(value)?.iter().map(|item| position(item, plane)).collect()
}

fn polygon(value: &Value<'_>, plane: bool) -> Result<Vec<Ring>, Invalid> {
    let rings: Vec<Ring> = list(value)?
        .iter()
        .map(|ring| positions(ring, plane))
        .collect::<Result<_, _>>()?;
    if rings.is_empty() || rings.iter().any(|ring| ring.len() < 4) {
        return Err(Invalid::ShortRing);
    }
    if rings.iter().any(|ring| ring.first() != ring.last()) {
        return Err(Invalid::OpenRing);
    }
    if rings.iter().map(Vec::len).sum::<usize>() > POLYGON_POINTS {
        return Err(Invalid::TooManyPoints);
    }
    Ok(rings)
}
