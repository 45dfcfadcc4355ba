//! Points, edges and rings on the unit sphere. Angles are radians.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

/// The Earth's radius as MongoDB has it.
pub const EARTH_RADIUS_METERS: f64 = 6_378_100.0;

/// Points closer than this are one: six millimetres.
const TOLERANCE: f64 = 1e-9;

/// A point as a vector of length 1.
pub type Point = [f64; 3];

/// The point at a longitude and latitude in degrees.
pub fn point(longitude: f64, latitude: f64) -> Point {
    let (lng, lat) = (longitude.to_radians(), latitude.to_radians());
    [lat.cos() * lng.cos(), lat.cos() * lng.sin(), lat.sin()]
}

fn dot(a: Point, b: Point) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Point, b: Point) -> Point {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

fn length(a: Point) -> f64 {
    dot(a, a).sqrt()
}

/// The angle between two points; exact also for near and for opposite ones.
pub fn angle(a: Point, b: Point) -> f64 {
    length(cross(a, b)).atan2(dot(a, b))
}

/// Whether two points are one.
pub fn is_same(a: Point, b: Point) -> bool {
    angle(a, b) <= TOLERANCE
}

/// The smallest angle between a point and an edge.
pub fn distance_to_edge(p: Point, a: Point, b: Point) -> f64 {
    let normal = cross(a, b);
    let norm = length(normal);
    let to_ends = angle(p, a).min(angle(p, b));
    if norm <= f64::EPSILON {
        return to_ends;
    }
    // The foot of p on the great circle lies between the ends if p is on the inner side of the planes through each end.
    let is_between = dot(cross(normal, a), p) >= 0.0 && dot(cross(b, normal), p) >= 0.0;
    if is_between {
        (dot(p, normal) / norm).clamp(-1.0, 1.0).asin().abs()
    } else {
        to_ends
    }
}

/// Whether a point is on an edge.
pub fn is_on_edge(p: Point, a: Point, b: Point) -> bool {
    distance_to_edge(p, a, b) <= TOLERANCE
}

/// Whether two edges cross at a point inside both.
pub fn do_cross(a: Point, b: Point, c: Point, d: Point) -> bool {
    let ab = cross(a, b);
    let acb = -dot(ab, c);
    let bda = dot(ab, d);
    if acb * bda <= 0.0 {
        return false;
    }
    let cd = cross(c, d);
    let cbd = -dot(cd, b);
    let dac = dot(cd, a);
    // The ends of each edge are on different sides of the other, and the edges are not on opposite sides of the sphere. An end within the tolerance
    // is on the other edge, which is no crossing.
    let is_apart = |volume: f64, edge: Point| volume.abs() > TOLERANCE * length(edge);
    acb * cbd > 0.0
        && acb * dac > 0.0
        && is_apart(acb, ab)
        && is_apart(bda, ab)
        && is_apart(cbd, cd)
        && is_apart(dac, cd)
}

/// Whether two edges have a point in common.
pub fn do_touch(a: Point, b: Point, c: Point, d: Point) -> bool {
    do_cross(a, b, c, d) || is_on_edge(a, c, d) || is_on_edge(b, c, d) || is_on_edge(c, a, b) || is_on_edge(d, a, b)
}

/// A closed ring of at least three points, whose last edge leads back to the first.
#[derive(Debug, Clone)]
pub struct Ring {
    points: Vec<Point>,
    /// The inside is the larger area: what is inside the points as they stand is outside.
    is_inverted: bool,
    /// A circle around all points and, if it is smaller than a hemisphere, around the inside.
    center: Point,
    radius: f64,
}

impl Ring {
    /// The ring whose inside is the smaller area, in whichever direction the points run.
    pub fn smaller(points: Vec<Point>) -> Ring {
        Ring::new(points, false)
    }

    /// The ring whose inside is on the left of its edges.
    pub fn left(points: Vec<Point>) -> Ring {
        Ring::new(points, true)
    }

    fn new(mut points: Vec<Point>, is_left: bool) -> Ring {
        let runs_clockwise = signed_area(&points) > TAU;
        if runs_clockwise {
            points.reverse();
        }
        let (center, radius) = bounds(&points);
        Ring {
            points,
            is_inverted: runs_clockwise && is_left,
            center,
            radius,
        }
    }

    /// Its points.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Its edges.
    pub fn edges(&self) -> impl Iterator<Item = (Point, Point)> + '_ {
        let next = self.points.iter().cycle().skip(1);
        self.points.iter().zip(next).map(|(a, b)| (*a, *b))
    }

    /// Whether a point is on an edge.
    pub fn has_on_edge(&self, p: Point) -> bool {
        !self.is_beyond(p) && self.edges().any(|(a, b)| is_on_edge(p, a, b))
    }

    /// Whether a point is inside, not on an edge.
    pub fn has_inside(&self, p: Point) -> bool {
        if self.is_beyond(p) {
            return self.is_inverted;
        }
        !self.has_on_edge(p) && (self.winding(p) > PI) != self.is_inverted
    }

    /// Whether a point is inside or on an edge.
    pub fn contains(&self, p: Point) -> bool {
        self.has_inside(p) || self.has_on_edge(p)
    }

    fn is_beyond(&self, p: Point) -> bool {
        self.radius < FRAC_PI_2 && angle(p, self.center) > self.radius + TOLERANCE
    }

    /// The angle that the ring turns around a point: a full turn if it is inside.
    fn winding(&self, p: Point) -> f64 {
        self.edges()
            .map(|(a, b)| dot(p, cross(a, b)).atan2(dot(cross(p, a), cross(p, b))))
            .sum()
    }
}

/// The area on the left of a ring, from 0 to 4π.
fn signed_area(points: &[Point]) -> f64 {
    let Some((first, rest)) = points.split_first() else {
        return 0.0;
    };
    let triangles = rest.iter().zip(rest.iter().skip(1));
    let area: f64 = triangles.map(|(a, b)| triangle_area(*first, *a, *b)).sum();
    area.rem_euclid(2.0 * TAU)
}

/// The area of a triangle, negative if it runs clockwise.
fn triangle_area(a: Point, b: Point, c: Point) -> f64 {
    let volume = dot(a, cross(b, c));
    2.0 * volume.atan2(1.0 + dot(a, b) + dot(b, c) + dot(c, a))
}

fn bounds(points: &[Point]) -> (Point, f64) {
    let mut sum = [0.0; 3];
    for point in points {
        for (total, part) in sum.iter_mut().zip(point) {
            *total += part;
        }
    }
    let norm = length(sum);
    if norm <= f64::EPSILON {
        return ([1.0, 0.0, 0.0], PI);
    }
    let center = sum.map(|part| part / norm);
    let radius = points.iter().map(|point| angle(*point, center)).fold(0.0, f64::max);
    (center, radius)
}

#[cfg(test)]
mod tests;
