//! Vectors in space. Only operations that IEEE 754 defines to the bit are used: results are the same on every processor.

/// A vector; a direction from the centre has length 1.
pub type Vector = [f64; 3];

/// The sum.
pub fn add(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// The difference.
pub fn subtract(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// The product that is a number.
pub fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The product that is a vector.
pub fn cross(a: Vector, b: Vector) -> Vector {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// The length.
pub fn length(v: Vector) -> f64 {
    dot(v, v).sqrt()
}

/// The vector of length 1 in the same direction; zero stays zero.
pub fn unit(v: Vector) -> Vector {
    let length = length(v);
    if length == 0.0 { v } else { v.map(|x| x / length) }
}

/// The straight distance between the ends of two vectors; for directions, less than the angle.
pub fn straight(a: Vector, b: Vector) -> f64 {
    length(subtract(a, b))
}
