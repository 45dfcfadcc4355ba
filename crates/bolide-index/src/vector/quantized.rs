//! Vectors with a byte per dimension.

use super::{MAX_DIMENSIONS, Similarity, product};

/// A vector as its entry has it.
///
/// # Shape of the bytes
/// Scale: 4 bytes, squared length: 4 bytes, both IEEE 754, big endian; then a signed byte for each dimension. A component is about its byte times the scale.
/// The squared length is that of the bytes. By [`Similarity::Cosine`] it is the vector of length 1 with the same direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantized {
    pub(super) scale: f32,
    pub(super) squared_length: f32,
    pub(super) codes: Vec<i8>,
}

/// Maximum of a component: the squared length must be a finite single-precision number too.
const MAX_COMPONENT: f64 = 1e15;
const HEAD_BYTES: usize = 8;
/// The code of the largest component.
const MAX_CODE: f64 = 127.0;

impl Quantized {
    /// Quantizes a vector. `None` if it has no or more than [`MAX_DIMENSIONS`] dimensions, or components that are too large.
    pub fn of(vector: &[f64], similarity: Similarity) -> Option<Quantized> {
        let is_finite = vector.iter().all(|x| x.is_finite());
        if vector.is_empty() || vector.len() > MAX_DIMENSIONS || !is_finite {
            return None;
        }
        let unit = match similarity {
            Similarity::Cosine => length(vector),
            _ => 1.0,
        };
        let largest = vector.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        if !unit.is_finite() || largest > MAX_COMPONENT || (unit == 0.0 && largest > 0.0) {
            return None;
        }
        let scale = match largest > 0.0 {
            true => (largest / unit / MAX_CODE) as f32,
            false => 0.0,
        };
        let code = |x: &f64| match largest > 0.0 {
            true => (x / largest * MAX_CODE).round() as i8,
            false => 0,
        };
        Some(Quantized::of_codes(scale, vector.iter().map(code).collect()))
    }

    pub(super) fn of_codes(scale: f32, codes: Vec<i8>) -> Quantized {
        let own = f64::from(product(&codes, &codes));
        let squared_length = (own * f64::from(scale) * f64::from(scale)) as f32;
        Quantized {
            scale,
            squared_length,
            codes,
        }
    }

    /// The number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.codes.len()
    }

    /// Returns the bytes of the entry; for their shape see [`Quantized`].
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.codes.len());
        bytes.extend(self.scale.to_be_bytes());
        bytes.extend(self.squared_length.to_be_bytes());
        bytes.extend(self.codes.iter().map(|code| code.cast_unsigned()));
        bytes
    }

    /// Takes the bytes of an entry apart: scale, squared length, and codes as bytes.
    pub(super) fn parts(bytes: &[u8]) -> Option<(f32, f32, &[u8])> {
        let (scale, rest) = bytes.split_first_chunk()?;
        let (squared_length, codes) = rest.split_first_chunk()?;
        Some((f32::from_be_bytes(*scale), f32::from_be_bytes(*squared_length), codes))
    }
}

/// The length of a vector. Components are added in their order, each sum rounded, so that every processor has the same result.
fn length(vector: &[f64]) -> f64 {
    vector.iter().fold(0.0, |sum, x| sum + x * x).sqrt()
}
