//! The centres of lists.

use std::fmt;

use super::{MAX_DIMENSIONS, Quantized, Similarity, Target, product};

/// The centres of the lists of an index, with a byte per dimension as the vectors have.
#[derive(Clone, PartialEq)]
pub struct Centroids {
    dimensions: usize,
    scales: Vec<f32>,
    squared_lengths: Vec<f32>,
    /// All codes, one centre after the other.
    codes: Vec<i8>,
}

impl fmt::Debug for Centroids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Centroids({} of {} dimensions)", self.lists(), self.dimensions)
    }
}

impl Centroids {
    /// Returns the centroids of lists, all with the same dimensions.
    pub(super) fn of(centres: &[Quantized]) -> Centroids {
        Centroids {
            dimensions: centres.first().map_or(0, Quantized::dimensions),
            scales: centres.iter().map(|centre| centre.scale).collect(),
            squared_lengths: centres.iter().map(|centre| centre.squared_length).collect(),
            codes: centres.iter().flat_map(|centre| centre.codes.iter().copied()).collect(),
        }
    }

    /// The number of lists, at least one.
    pub fn lists(&self) -> usize {
        self.scales.len()
    }

    /// The number of dimensions of vectors.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the bytes to store: the number of dimensions, 4 bytes, big endian; then the bytes of each centre, see [`Quantized`].
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + self.lists() * (8 + self.dimensions));
        bytes.extend(u32::try_from(self.dimensions).unwrap_or(0).to_be_bytes());
        for (list, codes) in self.codes.chunks_exact(self.dimensions).enumerate() {
            bytes.extend(Quantized::of_codes(self.scales[list], codes.to_vec()).encode());
        }
        bytes
    }

    /// Decodes stored bytes; `None` if they are damaged.
    pub fn decode(bytes: &[u8]) -> Option<Centroids> {
        let (dimensions, rest) = bytes.split_first_chunk()?;
        let dimensions = u32::from_be_bytes(*dimensions) as usize;
        if dimensions == 0 || dimensions > MAX_DIMENSIONS {
            return None;
        }
        let stored = rest.chunks_exact(dimensions + 8);
        if rest.is_empty() || !stored.remainder().is_empty() {
            return None;
        }
        let centre = |bytes| {
            let (scale, _, codes) = Quantized::parts(bytes)?;
            let codes = codes.iter().map(|code| code.cast_signed()).collect();
            Some(Quantized::of_codes(scale, codes))
        };
        Some(Centroids::of(&stored.map(centre).collect::<Option<Vec<_>>>()?))
    }

    /// Returns the list of a vector: that of the nearest centre, the first of several. `None` for another number of dimensions.
    pub fn nearest(&self, vector: &Quantized) -> Option<u32> {
        if vector.dimensions() != self.dimensions {
            return None;
        }
        let mut nearest = (f64::INFINITY, 0);
        for (list, codes) in self.codes.chunks_exact(self.dimensions).enumerate() {
            let product = f64::from(product(&vector.codes, codes));
            let product = product * f64::from(vector.scale) * f64::from(self.scales[list]);
            let distance = f64::from(self.squared_lengths[list]) - 2.0 * product;
            if distance < nearest.0 {
                nearest = (distance, list);
            }
        }
        u32::try_from(nearest.1).ok()
    }

    /// Returns the lists in the order in which a search reads them.
    pub fn order(&self, target: &Target) -> Vec<u32> {
        let mut order: Vec<(f32, u32)> = (0..)
            .zip(self.codes.chunks_exact(self.dimensions))
            .map(|(list, codes)| {
                let at = list as usize;
                let product = target.product_with(codes) * self.scales[at];
                let distance = match target.similarity() {
                    Similarity::DotProduct => -product,
                    _ => self.squared_lengths[at] - 2.0 * product,
                };
                (distance, list)
            })
            .collect();
        order.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        order.into_iter().map(|(_, list)| list).collect()
    }
}
