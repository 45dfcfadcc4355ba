//! Whether a ring is a simple closed curve, with its edges far enough apart that all of them agree on which side is the left one.

use bolide_index::spatial::vector::{Vector, straight};

use super::arc::Arc;

/// The smallest angle between edges, in radians: more than twice [`super::arc::NUDGE`], so that the place beside an edge from which sides are told is beside no
/// other edge. About 16 millimetres.
const APART: f64 = 2.5e-9;

/// Maximum number of pairs of edges that are compared: some milliseconds.
const MAX_PAIRS: usize = 100_000;

/// An edge in the ball around it.
struct Ball<'a> {
    arc: &'a Arc,
    /// The place of the edge in the ring.
    at: usize,
    middle: Vector,
    radius: f64,
}

/// Whether the ring of these edges does not touch itself, and encloses something. `false` also if that would take too long to find out.
pub fn is_simple(ring: &[Arc]) -> bool {
    if ring.len() < 3 {
        return false;
    }
    let mut balls: Vec<Ball<'_>> = ring.iter().enumerate().map(Ball::of).collect();
    let axis = widest_axis(&balls);
    let low = |ball: &Ball<'_>| ball.middle[axis] - ball.radius;
    let high = |ball: &Ball<'_>| ball.middle[axis] + ball.radius + APART;
    balls.sort_by(|a, b| low(a).total_cmp(&low(b)));
    let mut pairs = 0;
    for (at, ball) in balls.iter().enumerate() {
        let others = balls[at + 1..].iter().take_while(|other| low(other) <= high(ball));
        for other in others {
            pairs += 1;
            if pairs > MAX_PAIRS || (ball.is_near(other) && !are_apart(ball, other, ring.len())) {
                return false;
            }
        }
    }
    true
}

impl<'a> Ball<'a> {
    fn of((at, arc): (usize, &'a Arc)) -> Ball<'a> {
        let middle = arc.middle();
        Ball {
            arc,
            at,
            middle,
            radius: straight(middle, arc.start),
        }
    }

    fn is_near(&self, other: &Ball<'_>) -> bool {
        straight(self.middle, other.middle) <= self.radius + other.radius + APART
    }
}

/// The axis along which the edges are farthest apart.
fn widest_axis(balls: &[Ball<'_>]) -> usize {
    let width = |axis: usize| {
        let places = balls.iter().map(|ball| ball.middle[axis]);
        let (least, most) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), place| {
            (least.min(place), most.max(place))
        });
        most - least
    };
    (0..3)
        .max_by(|a, b| width(*a).total_cmp(&width(*b)))
        .unwrap_or_default()
}

/// Whether two edges of a ring of `count` edges do not touch but at their common end.
fn are_apart(a: &Ball<'_>, b: &Ball<'_>, count: usize) -> bool {
    let is_next = (a.at + 1) % count == b.at || (b.at + 1) % count == a.at;
    if is_next {
        return a.arc.distance(b.middle) > APART && b.arc.distance(a.middle) > APART;
    }
    let is_off = |arc: &Arc, other: &Arc| arc.distance(other.start) > APART && arc.distance(other.end) > APART;
    !a.arc.crosses(b.arc) && is_off(a.arc, b.arc) && is_off(b.arc, a.arc)
}

#[cfg(test)]
mod tests {
    use super::super::arc::direction;
    use super::super::geojson::Position;
    use super::*;

    fn ring(positions: &[(f64, f64)]) -> Vec<Arc> {
        let directions: Vec<Vector> = positions
            .iter()
            .map(|(x, y)| direction(Position { x: *x, y: *y }))
            .collect();
        let ends = directions.windows(2).map(|pair| Arc::between(pair[0], pair[1]));
        ends.map(|arc| arc.expect("an edge")).collect()
    }

    #[test]
    fn a_ring_that_touches_itself_is_not_simple() {
        let square = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)];
        let bow = [(0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)];
        let back = [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (1.0, 0.0), (0.0, 0.0)];
        let knot = [
            (0.0, 0.0),
            (1.0, 0.0),
            (0.5, 0.5),
            (1.0, 1.0),
            (0.0, 1.0),
            (0.5, 0.5),
            (0.0, 0.0),
        ];
        let thin = [(0.0, 0.0), (1e-3, 0.0), (1e-3, 1e-8), (0.0, 1e-8), (0.0, 0.0)];
        let spike = [
            (0.0, 0.0),
            (1.0, 0.0),
            (1.0, 1.0),
            (1.0, 2.0),
            (1.0, 1.0),
            (0.0, 1.0),
            (0.0, 0.0),
        ];
        for (name, positions, expected) in [
            ("square", &square[..], true),
            ("two triangles", &bow, false),
            ("there and back", &back, false),
            ("touches itself", &knot, false),
            ("a millimetre wide", &thin, false),
            ("has a spike", &spike, false),
        ] {
            assert_eq!(is_simple(&ring(positions)), expected, "{name}");
        }
    }

    #[test]
    fn a_large_ring_is_compared_in_time() {
        let circle = |count: usize, dents: f64| -> Vec<(f64, f64)> {
            let place = |n: usize| {
                let angle = (n % count) as f64 / count as f64 * std::f64::consts::TAU;
                let radius = 1.0 + 0.1 * (angle * dents).sin();
                (radius * angle.cos(), radius * angle.sin())
            };
            (0..=count).map(place).collect()
        };
        assert!(is_simple(&ring(&circle(4_000, 9.0))));
        // Its edges are all as long as it is wide.
        let count = 1_001;
        let across: Vec<(f64, f64)> = (0..=count).map(|n| circle(count, 0.0)[n * 500 % count]).collect();
        assert!(!is_simple(&ring(&across)));
    }
}
