//! The flat plane: coordinate units, straight edges.

use super::geojson::{Position, Ring};
use super::relations::Surface;
use crate::fuel::Fuel;

/// The plane. Without fuel every answer is zero or no.
pub struct Plane<'f> {
    fuel: &'f Fuel,
}

/// Units for a point and an edge, or two.
const EDGE: u64 = 20;

impl<'f> Plane<'f> {
    pub fn new(fuel: &'f Fuel) -> Plane<'f> {
        Plane { fuel }
    }
}

/// Twice the signed area of a triangle: positive when it turns left.
fn turn(a: Position, b: Position, c: Position) -> f64 {
    (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
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
        turn(a, b, point) == 0.0 && between(point.x, a.x, b.x) && between(point.y, a.y, b.y)
    }

    fn crosses(&self, (a, b): (Position, Position), (c, d): (Position, Position)) -> bool {
        self.fuel.spend(EDGE) && turn(a, b, c) * turn(a, b, d) < 0.0 && turn(c, d, a) * turn(c, d, b) < 0.0
    }

    fn encloses(&self, ring: &Ring, _is_hole: bool, point: Position) -> bool {
        if !self.fuel.spend_each(ring.len(), EDGE) {
            return false;
        }
        let crossing = |pair: &&[Position]| {
            let (a, b) = (pair[0], pair[1]);
            (a.y > point.y) != (b.y > point.y) && point.x < (b.x - a.x) * (point.y - a.y) / (b.y - a.y) + a.x
        };
        ring.windows(2).filter(crossing).count() % 2 == 1
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
