//! Shapes of legacy queries on the plane. Their edges belong to them.

/// A point: x (longitude), y (latitude).
pub type FlatPoint = [f64; 2];

/// A shape.
#[derive(Debug, Clone, PartialEq)]
pub enum FlatShape {
    /// `$box`: the smallest and the largest coordinates.
    Box(FlatPoint, FlatPoint),
    /// `$center`: its centre and radius.
    Circle(FlatPoint, f64),
    /// `$polygon`: at least three points; the last edge leads back to the first.
    Polygon(Vec<FlatPoint>),
}

impl FlatShape {
    /// Whether a point is inside or on an edge.
    pub fn contains(&self, p: FlatPoint) -> bool {
        match self {
            FlatShape::Box(min, max) => (0..2).all(|axis| (min[axis]..=max[axis]).contains(&p[axis])),
            FlatShape::Circle(center, radius) => distance(*center, p) <= *radius,
            FlatShape::Polygon(points) => polygon_contains(points, p),
        }
    }
}

/// The distance of two points.
pub fn distance(a: FlatPoint, b: FlatPoint) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

fn polygon_contains(points: &[FlatPoint], p: FlatPoint) -> bool {
    let mut is_inside = false;
    let next = points.iter().cycle().skip(1);
    for (a, b) in points.iter().zip(next) {
        if is_on_edge(*a, *b, p) {
            return true;
        }
        // The edge crosses the line to the right of the point.
        if (a[1] > p[1]) != (b[1] > p[1]) {
            let x = a[0] + (p[1] - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
            is_inside ^= p[0] < x;
        }
    }
    is_inside
}

fn is_on_edge(a: FlatPoint, b: FlatPoint, p: FlatPoint) -> bool {
    let cross = (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]);
    let is_between = |axis: usize| (a[axis].min(b[axis])..=a[axis].max(b[axis])).contains(&p[axis]);
    cross == 0.0 && is_between(0) && is_between(1)
}
