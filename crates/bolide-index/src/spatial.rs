//! Cells of a sphere or a plane, for indexes of places and shapes.
//!
//! ```text
//!   place ──globe, Extent──▶ leaf cell                 of the quadtrees over the six faces of a cube, or of one over a rectangle
//!   shape ──cover──▶ a few cells                       together they hold all of it; the coarser, the larger it is
//!   query ──cover──▶ a few cells ──meeting──▶ ids      of all cells that have a place in common with one of them
//! ```
//!
//! Two shapes that share a place have covers with a cell that is in a cell of the other. A cover may hold more than its shape, so whoever finds a shape by its
//! cells must still compare the shape itself.

mod cell;
mod cover;
mod globe;
mod plane;
pub mod vector;

pub use cell::{Cell, MAX_LEVEL, Square, meeting};
pub use cover::{Meeting, Region, cover};
pub use globe::{FACES, GlobeBounds, bounds_on_globe, cell_on_globe};
pub use plane::{Extent, LARGEST_COORDINATE, Rectangle};

#[cfg(test)]
mod tests;
