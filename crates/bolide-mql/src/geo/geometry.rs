//! What documents and queries have: points, lines and polygons, in any number.

use bson::raw::RawBsonRef;

use super::parse;
use super::plane::FlatPoint;
use super::sphere::{self, Point, Ring};
use crate::error::{Code, Error, Result};

/// Pairs of edges that one comparison of two geometries may look at.
const EDGE_PAIRS: usize = 50_000_000;

/// Points, lines and polygons on the sphere, and a single point also on the plane.
#[derive(Debug, Clone, Default)]
pub struct Geometry {
    pub(super) points: Vec<Point>,
    pub(super) lines: Vec<Vec<Point>>,
    pub(super) polygons: Vec<Polygon>,
    /// The coordinates of a single point, legacy or GeoJSON.
    pub(super) flat: Option<FlatPoint>,
    /// The polygon's inside is left of its edges, however large (MongoDB's strict winding).
    pub(super) is_strict: bool,
}

/// An outer ring and holes.
#[derive(Debug, Clone)]
pub struct Polygon {
    pub(super) outer: Ring,
    pub(super) holes: Vec<Ring>,
}

impl Polygon {
    fn contains(&self, p: Point) -> bool {
        self.outer.contains(p) && !self.holes.iter().any(|hole| hole.has_inside(p))
    }

    fn has_inside(&self, p: Point) -> bool {
        self.outer.has_inside(p) && !self.holes.iter().any(|hole| hole.contains(p))
    }

    fn rings(&self) -> impl Iterator<Item = &Ring> {
        [&self.outer].into_iter().chain(&self.holes)
    }

    fn edges(&self) -> impl Iterator<Item = (Point, Point)> + '_ {
        self.rings().flat_map(Ring::edges)
    }

    fn contains_line(&self, line: &[Point]) -> bool {
        line.iter().all(|p| self.contains(*p))
            && !edges(line).any(|(a, b)| self.edges().any(|(c, d)| sphere::do_cross(a, b, c, d)))
    }

    fn contains_polygon(&self, other: &Polygon) -> bool {
        let is_crossed = || {
            let mut others = other.edges();
            others.any(|(a, b)| self.edges().any(|(c, d)| sphere::do_cross(a, b, c, d)))
        };
        let has_hole_in = || {
            let mut holes = self.holes.iter().flat_map(Ring::points);
            holes.any(|p| other.has_inside(*p))
        };
        other.outer.points().iter().all(|p| self.contains(*p)) && !is_crossed() && !has_hole_in()
    }

    fn meets_line(&self, line: &[Point]) -> bool {
        line.iter().any(|p| self.contains(*p))
            || edges(line).any(|(a, b)| self.edges().any(|(c, d)| sphere::do_touch(a, b, c, d)))
    }

    fn meets_polygon(&self, other: &Polygon) -> bool {
        other.outer.points().iter().any(|p| self.contains(*p))
            || self.outer.points().iter().any(|p| other.contains(*p))
            || other
                .edges()
                .any(|(a, b)| self.edges().any(|(c, d)| sphere::do_touch(a, b, c, d)))
    }

    fn distance(&self, p: Point) -> f64 {
        if self.contains(p) {
            return 0.0;
        }
        distance_to_edges(self.edges(), p)
    }
}

fn edges(line: &[Point]) -> impl Iterator<Item = (Point, Point)> + '_ {
    line.iter().zip(line.iter().skip(1)).map(|(a, b)| (*a, *b))
}

fn distance_to_edges(edges: impl Iterator<Item = (Point, Point)>, p: Point) -> f64 {
    edges
        .map(|(a, b)| sphere::distance_to_edge(p, a, b))
        .fold(f64::INFINITY, f64::min)
}

fn line_has(line: &[Point], p: Point) -> bool {
    edges(line).any(|(a, b)| sphere::is_on_edge(p, a, b))
}

fn do_lines_meet(a: &[Point], b: &[Point]) -> bool {
    edges(a).any(|(c, d)| edges(b).any(|(e, f)| sphere::do_touch(c, d, e, f)))
}

