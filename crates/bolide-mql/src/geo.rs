//! Geometry: GeoJSON, legacy coordinates, and the predicates on them.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `sphere` | points, edges and rings on the unit sphere |
//! | `geometry` | what documents and queries have: points, lines, polygons |
//! | `plane` | boxes, circles and polygons of legacy queries |
//! | `parse` | GeoJSON and legacy points, with MongoDB's errors |
//! | `predicate` | `$geoWithin`, `$geoIntersects` |
//! | `near` | `$near`, `$nearSphere`, `$geoNear` |
//!
//! GeoJSON is on a sphere: edges are arcs of great circles, the Earth's radius is that of MongoDB, and a polygon is the smaller of the two areas that
//! its ring divides the sphere into. Points closer than a centimetre are the same place.
//!
//! Source: mongo.md §10.

mod geometry;
mod near;
mod parse;
mod plane;
mod predicate;
mod sphere;

pub use geometry::Geometry;
pub use near::Near;
pub use predicate::Predicate;
pub use sphere::EARTH_RADIUS_METERS;

/// Tells whether a filter's operator is one of geometry.
pub fn is_operator(name: &str) -> bool {
    matches!(name, "$geoWithin" | "$within" | "$geoIntersects") || is_near(name)
}

/// Tells whether a filter's operator orders by distance.
pub fn is_near(name: &str) -> bool {
    matches!(name, "$near" | "$nearSphere" | "$geoNear")
}

/// Tells whether a name beside `$near` or `$nearSphere` belongs to it.
pub fn is_near_option(name: &str) -> bool {
    matches!(name, "$minDistance" | "$maxDistance" | "$uniqueDocs")
}
