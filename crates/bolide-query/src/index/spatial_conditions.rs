//! What a filter requires of the places of shapes.
//!
//! A condition comes from one spatial function of a path and a constant shape: a distance that is compared with an upper bound, `ST_WITHIN` or
//! `ST_INTERSECTS`. OR unites the conditions on one path that all its operands have; any other part of the filter gives no condition, and so lets every item
//! pass.

use std::cell::Cell;

use bolide_index::spatial::meeting;

use super::conditions::{filter_of_items, path_of};
use super::interval::{Interval, union};
use super::path::IndexPath;
use super::spatial::{SpatialIndex, intervals_of};
use crate::bind::Bound;
use crate::functions::{COVERED_POSITIONS, CellSurface, CoveredShape};
use crate::program::Scalar;
use crate::text::ast::BinaryOp;
use crate::value::Value;

/// Maximum number of cells for one condition of a query, before it is united with others.
const CELLS_OF_QUERY: usize = 20;

/// Maximum number of shapes of a query for which cells are searched.
const MAX_SHAPES: usize = 16;

/// The keys that an item must have in a spatial index: at least one in one of the intervals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpatialCondition {
    /// Where in the item the shape is.
    pub path: IndexPath,
    /// Sorted, without overlaps.
    pub intervals: Vec<Interval>,
}

impl SpatialCondition {
    /// Whether an item with these keys can pass.
    pub fn admits<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> bool {
        let mut keys = keys.into_iter();
        keys.any(|key| self.intervals.iter().any(|interval| interval.contains(key)))
    }
}

/// The conditions of a query that some indexes serve, see [`crate::Query::spatial_conditions`]. `is_plane`: how the query measures.
pub(crate) fn spatial_conditions(bound: &Bound, is_plane: bool, indexes: &[&SpatialIndex]) -> Vec<SpatialCondition> {
    if indexes.is_empty() {
        return Vec::new();
    }
    let analysis = Analysis {
        bound,
        is_plane,
        indexes,
        shapes: Cell::new(0),
        positions: Cell::new(0),
    };
    filter_of_items(bound).map_or_else(Vec::new, |filter| analysis.of(filter))
}

/// Maximum number of paths of [`shape_paths`].
const MAX_PATHS: usize = 8;

/// The paths whose values the spatial functions of a filter get, whether or not an index would serve them.
pub(crate) fn shape_paths(bound: &Bound) -> Vec<IndexPath> {
    let mut paths = Vec::new();
    if let Some(filter) = filter_of_items(bound) {
        add_shape_paths(bound, filter, &mut paths);
    }
    paths
}

fn add_shape_paths(bound: &Bound, scalar: &Scalar, paths: &mut Vec<IndexPath>) {
    let is_spatial = |name: &str| name.trim_start_matches('_').starts_with("ST_");
    if let Scalar::Call(function, args) = scalar
        && is_spatial(function.name)
    {
        for path in args.iter().filter_map(|arg| path_of(bound, arg)) {
            if paths.len() < MAX_PATHS && !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    scalar.for_each_operand(&mut |operand| add_shape_paths(bound, operand, paths));
}

struct Analysis<'q> {
    bound: &'q Bound,
    is_plane: bool,
    indexes: &'q [&'q SpatialIndex],
    /// Shapes for which cells were searched so far, and their positions.
    shapes: Cell<usize>,
    positions: Cell<u64>,
}

/// The place of a shape in a call of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Argument {
    First,
    Second,
}

