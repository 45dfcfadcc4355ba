//! The places of a shape on the globe, and those within a distance of it, for covers of cells.
//!
//! A region holds at least every place that a spatial function can find in its shape: edges have some width, and holes are filled.

use std::ops::Range;

use bolide_index::spatial::vector::{Vector, add, unit};
use bolide_index::spatial::{Cell, GlobeBounds, Meeting, Region, bounds_on_globe, cell_on_globe};

use super::arc::{Arc, FLATTENING, angle, crossings, direction, is_same_place};
use super::geojson::{Geometry, Position, Ring};
use super::simple_ring::is_simple;

/// What is added to all distances, in radians, for the rounding of numbers: 6 millimetres.
const MARGIN: f64 = 1e-9;

/// The shortest way from the centre to the surface, in metres. A distance along the surface divided by it is at least the angle between its ends.
const SHORTEST_RADIUS: f64 = 6_356_752.314;

/// The longest edge of which the geodesic is known to be near the great ellipse, in radians.
const LONGEST_EDGE: f64 = 2.0;

/// The largest radius of a cap that holds the edges between the places in it.
const LARGEST_CAP: f64 = 1.4;

/// A shape on the globe, and what is near it.
pub struct GlobeRegion {
    shape: Shape,
    /// How far it reaches beyond the shape, in radians.
    reach: f64,
}

enum Shape {
    Place(Vector),
    Edges(Edges),
}

/// Lines, and the boundaries of areas.
struct Edges {
    arcs: Vec<Arc>,
    /// How far the geodesic between the ends of each arc may be off the arc, in radians.
    swerves: Vec<f64>,
    /// The arcs of each shell.
    shells: Vec<Range<usize>>,
    cap: Option<Cap>,
}

/// A cap with all edges.
struct Cap {
    middle: Vector,
    radius: f64,
    /// Whether what is outside of the cap is inside the shape.
    is_beyond: bool,
}

impl GlobeRegion {
    /// The places within some metres of a shape; `None` if they are not known well enough: rings that touch themselves, and very long edges.
    pub fn of(geometry: &Geometry, metres: f64) -> Option<GlobeRegion> {
        let reach = metres / SHORTEST_RADIUS * (1.0 + 1e-9);
        let shape = match geometry {
            Geometry::Point(position) => Shape::Place(direction(*position)),
            Geometry::Line(line) => {
                let mut edges = Edges::none();
                edges.add(line)?;
                // A line whose positions are all the same.
                match (edges.arcs.is_empty(), line.first()) {
                    (true, Some(position)) => Shape::Place(direction(*position)),
                    _ => Shape::Edges(edges.with_cap()),
                }
            }
            Geometry::Polygons(polygons) => {
                let mut edges = Edges::none();
                for polygon in polygons {
                    edges.add_polygon(polygon)?;
                }
                Shape::Edges(edges.with_cap())
            }
        };
        Some(GlobeRegion { shape, reach })
    }
}

impl Edges {
    fn none() -> Edges {
        Edges {
            arcs: Vec::new(),
            swerves: Vec::new(),
            shells: Vec::new(),
            cap: None,
        }
    }

    /// Adds the edges between positions; `None` if one is too long.
    fn add(&mut self, line: &[Position]) -> Option<Range<usize>> {
        let first = self.arcs.len();
        let directions: Vec<Vector> = line.iter().map(|position| direction(*position)).collect();
        for ends in directions.windows(2).filter(|ends| !is_same_place(ends[0], ends[1])) {
            let length = angle(ends[0], ends[1]);
            let arc = Arc::between(ends[0], ends[1]).filter(|_| length <= LONGEST_EDGE)?;
            self.arcs.push(arc);
            self.swerves.push(FLATTENING * length * length / 2.0);
        }
        Some(first..self.arcs.len())
    }

    /// Adds the edges of all rings; `None` if the sides of the shell are not certain. Holes are not left out, and their edges belong to the shape wherever they are.
    fn add_polygon(&mut self, polygon: &[Ring]) -> Option<()> {
        let (shell, holes) = polygon.split_first()?;
        let shell = self.add(shell)?;
        if !is_simple(&self.arcs[shell.clone()]) {
            return None;
        }
        self.shells.push(shell);
        holes.iter().try_for_each(|hole| self.add(hole).map(drop))
    }

