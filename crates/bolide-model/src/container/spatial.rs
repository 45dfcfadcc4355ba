//! Spatial indexes: paths, types, and the bounding box of a plane. Source: cosmos-rest §4.2.

use serde_json::{Value, json};

use super::index_path::IndexPath;
use super::input::{Input, invalid};
use crate::document;
use crate::error::Result;

/// An index for spatial functions. It always covers shapes of all four types, whichever were sent; the service also returns all four.
#[derive(Debug, Clone, PartialEq)]
pub struct SpatialIndex {
    /// The path of the shapes.
    pub path: IndexPath,
    /// The bounding box of the plane. Only for geometry; geography uses the globe.
    pub bounding_box: Option<BoundingBox>,
}

/// The extent of a plane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundingBox {
    /// Left edge.
    pub x_min: f64,
    /// Lower edge.
    pub y_min: f64,
    /// Right edge.
    pub x_max: f64,
    /// Upper edge.
    pub y_max: f64,
}

const SPATIAL_TYPES: [&str; 4] = ["Point", "LineString", "Polygon", "MultiPolygon"];

impl SpatialIndex {
    pub(super) fn from_input(input: &Input<'_>) -> Result<SpatialIndex> {
        let path = IndexPath::read(input.require("path", input.string("path")?)?)?;
        let types = input.array("types")?.unwrap_or_default();
        if types.is_empty() {
            return Err(invalid(&input.name_of("types"), "a list of at least one spatial type"));
        }
        types.iter().try_for_each(|name| check_spatial_type(name, input))?;
        let bounding_box = input
            .object("boundingBox")?
            .as_ref()
            .map(BoundingBox::from_input)
            .transpose()?;
        Ok(SpatialIndex { path, bounding_box })
    }

    pub(super) fn to_json(&self) -> Value {
        let mut json = json!({"path": self.path.as_str(), "types": SPATIAL_TYPES});
        if let Some(extent) = self.bounding_box {
            json["boundingBox"] = extent.to_json();
        }
        json
    }
}

impl BoundingBox {
    fn from_input(input: &Input<'_>) -> Result<BoundingBox> {
        let edge = |name| input.require(name, input.number(name)?);
        let extent = BoundingBox {
            x_min: edge("xmin")?,
            y_min: edge("ymin")?,
            x_max: edge("xmax")?,
            y_max: edge("ymax")?,
        };
        if extent.x_min >= extent.x_max || extent.y_min >= extent.y_max {
            return Err(invalid(&input.name_of("xmin, ymin"), "below xmax, ymax"));
        }
        Ok(extent)
    }

    fn to_json(self) -> Value {
        let edge = |edge| document::number(edge).map(Value::Number);
        json!({"xmin": edge(self.x_min), "ymin": edge(self.y_min), "xmax": edge(self.x_max), "ymax": edge(self.y_max)})
    }
}

fn check_spatial_type(name: &Value, input: &Input<'_>) -> Result<()> {
    let name = name.as_str().unwrap_or_default();
    if SPATIAL_TYPES.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    let known = "made of Point, LineString, Polygon and MultiPolygon";
    Err(invalid(&input.name_of("types"), known))
}