impl Geometry {
    /// The geometry in a field of a document: GeoJSON, or a legacy point with longitude and latitude.
    ///
    /// # Errors
    /// 2 `BadValue` for anything else.
    pub fn of_field(value: RawBsonRef<'_>) -> Result<Geometry> {
        let geometry = parse::field_value(value)?;
        if geometry.is_on_sphere() {
            Ok(geometry)
        } else {
            Err(Error::bad_value("Longitude/latitude is out of bounds"))
        }
    }

    /// Whether it has a place on the sphere: all but legacy points out of the range of longitude and latitude.
    pub fn is_on_sphere(&self) -> bool {
        !self.points.is_empty() || !self.lines.is_empty() || !self.polygons.is_empty()
    }

    /// Whether it has an area.
    pub fn has_area(&self) -> bool {
        !self.polygons.is_empty()
    }

    /// Whether every part of another geometry is in one of the polygons.
    ///
    /// # Errors
    /// 96 `OperationFailed` if both have so many edges that comparing them takes too long.
    pub fn contains(&self, other: &Geometry) -> Result<bool> {
        self.check_size(other)?;
        let in_one = |is_in: &dyn Fn(&Polygon) -> bool| self.polygons.iter().any(is_in);
        Ok(other.is_on_sphere()
            && other.points.iter().all(|p| in_one(&|polygon| polygon.contains(*p)))
            && other
                .lines
                .iter()
                .all(|line| in_one(&|polygon| polygon.contains_line(line)))
            && other
                .polygons
                .iter()
                .all(|inner| in_one(&|polygon| polygon.contains_polygon(inner))))
    }

    /// Whether two geometries have a place in common.
    ///
    /// # Errors
    /// 96 `OperationFailed` if both have so many edges that comparing them takes too long.
    pub fn intersects(&self, other: &Geometry) -> Result<bool> {
        self.check_size(other)?;
        Ok(other.points.iter().any(|p| self.has_point(*p))
            || other.lines.iter().any(|line| self.meets_line(line))
            || other.polygons.iter().any(|polygon| self.meets_polygon(polygon)))
    }

    fn has_point(&self, p: Point) -> bool {
        self.points.iter().any(|each| sphere::is_same(*each, p))
            || self.lines.iter().any(|line| line_has(line, p))
            || self.polygons.iter().any(|polygon| polygon.contains(p))
    }

    fn meets_line(&self, line: &[Point]) -> bool {
        self.points.iter().any(|p| line_has(line, *p))
            || self.lines.iter().any(|each| do_lines_meet(each, line))
            || self.polygons.iter().any(|polygon| polygon.meets_line(line))
    }

    fn meets_polygon(&self, polygon: &Polygon) -> bool {
        self.points.iter().any(|p| polygon.contains(*p))
            || self.lines.iter().any(|line| polygon.meets_line(line))
            || self.polygons.iter().any(|each| each.meets_polygon(polygon))
    }

    /// The smallest angle between a point and any part; `None` if it has no place on the sphere.
    pub(super) fn distance(&self, p: Point) -> Option<f64> {
        let points = self.points.iter().map(|each| sphere::angle(*each, p));
        let lines = self.lines.iter().map(|line| distance_to_edges(edges(line), p));
        let polygons = self.polygons.iter().map(|polygon| polygon.distance(p));
        points.chain(lines).chain(polygons).reduce(f64::min)
    }

    /// The largest angle between a point and any corner of any part; `None` if it has no place on the sphere.
    pub(super) fn largest_distance(&self, p: Point) -> Option<f64> {
        self.corners().map(|corner| sphere::angle(corner, p)).reduce(f64::max)
    }

    fn corners(&self) -> impl Iterator<Item = Point> + '_ {
        let polygons = self.polygons.iter().flat_map(|polygon| polygon.outer.points());
        let lines = self.lines.iter().flatten();
        self.points.iter().chain(lines).chain(polygons).copied()
    }

    fn size(&self) -> usize {
        let holes = self.polygons.iter().flat_map(|polygon| &polygon.holes);
        self.corners().count() + holes.map(|hole| hole.points().len()).sum::<usize>()
    }

    fn check_size(&self, other: &Geometry) -> Result<()> {
        if self.size().saturating_mul(other.size()) > EDGE_PAIRS {
            return Err(Error::new(
                Code::OPERATION_FAILED,
                "the geometries have too many edges to be compared",
            ));
        }
        Ok(())
    }
}