impl Analysis<'_> {
    /// What is true of every item for which the expression is true.
    fn of(&self, condition: &Scalar) -> Vec<SpatialCondition> {
        let found = match condition {
            Scalar::And(list) => return list.iter().flat_map(|operand| self.of(operand)).collect(),
            Scalar::Or(list) => return self.united(list),
            Scalar::Call(function, args) => self.predicate(function.name, args),
            Scalar::Between(parts) => self.distance(&parts.0, &parts.2),
            Scalar::Binary(op, sides) => {
                let (left, right) = (&sides.0, &sides.1);
                match op {
                    BinaryOp::Less | BinaryOp::LessOrEqual => self.distance(left, right),
                    BinaryOp::Greater | BinaryOp::GreaterOrEqual => self.distance(right, left),
                    BinaryOp::Equal if is_true(right) => return self.of(left),
                    BinaryOp::Equal if is_true(left) => return self.of(right),
                    BinaryOp::Equal => self.distance(left, right).or_else(|| self.distance(right, left)),
                    _ => None,
                }
            }
            _ => None,
        };
        found.into_iter().collect()
    }

    /// The condition that a distance is at most a constant.
    fn distance(&self, distance: &Scalar, most: &Scalar) -> Option<SpatialCondition> {
        let Scalar::Call(function, args) = distance else {
            return None;
        };
        let most = most.as_const()?.as_f64()?;
        let is_distance = matches!(function.name, "ST_DISTANCE" | "_ST_DISTANCE");
        let (index, shape, _) = self.operands(args).filter(|_| is_distance)?;
        self.near(index, &shape, most)
    }

    /// The condition that shapes have places in common: a shape inside another one has.
    fn predicate(&self, name: &str, args: &[Scalar]) -> Option<SpatialCondition> {
        let is_within = match name {
            "ST_WITHIN" | "_ST_WITHIN" => true,
            "ST_INTERSECTS" | "_ST_INTERSECTS" => false,
            _ => return None,
        };
        let (index, shape, at) = self.operands(args)?;
        match is_within && at == Argument::First {
            // What holds all of the constant shape, holds any of its positions.
            true => self.near(index, &shape.first()?, 0.0),
            false => self.near(index, &shape, 0.0),
        }
    }

    /// The index of the path, and the constant shape, among the arguments of a function, with the place of the shape.
    fn operands(&self, args: &[Scalar]) -> Option<(&SpatialIndex, CoveredShape, Argument)> {
        let (path, shape, at) = match args {
            [path, Scalar::Const(shape)] => (path, shape, Argument::Second),
            [Scalar::Const(shape), path] => (path, shape, Argument::First),
            _ => return None,
        };
        let index = self.index(&path_of(self.bound, path)?)?;
        Some((index, CoveredShape::read(shape, index.surface)?, at))
    }

    fn index(&self, path: &IndexPath) -> Option<&SpatialIndex> {
        let fits = |index: &SpatialIndex| matches!(index.surface, CellSurface::Plane(_)) == self.is_plane;
        let index = self.indexes.iter().find(|index| index.path == *path && fits(index));
        index.copied()
    }

    /// The condition that a shape has a place within a distance of another one. None if the query has too many shapes, or this one may be anywhere.
    fn near(&self, index: &SpatialIndex, shape: &CoveredShape, reach: f64) -> Option<SpatialCondition> {
        self.shapes.set(self.shapes.get() + 1);
        self.positions
            .set(self.positions.get().saturating_add(shape.positions()));
        if self.shapes.get() > MAX_SHAPES || self.positions.get() > COVERED_POSITIONS {
            return None;
        }
        let cells = shape.cells(index.surface, reach, CELLS_OF_QUERY)?;
        Some(SpatialCondition {
            path: index.path.clone(),
            intervals: intervals_of(&meeting(&cells)),
        })
    }

    /// The conditions on one path that every operand has.
    fn united(&self, list: &[Scalar]) -> Vec<SpatialCondition> {
        let mut operands = list.iter().map(|operand| self.of(operand));
        let first = operands.next().unwrap_or_default();
        let mut common = first;
        for own in operands {
            if common.is_empty() {
                break;
            }
            let with = |mut one: SpatialCondition| {
                let other = own.iter().find(|other| other.path == one.path)?;
                one.intervals.extend(other.intervals.iter().cloned());
                Some(one)
            };
            common = common.into_iter().filter_map(with).collect();
        }
        for condition in &mut common {
            condition.intervals = union(std::mem::take(&mut condition.intervals));
        }
        common
    }
}

fn is_true(scalar: &Scalar) -> bool {
    scalar.as_const().is_some_and(Value::is_true)
}

#[cfg(test)]
mod tests;
