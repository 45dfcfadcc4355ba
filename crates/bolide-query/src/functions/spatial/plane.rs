//! The flat plane: coordinate units, straight edges.

use super::geojson::{Position, Ring};
use super::relations::Surface;
use crate::fuel::Fuel;

/// The plane. Without fuel every result is zero or false.
pub struct Plane<'f> {
    fuel: &'f Fuel,
}

/// Units for a point and an edge, or two.
const EDGE: u64 = 20;

/// Rounding error of a point on an edge, as a fraction of its largest coordinate.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

impl<'f> Plane<'f> {
    pub fn new(fuel: &'f Fuel) -> Plane<'f> {
        Plane { fuel }
    }
}

/// On which side of an edge a point is: positive on its left, 0 on its line, within the precision of the coordinates.
fn side((a, b): (Position, Position), point: Position) -> f64 {
    let turn = (b.x - a.x) * (point.y - a.y) - (b.y - a.y) * (point.x - a.x);
    let largest = [a, b, point]
        .map(|p| p.x.abs().max(p.y.abs()))
        .into_iter()
        .fold(0.0, f64::max);
    let uncertain = ROUNDING * largest * ((b.x - a.x).abs() + (b.y - a.y).abs());
    if turn.is_finite() && turn.abs() <= uncertain {
        0.0
    } else {
        turn
    }
}

/// Whether a ray from a point to the right crosses an edge. It crosses the edges of a ring an odd number of times if the point lies inside.
pub fn is_left_of(point: Position, (a, b): (Position, Position)) -> bool {
    (a.y > point.y) != (b.y > point.y) && point.x < (b.x - a.x) * (point.y - a.y) / (b.y - a.y) + a.x
}

impl Surface for Plane<'_> {
    fn distance(&self, a: Position, b: Position) -> f64 {
        (a.x - b.x).hypot(a.y - b.y)
    }

    fn distance_to_edge(&self, point: Position, (a, b): (Position, Position)) -> f64 {
        if !self.fuel.spend(EDGE) {
            return 0.0;
        }
        let (dx, dy) = (b.x - a.x, b.y - a.y);
        let length = dx * dx + dy * dy;
        let along = if length == 0.0 {
            0.0
        } else {
            (((point.x - a.x) * dx + (point.y - a.y) * dy) / length).clamp(0.0, 1.0)
        };
        self.distance(
            point,
            Position {
                x: a.x + along * dx,
                y: a.y + along * dy,
            },
        )
    }

    fn is_on_edge(&self, point: Position, (a, b): (Position, Position)) -> bool {
        if !self.fuel.spend(EDGE) {
            return false;
        }
        let between = |v: f64, p: f64, q: f64| v >= p.min(q) && v <= p.max(q);
        side((a, b), point) == 0.0 && between(point.x, a.x, b.x) && between(point.y, a.y, b.y)
    }

    fn crosses(&self, one: (Position, Position), other: (Position, Position)) -> bool {
        let apart = |edge, (a, b)| side(edge, a) * side(edge, b) < 0.0;
        self.fuel.spend(EDGE) && apart(one, other) && apart(other, one)
    }

    fn encloses(&self, ring: &Ring, _is_hole: bool, point: Position) -> bool {
        if !self.fuel.spend_each(ring.len(), EDGE) {
            return false;
        }
        let edges = ring.windows(2).map(|pair| (pair[0], pair[1]));
        edges.filter(|edge| is_left_of(point, *edge)).count() % 2 == 1
    }

    fn ring_area(&self, ring: &Ring, _is_hole: bool) -> f64 {
        ring.windows(2)
            .map(|pair| pair[0].x * pair[1].y - pair[1].x * pair[0].y)
            .sum::<f64>()
            .abs()
            / 2.0
    }

    fn middle(&self, (a, b): (Position, Position)) -> Position {
        Position {
            x: (a.x + b.x) / 2.0,
            y: (a.y + b.y) / 2.0,
        }
    }
}