    fn with_cap(mut self) -> Edges {
        let middle = unit(self.arcs.iter().fold([0.0; 3], |sum, arc| add(sum, arc.middle())));
        let ends = self.arcs.iter().flat_map(|arc| [arc.start, arc.end]);
        let radius = ends.map(|end| angle(middle, end)).fold(0.0, f64::max);
        let swerve = self.swerves.iter().copied().fold(0.0, f64::max);
        if middle != [0.0; 3] && radius < LARGEST_CAP {
            let is_beyond = self.has_inside(middle.map(|x| -x));
            self.cap = Some(Cap {
                middle,
                radius: radius + swerve,
                is_beyond,
            });
        }
        self
    }

    /// Whether a place that is near no edge lies inside a shell.
    fn has_inside(&self, place: Vector) -> bool {
        self.shells.iter().any(|shell| {
            let ring = &self.arcs[shell.clone()];
            let crossings = ring.iter().find_map(|edge| crossings(ring, edge, place));
            crossings.is_none_or(|count| count % 2 == 0)
        })
    }

    /// What a cap around a place has of the edges and what they enclose, as far as `reach` from it.
    fn meet(&self, (middle, radius): (Vector, f64), reach: f64, part: &[u32]) -> Meeting<Vec<u32>> {
        let of_inside = |is_inside| match is_inside {
            true => Meeting::Whole,
            false => Meeting::Nothing,
        };
        if let Some(cap) = &self.cap
            && angle(cap.middle, middle) > cap.radius + radius + reach + MARGIN
        {
            return of_inside(cap.is_beyond);
        }
        let (mut near, mut is_whole) = (Vec::new(), false);
        for at in part {
            let (arc, swerve) = (&self.arcs[*at as usize], self.swerves[*at as usize]);
            let distance = arc.distance(middle);
            if distance <= radius + reach + swerve + MARGIN {
                near.push(*at);
                is_whole |= distance + radius + swerve <= reach;
            }
        }
        match () {
            () if is_whole => Meeting::Whole,
            () if near.is_empty() => of_inside(self.has_inside(middle)),
            () => Meeting::Part(near),
        }
    }
}

impl Region for GlobeRegion {
    /// The edges that are near, by their numbers.
    type Part = Vec<u32>;

    fn all(&self) -> Vec<u32> {
        match &self.shape {
            Shape::Place(_) => Vec::new(),
            Shape::Edges(edges) => (0..edges.arcs.len() as u32).collect(),
        }
    }

    fn meet(&self, cell: Cell, part: &Vec<u32>) -> Meeting<Vec<u32>> {
        let bounds = bounds_on_globe(cell);
        let (middle, radius) = (bounds.middle, 2.0 * libm::asin(bounds.farthest / 2.0));
        match &self.shape {
            Shape::Edges(edges) => edges.meet((middle, radius), self.reach, part),
            Shape::Place(place) => match angle(*place, middle) {
                distance if distance > radius + self.reach + MARGIN => Meeting::Nothing,
                distance if distance + radius <= self.reach => Meeting::Whole,
                _ if !holds(cell, *place) && to_sides(&bounds, *place) > self.reach + MARGIN => Meeting::Nothing,
                _ => Meeting::Part(Vec::new()),
            },
        }
    }
}

fn holds(cell: Cell, place: Vector) -> bool {
    let (first, last) = cell.ids();
    (first..=last).contains(&cell_on_globe(place).id())
}

/// A lower bound of the angle between a place and the nearest side of a cell.
fn to_sides(bounds: &GlobeBounds, place: Vector) -> f64 {
    let sides = (0..4).map(|at| Arc::between(bounds.corners[at], bounds.corners[(at + 1) % 4]));
    // A side without an arc is too small to matter.
    let distances = sides.map(|side| side.map_or(0.0, |side| side.distance(place)));
    distances.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests;
