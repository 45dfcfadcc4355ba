//! Relations of shapes, over any surface that implements the basic operations on points and edges.

use super::geojson::{Geometry, Position, Ring};

/// The side of an area's boundary on which a point lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Inside,
    Boundary,
    Outside,
}

/// A surface: a plane or an ellipsoid.
pub trait Surface {
    /// The distance between two points.
    fn distance(&self, a: Position, b: Position) -> f64;
    /// The shortest distance from a point to an edge.
    fn distance_to_edge(&self, point: Position, edge: (Position, Position)) -> f64;
    /// Whether a point lies on an edge, ends included.
    fn is_on_edge(&self, point: Position, edge: (Position, Position)) -> bool;
    /// Whether two edges cross, ends excluded.
    fn crosses(&self, a: (Position, Position), b: (Position, Position)) -> bool;
    /// Whether a point that is not on the edges of a ring lies inside it. A hole is always the smaller side.
    fn encloses(&self, ring: &Ring, is_hole: bool, point: Position) -> bool;
    /// The area that a ring encloses.
    fn ring_area(&self, ring: &Ring, is_hole: bool) -> f64;
    /// The point halfway along an edge.
    fn middle(&self, edge: (Position, Position)) -> Position;
}

fn ring_edges(ring: &Ring) -> impl Iterator<Item = (Position, Position)> + '_ {
    ring.windows(2).map(|pair| (pair[0], pair[1]))
}

fn side_of_polygon(surface: &dyn Surface, polygon: &[Ring], point: Position) -> Side {
    if polygon
        .iter()
        .flat_map(ring_edges)
        .any(|edge| surface.is_on_edge(point, edge))
    {
        return Side::Boundary;
    }
    let Some((shell, holes)) = polygon.split_first() else {
        return Side::Outside;
    };
    let inside = surface.encloses(shell, false, point) && !holes.iter().any(|hole| surface.encloses(hole, true, point));
    if inside { Side::Inside } else { Side::Outside }
}

/// Whether a shape with these edges covers a point, boundary included.
fn covers(surface: &dyn Surface, geometry: &Geometry, edges: &[(Position, Position)], point: Position) -> bool {
    match geometry {
        Geometry::Point(own) => surface.distance(*own, point) == 0.0,
        Geometry::Line(_) => edges.iter().any(|edge| surface.is_on_edge(point, *edge)),
        Geometry::Polygons(polygons) => polygons
            .iter()
            .any(|p| side_of_polygon(surface, p, point) != Side::Outside),
    }
}

/// Whether two shapes share a point, boundaries included.
pub fn intersects(surface: &dyn Surface, a: &Geometry, b: &Geometry) -> bool {
    let (a_edges, b_edges) = (a.edges(), b.edges());
    a.positions().iter().any(|point| covers(surface, b, &b_edges, *point))
        || b.positions().iter().any(|point| covers(surface, a, &a_edges, *point))
        || a_edges.iter().any(|x| b_edges.iter().any(|y| surface.crosses(*x, *y)))
}

/// Whether `a` lies inside `b`. A point on the boundary does not; edges of `a` may run along the boundary.
pub fn within(surface: &dyn Surface, a: &Geometry, b: &Geometry) -> bool {
    match b {
        Geometry::Point(own) => matches!(a, Geometry::Point(point) if surface.distance(*own, *point) == 0.0),
        Geometry::Line(_) => false,
        Geometry::Polygons(polygons) => parts(a)
            .iter()
            .all(|part| polygons.iter().any(|p| lies_in(surface, part, p))),
    }
}

/// The polygons of a shape, or the shape itself.
fn parts(geometry: &Geometry) -> Vec<Geometry> {
    match geometry {
        Geometry::Polygons(polygons) => polygons
            .iter()
            .map(|polygon| Geometry::Polygons(vec![polygon.clone()]))
            .collect(),
        other => vec![other.clone()],
    }
}

fn lies_in(surface: &dyn Surface, part: &Geometry, polygon: &[Ring]) -> bool {
    let side = |point| side_of_polygon(surface, polygon, point);
    if let Geometry::Point(point) = part {
        return side(*point) == Side::Inside;
    }
    let edges = part.edges();
    let mut points = part.positions();
    points.extend(edges.iter().map(|edge| surface.middle(*edge)));
    let boundary: Vec<_> = polygon.iter().flat_map(ring_edges).collect();
    let crosses = edges
        .iter()
        .any(|edge| boundary.iter().any(|other| surface.crosses(*edge, *other)));
    let holes_inside = polygon[1..]
        .iter()
        .flatten()
        .any(|point| encloses_strictly(surface, part, *point));
    !crosses && !holes_inside && points.into_iter().all(|point| side(point) != Side::Outside)
}

fn encloses_strictly(surface: &dyn Surface, geometry: &Geometry, point: Position) -> bool {
    match geometry {
        Geometry::Polygons(polygons) => polygons
            .iter()
            .any(|polygon| side_of_polygon(surface, polygon, point) == Side::Inside),
        Geometry::Point(_) | Geometry::Line(_) => false,
    }
}

/// The shortest distance; 0 if the shapes touch.
pub fn distance(surface: &dyn Surface, a: &Geometry, b: &Geometry) -> f64 {
    if let (Geometry::Point(a), Geometry::Point(b)) = (a, b) {
        return surface.distance(*a, *b);
    }
    if intersects(surface, a, b) {
        return 0.0;
    }
    let one_way = |from: &Geometry, to: &Geometry| {
        let edges = to.edges();
        let to_edges = from
            .positions()
            .into_iter()
            .flat_map(|point| edges.iter().map(move |edge| (point, *edge)));
        to_edges
            .map(|(point, edge)| surface.distance_to_edge(point, edge))
            .fold(f64::INFINITY, f64::min)
    };
    one_way(a, b).min(one_way(b, a))
}

/// The area of a shape: shells without their holes.
pub fn area(surface: &dyn Surface, geometry: &Geometry) -> f64 {
    let Geometry::Polygons(polygons) = geometry else {
        return 0.0;
    };
    let of_polygon = |rings: &Vec<Ring>| {
        let holes: f64 = rings[1..].iter().map(|hole| surface.ring_area(hole, true)).sum();
        surface.ring_area(&rings[0], false) - holes
    };
    polygons.iter().map(of_polygon).sum()
}

/// Whether edges of one ring cross each other.
pub fn crosses_itself(surface: &dyn Surface, geometry: &Geometry) -> bool {
    let Geometry::Polygons(polygons) = geometry else {
        return false;
    };
    polygons.iter().flatten().any(|ring| {
        let edges: Vec<_> = ring_edges(ring).collect();
        edges
            .iter()
            .enumerate()
            .any(|(n, edge)| edges[n + 1..].iter().any(|other| surface.crosses(*edge, *other)))
    })
}
