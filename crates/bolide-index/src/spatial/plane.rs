//! Cells of a plane: the quadtree over a rectangle. Places outside of it belong to the cell at its edge that is nearest to them.

use super::cell::{Cell, SIDE};

/// The rectangle that cells divide.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    from: [f64; 2],
    to: [f64; 2],
}

/// A rectangle by its corners with the lowest and the highest coordinates, which may be infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rectangle {
    /// The lower left corner.
    pub from: [f64; 2],
    /// The upper right corner.
    pub to: [f64; 2],
}

/// Coordinates must be smaller, so that products of them are finite.
pub const LARGEST_COORDINATE: f64 = 1e100;

impl Rectangle {
    /// With all sides moved outward.
    #[must_use]
    pub fn grown(self, by: f64) -> Rectangle {
        Rectangle {
            from: self.from.map(|edge| edge - by),
            to: self.to.map(|edge| edge + by),
        }
    }

    /// The common part; `None` if there is none.
    pub fn common(self, other: Rectangle) -> Option<Rectangle> {
        let common = Rectangle {
            from: [0, 1].map(|axis| self.from[axis].max(other.from[axis])),
            to: [0, 1].map(|axis| self.to[axis].min(other.to[axis])),
        };
        (0..2)
            .all(|axis| common.from[axis] <= common.to[axis])
            .then_some(common)
    }

    /// The middle, if the corners are finite.
    pub fn middle(&self) -> [f64; 2] {
        [0, 1].map(|axis| self.from[axis] + (self.to[axis] - self.from[axis]) / 2.0)
    }
}

impl Extent {
    /// The extent between two corners; `None` if it is empty, or if numbers of 64 bits cannot divide it.
    pub fn of(from: [f64; 2], to: [f64; 2]) -> Option<Extent> {
        let is_divisible = |axis: usize| {
            let (from, to) = (from[axis], to[axis]);
            from.abs() < LARGEST_COORDINATE
                && to.abs() < LARGEST_COORDINATE
                && to - from > 1e-12 * (from.abs() + to.abs())
        };
        (is_divisible(0) && is_divisible(1)).then_some(Extent { from, to })
    }

    /// The lower left and the upper right corner.
    pub fn corners(&self) -> ([f64; 2], [f64; 2]) {
        (self.from, self.to)
    }

    /// The largest absolute coordinate.
    pub fn largest(&self) -> f64 {
        let corners = self.from.iter().chain(&self.to);
        corners.fold(0.0, |largest: f64, edge| largest.max(edge.abs()))
    }

    /// Returns the leaf cell of a place.
    pub fn cell(&self, place: [f64; 2]) -> Cell {
        let leaf = |axis: usize| {
            let along = (place[axis] - self.from[axis]) / (self.to[axis] - self.from[axis]);
            // Conversions are saturating.
            ((along * f64::from(SIDE)) as u32).min(SIDE - 1)
        };
        Cell::leaf(0, leaf(0), leaf(1))
    }

    /// Returns the places of a cell, with an error of the precision of the largest coordinate.
    pub fn rectangle(&self, cell: Cell) -> Rectangle {
        let square = cell.square();
        let edge = |axis: usize, leaf: u32| {
            let along = f64::from(leaf) / f64::from(SIDE);
            self.from[axis] + along * (self.to[axis] - self.from[axis])
        };
        let side = |axis: usize, first: u32| {
            let end = first + square.side;
            let from = if first == 0 {
                f64::NEG_INFINITY
            } else {
                edge(axis, first)
            };
            let to = if end == SIDE { f64::INFINITY } else { edge(axis, end) };
            (from, to)
        };
        let (x, y) = (side(0, square.x), side(1, square.y));
        Rectangle {
            from: [x.0, y.0],
            to: [x.1, y.1],
        }
    }
}

/// Extents with the same coordinates to the bit have the same cells.
impl PartialEq for Extent {
    fn eq(&self, other: &Extent) -> bool {
        let bits = |extent: &Extent| (extent.from.map(f64::to_bits), extent.to.map(f64::to_bits));
        bits(self) == bits(other)
    }
}

impl Eq for Extent {}
