//! The places of a shape on a plane, and those within a distance of it, for covers of cells.
//!
//! A region holds at least every place that a spatial function can find in its shape: edges have some width, and holes are filled.

use std::ops::Range;

use bolide_index::spatial::{Cell, Extent, LARGEST_COORDINATE, Meeting, Rectangle, Region};

use super::geojson::{Geometry, Position};
use super::plane::is_left_of;

/// The rounding of numbers, as a part of the largest one.
const ROUNDING: f64 = 1e-12;

/// A shape on a plane, and what is near it.
pub struct PlaneRegion {
    extent: Extent,
    /// If the shape is a point, this.
    place: Option<Position>,
    edges: Vec<(Position, Position)>,
    /// The edges of each shell.
    shells: Vec<Range<usize>>,
    /// A rectangle around the region.
    bounds: Rectangle,
    /// How far it reaches beyond the shape.
    reach: f64,
    /// What is added for the rounding of numbers.
    margin: f64,
}

impl PlaneRegion {
    /// The places within a distance of a shape; `None` if numbers are too large.
    pub fn of(geometry: &Geometry, reach: f64, extent: Extent) -> Option<PlaneRegion> {
        let positions = geometry.positions();
        let sizes = positions.iter().map(|position| position.x.abs().max(position.y.abs()));
        let largest = sizes.fold(extent.largest(), f64::max) + reach;
        if largest >= LARGEST_COORDINATE {
            return None;
        }
        let margin = ROUNDING * largest;
        let mut region = PlaneRegion {
            extent,
            place: None,
            edges: Vec::new(),
            shells: Vec::new(),
            bounds: around(&positions).grown(reach + margin),
            reach,
            margin,
        };
        match geometry {
            Geometry::Point(position) => region.place = Some(*position),
            Geometry::Line(line) => drop(region.add(line)),
            Geometry::Polygons(polygons) => {
                for polygon in polygons {
                    for (at, ring) in polygon.iter().enumerate() {
                        let edges = region.add(ring);
                        if at == 0 {
                            region.shells.push(edges);
                        }
                    }
                }
            }
        }
        Some(region)
    }

    fn add(&mut self, line: &[Position]) -> Range<usize> {
        let first = self.edges.len();
        self.edges.extend(line.windows(2).map(|pair| (pair[0], pair[1])));
        first..self.edges.len()
    }

    /// Whether a place that is near no edge lies inside a shell.
    fn has_inside(&self, place: Position) -> bool {
        self.shells.iter().any(|shell| {
            let edges = self.edges[shell.clone()].iter();
            edges.filter(|edge| is_left_of(place, **edge)).count() % 2 == 1
        })
    }
}

/// The rectangle around positions.
fn around(positions: &[Position]) -> Rectangle {
    let mut bounds = Rectangle {
        from: [f64::INFINITY; 2],
        to: [f64::NEG_INFINITY; 2],
    };
    for position in positions {
        for (axis, at) in [position.x, position.y].into_iter().enumerate() {
            bounds.from[axis] = bounds.from[axis].min(at);
            bounds.to[axis] = bounds.to[axis].max(at);
        }
    }
    bounds
}

/// Whether an edge has a place in a rectangle with finite corners. The answer may be yes if it only comes near.
fn meets(rectangle: &Rectangle, (a, b): (Position, Position)) -> bool {
    let Rectangle { from, to } = rectangle;
    let is_beside = |axis: usize, a: f64, b: f64| a.max(b) < from[axis] || a.min(b) > to[axis];
    if is_beside(0, a.x, b.x) || is_beside(1, a.y, b.y) {
        return false;
    }
    // The line through the ends passes between corners.
    let [x, y] = rectangle.middle();
    let (dx, dy) = (b.x - a.x, b.y - a.y);
    let half = |axis: usize| (to[axis] - from[axis]) / 2.0;
    (dx * (y - a.y) - dy * (x - a.x)).abs() <= half(0) * dy.abs() + half(1) * dx.abs()
}

impl Region for PlaneRegion {
    /// The edges that are near, by their numbers.
    type Part = Vec<u32>;

    fn all(&self) -> Vec<u32> {
        (0..self.edges.len() as u32).collect()
    }

    fn meet(&self, cell: Cell, part: &Vec<u32>) -> Meeting<Vec<u32>> {
        // Nothing of the region is outside of its bounds.
        let Some(inside) = self.extent.rectangle(cell).grown(self.margin).common(self.bounds) else {
            return Meeting::Nothing;
        };
        if let Some(Position { x, y }) = self.place {
            let place = [x, y];
            let nearest = [0, 1].map(|axis| place[axis].clamp(inside.from[axis], inside.to[axis]) - place[axis]);
            let ends = |axis: usize| (place[axis] - inside.from[axis]).max(inside.to[axis] - place[axis]);
            let length = |x: f64, y: f64| (x * x + y * y).sqrt();
            return match () {
                () if length(nearest[0], nearest[1]) > self.reach + self.margin => Meeting::Nothing,
                () if length(ends(0), ends(1)) <= self.reach => Meeting::Whole,
                () => Meeting::Part(Vec::new()),
            };
        }
        let reached = inside.grown(self.reach + self.margin);
        let is_near = |at: &u32| meets(&reached, self.edges[*at as usize]);
        let near: Vec<u32> = part.iter().copied().filter(is_near).collect();
        if !near.is_empty() {
            return Meeting::Part(near);
        }
        let [x, y] = inside.middle();
        match self.has_inside(Position { x, y }) {
            true => Meeting::Whole,
            false => Meeting::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
