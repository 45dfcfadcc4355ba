//! The cells of shapes, for spatial indexes.

use bolide_index::spatial::{Cell, Extent, FACES, cell_on_globe, cover};

use super::arc::direction;
use super::geojson::{Geometry, Position};
use super::globe_region::GlobeRegion;
use super::plane_region::PlaneRegion;
use crate::value::Value;

/// The surface that cells divide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellSurface {
    /// The ellipsoid, by the directions from its centre.
    Globe,
    /// A plane.
    Plane(Extent),
}

/// The cells in which a shape is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShapeCells {
    /// At least one.
    Cells(Vec<Cell>),
    /// It may be anywhere.
    Anywhere,
}

/// Shapes with more positions may be anywhere: their cover would take long.
pub const COVERED_POSITIONS: u64 = 16_384;

/// A shape for which cells are wanted: a stored one, or a constant of a query.
pub struct CoveredShape(Geometry);

impl CoveredShape {
    /// `None` for a value that is no shape of this surface.
    pub fn read(value: &Value<'_>, surface: CellSurface) -> Option<CoveredShape> {
        let is_plane = matches!(surface, CellSurface::Plane(_));
        Geometry::read(value, is_plane).ok().map(CoveredShape)
    }

    /// Number of positions.
    pub fn positions(&self) -> u64 {
        self.0.position_count()
    }

    /// One of its positions.
    pub fn first(&self) -> Option<CoveredShape> {
        let first: Option<&Position> = match &self.0 {
            Geometry::Point(position) => Some(position),
            Geometry::Line(line) => line.first(),
            Geometry::Polygons(polygons) => polygons.iter().flatten().flatten().next(),
        };
        first.map(|position| CoveredShape(Geometry::Point(*position)))
    }

    /// At most `most` cells, but at least one, that hold all places within a distance of the shape. `None` if it may be anywhere.
    pub fn cells(&self, surface: CellSurface, reach: f64, most: usize) -> Option<Vec<Cell>> {
        if self.positions() > COVERED_POSITIONS || !reach.is_finite() || reach < 0.0 {
            return None;
        }
        let cells = match surface {
            CellSurface::Globe => {
                let faces: Vec<Cell> = (0..FACES).map(Cell::root).collect();
                cover(&GlobeRegion::of(&self.0, reach)?, &faces, most)
            }
            CellSurface::Plane(extent) => cover(&PlaneRegion::of(&self.0, reach, extent)?, &[Cell::root(0)], most),
        };
        (!cells.is_empty()).then_some(cells)
    }

    /// The cells of a stored shape: a leaf cell for a point, for others at most `most`.
    pub fn own_cells(&self, surface: CellSurface, most: usize) -> ShapeCells {
        let cells = match (&self.0, surface) {
            (Geometry::Point(place), CellSurface::Globe) => Some(vec![cell_on_globe(direction(*place))]),
            (Geometry::Point(place), CellSurface::Plane(extent)) => Some(vec![extent.cell([place.x, place.y])]),
            _ => self.cells(surface, 0.0, most),
        };
        cells.map_or(ShapeCells::Anywhere, ShapeCells::Cells)
    }
}
