//! The vector of a search.

use super::{Quantized, Similarity};

/// The vector whose neighbours are searched, prepared for comparisons with entries.
#[derive(Debug, Clone)]
pub struct Target {
    similarity: Similarity,
    scale: f32,
    /// Finer than those of entries, so that entries alone determine the error of an estimate.
    codes: Vec<i16>,
}

/// The code of the largest component. With [`super::MAX_DIMENSIONS`] dimensions a sum of products of codes still fits in 32 bits.
const MAX_CODE: f64 = 2_047.0;

impl Target {
    /// Prepares a vector; `None` for those that [`Quantized::of`] refuses.
    pub fn of(vector: &[f64], similarity: Similarity) -> Option<Target> {
        // Brings it to length 1 where that is needed.
        let coarse = Quantized::of(vector, similarity)?;
        let largest = vector.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        let code = |x: &f64| match largest > 0.0 {
            true => (x / largest * MAX_CODE).round() as i16,
            false => 0,
        };
        Some(Target {
            similarity,
            scale: (f64::from(coarse.scale) * 127.0 / MAX_CODE) as f32,
            codes: vector.iter().map(code).collect(),
        })
    }

    /// The number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.codes.len()
    }

    pub(super) fn similarity(&self) -> Similarity {
        self.similarity
    }

    /// Estimates how far an entry's vector is, from the entry's bytes: the lower, the more similar. `None` if the entry has other dimensions.
    ///
    /// The number only has a meaning beside those of other entries for the same target.
    pub fn estimate(&self, entry: &[u8]) -> Option<f32> {
        let (scale, squared_length, codes) = Quantized::parts(entry)?;
        if codes.len() != self.codes.len() {
            return None;
        }
        let sum: i32 = (self.codes.iter().zip(codes))
            .map(|(own, code)| i32::from(*own) * i32::from(code.cast_signed()))
            .sum();
        let product = sum as f32 * self.scale * scale;
        Some(match self.similarity {
            Similarity::Euclidean => squared_length - 2.0 * product,
            // What quantizing has changed of its length does not count.
            Similarity::Cosine if squared_length > 0.0 => -product / squared_length.sqrt(),
            Similarity::Cosine | Similarity::DotProduct => -product,
        })
    }

    /// The inner product with a vector of codes, for scale 1.
    pub(super) fn product_with(&self, codes: &[i8]) -> f32 {
        let sum: i32 = (self.codes.iter().zip(codes))
            .map(|(own, code)| i32::from(*own) * i32::from(*code))
            .sum();
        sum as f32 * self.scale
    }
}
