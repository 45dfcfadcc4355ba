//! The keys of an item in a spatial index: the cells of the shape at a path.
//!
//! ```text
//!   key  id of a cell(8)      a cell that has a part of the shape
//!        0(8)                 a shape that may be anywhere
//! ```
//!
//! A point has the key of its leaf cell. Other shapes have up to eight cells that hold all of it, of whatever sizes they need. A value that is no shape, or that
//! spatial functions do not accept, has no key.
//!
//! Cells are `bolide_index::spatial`'s. On the ellipsoid a place belongs to the cell of its direction from the centre, in which edges are arcs of great
//! circles, as for the functions.

use std::fmt;

use super::interval::Interval;
use super::path::IndexPath;
use crate::functions::{CellSurface, CoveredShape, ShapeCells};
use crate::value::Item;

/// Maximum number of cells of a stored shape.
const CELLS_OF_ITEM: usize = 8;

/// Length of a key, in bytes.
const KEY_BYTES: usize = 8;

/// The id of shapes that may be anywhere. No cell has it.
const ANYWHERE: u64 = 0;

/// What a spatial index is of: the shapes at a path, on a surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpatialIndex {
    /// Where the shape is. Not of elements.
    pub path: IndexPath,
    /// How the container's spatial functions measure.
    pub surface: CellSurface,
}

impl SpatialIndex {
    /// The keys of an item, sorted.
    pub fn keys(&self, item: &Item<'_>) -> Vec<[u8; KEY_BYTES]> {
        let shape = self.path.value(item, |value| CoveredShape::read(value, self.surface));
        let cells = shape.map(|shape| shape.own_cells(self.surface, CELLS_OF_ITEM));
        match cells {
            None => Vec::new(),
            Some(ShapeCells::Anywhere) => vec![ANYWHERE.to_be_bytes()],
            Some(ShapeCells::Cells(cells)) => cells.into_iter().map(|cell| cell.id().to_be_bytes()).collect(),
        }
    }
}

/// The keys whose ids are in one of some intervals, which are sorted and have both ends, and those of shapes that may be anywhere.
pub(super) fn intervals_of(ids: &[(u64, u64)]) -> Vec<Interval> {
    let key = |id: u64| id.to_be_bytes().to_vec();
    let intervals = [(ANYWHERE, ANYWHERE)].into_iter().chain(ids.iter().copied());
    let intervals = intervals.map(|(first, last)| Interval {
        from: key(first),
        to: last.checked_add(1).map(key),
    });
    intervals.collect()
}

/// The path, and that it is of shapes.
impl fmt::Display for SpatialIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (spatial)", self.path)
    }
}
