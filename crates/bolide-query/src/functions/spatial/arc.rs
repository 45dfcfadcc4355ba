//! Arcs of great ellipses, as arcs of great circles of the directions from the centre.
//!
//! Trigonometric functions are those of `libm`, which have the same results on every processor: the cells of a shape follow from them.

use bolide_index::spatial::vector::{Vector, add, cross, dot, length, straight, subtract, unit};

use super::geojson::Position;

/// Sines below this count as zero: about 6 micrometres on the ground.
const ON_EDGE: f64 = 1e-12;

/// Distance to the left of an edge, in radians, at which a point is certainly inside: about 6 millimetres.
pub const NUDGE: f64 = 1e-9;

/// Geocentric latitude: tan φ' = (1 − f)² tan φ.
const LATITUDES: f64 = (1.0 - FLATTENING) * (1.0 - FLATTENING);

/// Flattening of the ellipsoid.
pub const FLATTENING: f64 = 1.0 / 298.257_223_563;

/// The direction from the centre to a point on the surface.
pub fn direction(position: Position) -> Vector {
    let (sin, cos) = libm::sincos(position.y.to_radians());
    let (east, ahead) = libm::sincos(position.x.to_radians());
    unit([cos * ahead, cos * east, LATITUDES * sin])
}

/// The point on the surface in a direction.
pub fn position(direction: Vector) -> Position {
    let [x, y, z] = direction;
    Position {
        x: libm::atan2(y, x).to_degrees(),
        y: libm::atan2(z / LATITUDES, (x * x + y * y).sqrt()).to_degrees(),
    }
}

/// The middle between two directions; `None` if they are opposite.
pub fn middle_of(a: Vector, b: Vector) -> Option<Vector> {
    let middle = unit(add(a, b));
    (middle != [0.0; 3]).then_some(middle)
}

/// The angle between two directions, in radians.
pub fn angle(a: Vector, b: Vector) -> f64 {
    libm::atan2(length(cross(a, b)), dot(a, b))
}

pub fn is_same_place(a: Vector, b: Vector) -> bool {
    let apart = subtract(a, b);
    dot(apart, apart) < ON_EDGE * ON_EDGE
}

/// An edge as an arc of the great ellipse through its ends.
#[derive(Debug, Clone)]
pub struct Arc {
    pub start: Vector,
    pub end: Vector,
    /// The unit normal of the arc's plane, to its left.
    left: Vector,
}

impl Arc {
    /// `None` if the ends define no plane, because they are equal or exactly opposite.
    ///
    /// The plane is computed from the sum and the difference of the ends: the product of the ends loses precision if they are near each other.
    pub fn between(start: Vector, end: Vector) -> Option<Arc> {
        let left = unit(cross(add(start, end), subtract(end, start)));
        let has_plane = !is_same_place(start, end) && dot(left, left) > 0.0;
        has_plane.then_some(Arc { start, end, left })
    }

    pub fn middle(&self) -> Vector {
        unit(add(self.start, self.end))
    }

    /// Whether a point lies on the arc, ends excluded.
    pub fn holds(&self, place: Vector) -> bool {
        dot(self.left, place).abs() < ON_EDGE
            && dot(cross(self.start, place), self.left) >= 0.0
            && dot(cross(place, self.end), self.left) >= 0.0
    }

    /// Whether the arc passes through an end of another one, or nearly so: then the number of crossings is not reliable.
    pub fn grazes(&self, other: &Arc) -> bool {
        dot(self.left, other.start).abs() < ON_EDGE || dot(self.left, other.end).abs() < ON_EDGE
    }

    /// Whether the arcs cross, ends excluded.
    pub fn crosses(&self, other: &Arc) -> bool {
        let has_apart = |arc: &Arc, other: &Arc| dot(arc.left, other.start) * dot(arc.left, other.end) < 0.0;
        if !has_apart(self, other) || !has_apart(other, self) {
            return false;
        }
        // The planes meet in two opposite points; both arcs must contain the same one.
        let meeting = cross(self.left, other.left);
        let on_own = dot(meeting, add(self.start, self.end));
        let on_other = dot(meeting, add(other.start, other.end));
        on_own * on_other > 0.0
    }

    /// A lower bound of the angle between a direction and the arc, in radians: the angle itself, but for its last digits, unless the arc is small for its
    /// distance, so that its plane is not known precisely enough.
    pub fn distance(&self, place: Vector) -> f64 {
        let to_ends = angle(self.start, place).min(angle(self.end, place));
        let along = straight(self.end, self.start);
        if to_ends > 1_000.0 * along {
            return to_ends - along;
        }
        let is_beside =
            dot(cross(self.left, self.start), place) >= 0.0 && dot(cross(self.left, self.end), place) <= 0.0;
        match is_beside {
            true => libm::atan2(dot(self.left, place).abs(), length(cross(self.left, place))),
            false => to_ends,
        }
    }
}

/// How often the path to `place` from a point just left of an edge crosses the ring; `None` if it touches an end.
pub fn crossings(ring: &[Arc], edge: &Arc, place: Vector) -> Option<usize> {
    let beside = unit(add(edge.middle(), edge.left.map(|x| x * NUDGE)));
    let way = Arc::between(beside, place)?;
    if ring.iter().any(|other| way.grazes(other)) {
        return None;
    }
    Some(ring.iter().filter(|other| way.crosses(other)).count())
}
