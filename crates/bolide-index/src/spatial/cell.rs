//! Cells of quadtrees.
//!
//! ```text
//!   id  root(3) ‖ quadrant(2) per level ‖ 1 ‖ 0…          64 bits
//! ```
//!
//! The ids of all cells inside a cell lie around its own, half of them on each side, and between those of its neighbours: an interval of ids holds them all.
//! This is the numbering of S2, with quadrants in the order of the Z curve.

/// The level of leaf cells; roots have level 0.
pub const MAX_LEVEL: u32 = 30;

/// Leaf cells along a side of a root.
pub(super) const SIDE: u32 = 1 << MAX_LEVEL;

/// A cell. Cells are in the order of their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(u64);

/// The place of a cell in its root, in leaf cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Square {
    /// The root.
    pub root: u8,
    /// Leaf cells to its left.
    pub x: u32,
    /// Leaf cells below it.
    pub y: u32,
    /// Leaf cells along its side.
    pub side: u32,
}

impl Cell {
    /// A root, by its number below 8.
    pub fn root(root: u8) -> Cell {
        Cell(u64::from(root & 7) << 61 | 1 << 60)
    }

    /// The leaf cell at a place of a root, which has 2³⁰ of them along each side.
    pub fn leaf(root: u8, x: u32, y: u32) -> Cell {
        let (x, y) = (x.min(SIDE - 1), y.min(SIDE - 1));
        Cell(u64::from(root & 7) << 61 | (spread(x) | spread(y) << 1) << 1 | 1)
    }

    /// Its number, which is not 0.
    pub fn id(self) -> u64 {
        self.0
    }

    /// How often its root was divided.
    pub fn level(self) -> u32 {
        MAX_LEVEL - self.0.trailing_zeros() / 2
    }

    /// Its quarters; `None` for a leaf cell.
    pub fn children(self) -> Option<[Cell; 4]> {
        let half = self.mark();
        // The distance between the ids of two quarters, and the last bit that a quarter sets.
        let (apart, mark) = (half >> 1, half >> 2);
        let first = self.0 - half + mark;
        (mark > 0).then(|| [0, 1, 2, 3].map(|quarter| Cell(first + quarter * apart)))
    }

    /// The cell that it is a quarter of; `None` for a root.
    pub fn parent(self) -> Option<Cell> {
        let mark = self.mark() << 2;
        (mark <= 1 << 60).then(|| Cell((self.0 & mark.wrapping_neg()) | mark))
    }

    /// Its place.
    pub fn square(self) -> Square {
        let mark = self.mark();
        let inside = (self.0 & !(7 << 61)) ^ mark;
        let places = inside >> 1;
        Square {
            root: (self.0 >> 61) as u8,
            x: gathered(places),
            y: gathered(places >> 1),
            side: 1 << (MAX_LEVEL - self.level()),
        }
    }

    /// The first and the last id of the cells inside it, itself included.
    pub fn ids(self) -> (u64, u64) {
        let around = self.mark() - 1;
        (self.0 - around, self.0 + around)
    }

    /// The lowest bit of the id.
    fn mark(self) -> u64 {
        self.0 & self.0.wrapping_neg()
    }
}

/// The ids of all cells that contain one of these cells or are inside one: intervals of ids with both ends, sorted, which do not touch each other.
pub fn meeting(cells: &[Cell]) -> Vec<(u64, u64)> {
    let around = cells
        .iter()
        .flat_map(|cell| std::iter::successors(cell.parent(), |cell| cell.parent()));
    let mut ids: Vec<(u64, u64)> = around.map(|cell| (cell.id(), cell.id())).collect();
    ids.extend(cells.iter().map(|cell| cell.ids()));
    ids.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (first, last) in ids {
        match out.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => out.push((first, last)),
        }
    }
    out
}

/// Moves the bits of a number apart, so that each has a free place above it.
fn spread(bits: u32) -> u64 {
    let mut bits = u64::from(bits);
    for (shift, mask) in SPREADS {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

/// The opposite of [`spread`]; ignores the bits in the free places.
fn gathered(bits: u64) -> u32 {
    let mut bits = bits & SPREADS[4].1;
    for at in (0..SPREADS.len()).rev() {
        let (shift, _) = SPREADS[at];
        let mask = if at == 0 { 0xFFFF_FFFF } else { SPREADS[at - 1].1 };
        bits = (bits | bits >> shift) & mask;
    }
    bits as u32
}

/// Shifts, each with the bits that are meant after it.
const SPREADS: [(u32, u64); 5] = [
    (16, 0x0000_FFFF_0000_FFFF),
    (8, 0x00FF_00FF_00FF_00FF),
    (4, 0x0F0F_0F0F_0F0F_0F0F),
    (2, 0x3333_3333_3333_3333),
    (1, 0x5555_5555_5555_5555),
];
