//! The WGS-84 ellipsoid.
//!
//! Distances and areas follow geodesics (GeographicLib). Sides and crossings are computed in three dimensions: an edge lies in the plane through its
//! ends and the centre, so the signs of determinants decide. The interior is to the left of a shell; a clockwise shell encloses the rest of the
//! world.

use std::sync::LazyLock;

use bolide_index::spatial::vector::Vector;
use geographiclib_rs::{DirectGeodesic, Geodesic, InverseGeodesic, PolygonArea, Winding};

use super::arc::{Arc, crossings, direction, is_same_place, middle_of, position};
use super::geojson::{Position, Ring};
use super::relations::Surface;
use crate::fuel::Fuel;

static WGS84: LazyLock<Geodesic> = LazyLock::new(Geodesic::wgs84);

/// Area of the whole ellipsoid, in square metres.
static WORLD_AREA: LazyLock<f64> = LazyLock::new(|| WGS84.area());

/// Number of halvings of an edge to find its nearest point; the error is less than a nanometre.
const HALVINGS: usize = 56;

/// Units for a geodesic between two points, for a direction, and for two arcs that may cross.
const GEODESIC: u64 = 2_000;
const DIRECTION: u64 = 80;
const CROSSING: u64 = 40;
/// Units for comparing two edges.
const COMPARISON: u64 = 2;

/// The ellipsoid. Without fuel every result is zero or false.
pub struct Ellipsoid<'f> {
    fuel: &'f Fuel,
}

impl<'f> Ellipsoid<'f> {
    pub fn new(fuel: &'f Fuel) -> Ellipsoid<'f> {
        Ellipsoid { fuel }
    }

    /// Whether a ring runs back along each of its edges, or has none: then it encloses nothing.
    fn has_no_sides(&self, ring: &Ring) -> bool {
        let mut edges = ring.windows(2).filter(|edge| edge[0] != edge[1]);
        edges.all(|edge| {
            self.fuel.spend_each(ring.len(), COMPARISON) && ring.windows(2).any(|back| [back[1], back[0]] == *edge)
        })
    }

    /// As [`crossings`]; zero without fuel.
    fn crossings(&self, ring: &[Arc], edge: &Arc, place: Vector) -> Option<usize> {
        match self.fuel.spend_each(ring.len(), CROSSING) {
            true => crossings(ring, edge, place),
            false => Some(0),
        }
    }
}

impl Surface for Ellipsoid<'_> {
    fn distance(&self, a: Position, b: Position) -> f64 {
        if a == b || !self.fuel.spend(GEODESIC) {
            return 0.0;
        }
        WGS84.inverse(a.y, a.x, b.y, b.x)
    }

    fn distance_to_edge(&self, point: Position, (a, b): (Position, Position)) -> f64 {
        if !self.fuel.spend(5 * GEODESIC) {
            return 0.0;
        }
        let (length, azimuth, _, _): (f64, f64, f64, f64) = WGS84.inverse(a.y, a.x, b.y, b.x);
        // The distance to the point at `along`, and whether the nearest point lies further on.
        let look = |along: f64| {
            let (y, x, forward): (f64, f64, f64) = WGS84.direct(a.y, a.x, azimuth, along);
            let (distance, towards, _, _): (f64, f64, f64, f64) = WGS84.inverse(y, x, point.y, point.x);
            (distance, (towards - forward).to_radians().cos() > 0.0)
        };
        let (mut low, mut high) = (0.0, length);
        let (at_start, ahead_of_start) = look(low);
        let (at_end, ahead_of_end) = look(high);
        if !ahead_of_start || ahead_of_end {
            return at_start.min(at_end);
        }
        let mut best = at_start.min(at_end);
        if !self.fuel.spend(2 * HALVINGS as u64 * GEODESIC) {
            return 0.0;
        }
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            let (distance, ahead) = look(middle);
            best = best.min(distance);
            if ahead { low = middle } else { high = middle }
        }
        best
    }

    fn is_on_edge(&self, point: Position, (a, b): (Position, Position)) -> bool {
        if point == a || point == b {
            return true;
        }
        if !self.fuel.spend(3 * DIRECTION) {
            return false;
        }
        let (p, a, b) = (direction(point), direction(a), direction(b));
        // The same point may have several coordinates: any longitude at a pole, and longitudes 180 and -180.
        is_same_place(p, a) || is_same_place(p, b) || Arc::between(a, b).is_some_and(|arc| arc.holds(p))
    }

    fn crosses(&self, (a, b): (Position, Position), (c, d): (Position, Position)) -> bool {
        if !self.fuel.spend(4 * DIRECTION + 2 * CROSSING) {
            return false;
        }
        let arc = |a, b| Arc::between(direction(a), direction(b));
        let (Some(one), Some(other)) = (arc(a, b), arc(c, d)) else {
            return false;
        };
        !one.grazes(&other) && !other.grazes(&one) && one.crosses(&other)
    }

    fn encloses(&self, ring: &Ring, is_hole: bool, point: Position) -> bool {
        if !self.fuel.spend_each(ring.len(), DIRECTION) || self.has_no_sides(ring) {
            return false;
        }
        let mut directions: Vec<Vector> = ring.iter().map(|position| direction(*position)).collect();
        if is_hole && self.ring_area(ring, false) > *WORLD_AREA / 2.0 {
            // Reversed so that the smaller side is on the left.
            directions.reverse();
        }
        let place = direction(point);
        let arcs: Vec<Arc> = directions
            .windows(2)
            .filter_map(|pair| Arc::between(pair[0], pair[1]))
            .collect();
        let crossings = arcs.iter().find_map(|edge| self.crossings(&arcs, edge, place));
        crossings.is_some_and(|count| count % 2 == 0)
    }

    fn ring_area(&self, ring: &Ring, is_hole: bool) -> f64 {
        if !self.fuel.spend_each(ring.len(), GEODESIC) {
            return 0.0;
        }
        let mut polygon = PolygonArea::new(&WGS84, Winding::CounterClockwise);
        // The ring closes without its last position.
        ring[..ring.len() - 1]
            .iter()
            .for_each(|position| polygon.add_point(position.y, position.x));
        let (_, area, _) = polygon.compute(false);
        if is_hole { area.min(*WORLD_AREA - area) } else { area }
    }

    fn middle(&self, (a, b): (Position, Position)) -> Position {
        // Exactly opposite ends have no unique middle.
        middle_of(direction(a), direction(b)).map_or(a, position)
    }
}
