//! The index of the vectors at a path: lists of similar ones.

use std::fmt;
use std::sync::OnceLock;

use bolide_index::vector::{Centroids, Quantized, Similarity};
use bolide_query::Item;
use bolide_query::index::IndexPath;
use bytes::Bytes;

/// An index of vectors.
///
/// The centroids are in a row of their own in the catalog, because the container's row is written often. They are loaded before the container's state comes into
/// force, and never change.
#[derive(Clone)]
pub(crate) struct VectorIndex {
    pub path: IndexPath,
    pub dimensions: usize,
    pub similarity: Similarity,
    /// Number of items that were stored when the centroids were trained.
    pub trained_items: u64,
    centroids: OnceLock<Centroids>,
}

/// The list of items without a vector that has the dimensions of the index.
pub(crate) const WITHOUT_VECTOR: u32 = u32::MAX;
/// The list of items whose vector cannot be quantized.
pub(crate) const UNQUANTIZED: u32 = u32::MAX - 1;

impl VectorIndex {
    /// Returns an index without its centroids, as the container's row has it.
    pub fn stored(path: IndexPath, dimensions: usize, similarity: Similarity, trained_items: u64) -> VectorIndex {
        VectorIndex {
            path,
            dimensions,
            similarity,
            trained_items,
            centroids: OnceLock::new(),
        }
    }

    /// Returns the index with these centroids.
    pub fn with(self, centroids: Centroids) -> VectorIndex {
        VectorIndex {
            centroids: centroids.into(),
            ..self
        }
    }

    /// Returns the centroids; `None` if they are not loaded.
    pub fn loaded(&self) -> Option<&Centroids> {
        self.centroids.get()
    }

    /// Sets the centroids, if they are not there.
    pub fn load(&self, centroids: Centroids) {
        let _ = self.centroids.set(centroids);
    }

    /// Returns the centroids.
    ///
    /// # Panics
    /// If they are not loaded.
    pub fn centroids(&self) -> &Centroids {
        self.loaded()
            .expect("centroids are loaded before the state of the container comes into force")
    }

    /// Returns the list of an item, and the value of its entry there.
    pub fn entry(&self, item: &Item<'_>) -> (u32, Bytes) {
        let vector = self.path.vector(item);
        let Some(vector) = vector.filter(|vector| vector.len() == self.dimensions) else {
            return (WITHOUT_VECTOR, Bytes::new());
        };
        let Some(quantized) = Quantized::of(&vector, self.similarity) else {
            return (UNQUANTIZED, Bytes::new());
        };
        match self.centroids().nearest(&quantized) {
            Some(list) => (list, quantized.encode().into()),
            None => (UNQUANTIZED, Bytes::new()),
        }
    }
}

/// Centroids belong to the index's id, so they are not compared.
impl PartialEq for VectorIndex {
    fn eq(&self, other: &VectorIndex) -> bool {
        let known = |index: &VectorIndex| (index.dimensions, index.similarity, index.trained_items);
        self.path == other.path && known(self) == known(other)
    }
}

impl Eq for VectorIndex {}

impl fmt::Debug for VectorIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "VectorIndex({} {} {:?} {})",
            self.path, self.dimensions, self.similarity, self.trained_items
        )
    }
}
