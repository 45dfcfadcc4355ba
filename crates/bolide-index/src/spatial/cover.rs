//! Covers: a few cells that together hold a region.

use std::collections::VecDeque;

use super::cell::Cell;

/// A part of a surface.
pub trait Region {
    /// What of the region has to be looked at in a cell.
    type Part;

    /// The whole region.
    fn all(&self) -> Self::Part;

    /// Returns what a cell has of the region; `part` is what there is near the cell that it is a quarter of. The answer may be too much, never too little.
    fn meet(&self, cell: Cell, part: &Self::Part) -> Meeting<Self::Part>;
}

/// What a cell has of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meeting<P> {
    /// Nothing.
    Nothing,
    /// Possibly some places, because of this part of the region.
    Part(P),
    /// Possibly all its places: smaller cells would not be better.
    Whole,
}

/// Returns cells that hold all places of a region, sorted: at most `most`, but all `roots` that the region has a place in.
///
/// The largest cells are divided first. A cell is kept whole once its quarters would be too many.
pub fn cover<R: Region>(region: &R, roots: &[Cell], most: usize) -> Vec<Cell> {
    let mut done = Vec::new();
    let mut open = VecDeque::new();
    let all = region.all();
    for root in roots {
        add((*root, region.meet(*root, &all)), &mut done, &mut open);
    }
    // The queue is in the order of levels, because quarters are added behind all cells of their level.
    while let Some((cell, part)) = open.pop_front() {
        let quarters = cell.children().into_iter().flatten();
        let meetings: Vec<_> = quarters.map(|quarter| (quarter, region.meet(quarter, &part))).collect();
        let met = meetings
            .iter()
            .filter(|(_, meeting)| !matches!(meeting, Meeting::Nothing))
            .count();
        if meetings.is_empty() || done.len() + open.len() + met > most {
            done.push(cell);
            continue;
        }
        for meeting in meetings {
            add(meeting, &mut done, &mut open);
        }
    }
    done.sort_unstable();
    done
}

fn add<P>((cell, meeting): (Cell, Meeting<P>), done: &mut Vec<Cell>, open: &mut VecDeque<(Cell, P)>) {
    match meeting {
        Meeting::Nothing => {}
        Meeting::Whole => done.push(cell),
        Meeting::Part(part) => open.push_back((cell, part)),
    }
}
