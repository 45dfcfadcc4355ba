//! Lists of similar vectors: an inverted file over vectors with a byte per dimension.
//!
//! ```text
//!   sample of vectors ──Training──▶ Centroids      one for each list, trained once
//!   vector ──Quantized──▶ bytes of its entry       a signed byte per dimension, one scale
//!          ──Centroids::nearest──▶ its list
//!   query  ──Target──▶ Centroids::order            lists, the most promising first
//!                  ──▶ Target::estimate(entry)     from the bytes of an entry, about 1 % off
//! ```
//!
//! A search reads the entries of the first lists, keeps those with the best estimates, and compares these again with the vectors themselves.
//!
//! All sums are sums of integers, so that the list of a vector is the same on every processor, in whatever order a compiler adds. The few operations on floating
//! point numbers besides are single ones that IEEE 754 defines to the bit. So an entry is a function of the centroids and the vector, and stays one.

mod centroids;
mod quantized;
mod target;
mod training;

pub use centroids::Centroids;
pub use quantized::Quantized;
pub use target::Target;
pub use training::{Sample, Training};

/// The measure by which vectors are similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Similarity {
    /// The cosine of the angle between them: vectors are brought to length 1 first.
    Cosine,
    /// The inner product.
    DotProduct,
    /// The distance.
    Euclidean,
}

/// Maximum number of dimensions: sums over more of them do not fit in 32 bits.
pub const MAX_DIMENSIONS: usize = 4_096;

/// Returns the inner product of two vectors of bytes of one length.
fn product(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

#[cfg(test)]
mod tests;
