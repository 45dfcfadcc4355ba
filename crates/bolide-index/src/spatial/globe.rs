//! Cells of a sphere: the quadtrees over the faces of a cube around it.
//!
//! A face is the side of the cube to which a direction points. Coordinates on it are made uneven as in S2, so that cells of one level have nearly the same
//! size on the sphere. Only operations that IEEE 754 defines to the bit are used: the cell of a place is the same on every processor.

use super::cell::{Cell, SIDE};
use super::vector::{Vector, straight, unit};

/// Number of faces: roots 0 to 5.
pub const FACES: u8 = 6;

/// Returns the leaf cell of a direction.
pub fn cell_on_globe(direction: Vector) -> Cell {
    let mut axis = 0;
    for other in 1..3 {
        if direction[other].abs() > direction[axis].abs() {
            axis = other;
        }
    }
    let ahead = direction[axis];
    let place = |axis: usize| leaf_at(direction[axis % 3] / ahead.abs());
    let root = axis as u8 + if ahead < 0.0 { 3 } else { 0 };
    Cell::leaf(root, place(axis + 1), place(axis + 2))
}

/// Where a cell is. Not exact to the last digits: 1e-14.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GlobeBounds {
    /// A place in it.
    pub middle: Vector,
    /// Its corners, in the order in which arcs of great circles between them are its sides.
    pub corners: [Vector; 4],
    /// The largest straight distance from the middle to a place of the cell.
    pub farthest: f64,
}

/// Returns where a cell is.
pub fn bounds_on_globe(cell: Cell) -> GlobeBounds {
    let square = cell.square();
    let (axis, ahead) = (usize::from(square.root % 3), if square.root < 3 { 1.0 } else { -1.0 });
    let at = |x: f64, y: f64| {
        let mut direction = [0.0; 3];
        direction[axis] = ahead;
        direction[(axis + 1) % 3] = of_leaf(x);
        direction[(axis + 2) % 3] = of_leaf(y);
        unit(direction)
    };
    let [x, y, side] = [square.x, square.y, square.side].map(f64::from);
    let middle = at(x + side / 2.0, y + side / 2.0);
    let corners = [(0.0, 0.0), (side, 0.0), (side, side), (0.0, side)].map(|(right, up)| at(x + right, y + up));
    // A side is an arc of a great circle, so that one of its ends is its farthest place.
    let chords = corners.map(|corner| straight(corner, middle));
    GlobeBounds {
        middle,
        corners,
        farthest: chords.into_iter().fold(0.0, f64::max),
    }
}

/// The leaf cell at a coordinate of a face, from -1 to 1.
fn leaf_at(coordinate: f64) -> u32 {
    let even = match coordinate >= 0.0 {
        true => 0.5 * (1.0 + 3.0 * coordinate).sqrt(),
        false => 1.0 - 0.5 * (1.0 - 3.0 * coordinate).sqrt(),
    };
    // Conversions are saturating.
    ((even * f64::from(SIDE)) as u32).min(SIDE - 1)
}

/// The coordinate on a face of a number of leaf cells.
fn of_leaf(leaf: f64) -> f64 {
    let even = leaf / f64::from(SIDE);
    match even >= 0.5 {
        true => (4.0 * even * even - 1.0) / 3.0,
        false => (1.0 - 4.0 * (1.0 - even) * (1.0 - even)) / 3.0,
    }
}
