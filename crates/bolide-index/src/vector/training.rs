//! Finds the centres of lists in a sample of vectors: k-means, in steps.

use super::{Centroids, Quantized};

/// Maximum size of the centroids of an index, in bytes: they stay in memory, and every write compares with all of them.
const CENTROIDS_BYTES: usize = 1024 * 1024;
/// Maximum and minimum number of lists.
const MAX_LISTS: usize = 2_048;
const MIN_LISTS: usize = 16;
/// Number of vectors of the sample for each list, and the maximum size of all of them in bytes.
const SAMPLES_OF_LIST: usize = 24;
const SAMPLE_BYTES: usize = 24 * 1024 * 1024;
/// Number of times that all vectors of the sample are compared with all centres.
const ROUNDS: usize = 6;

/// A uniform sample of the vectors that are shown to it, of bounded size: each has the same chance to be in it.
#[derive(Debug)]
pub struct Sample {
    vectors: Vec<Quantized>,
    size: usize,
    seen: u64,
    random: SplitMix,
}

impl Sample {
    /// An empty sample of about `items` vectors with some number of dimensions.
    pub fn new(items: u64, dimensions: usize) -> Sample {
        let wanted = SAMPLES_OF_LIST * lists_for(items, dimensions);
        Sample {
            vectors: Vec::new(),
            size: wanted.min(SAMPLE_BYTES / (dimensions + size_of::<Quantized>())).max(1),
            seen: 0,
            random: SplitMix(0),
        }
    }

    /// Returns whether the next vector would be taken. If it would not, it need not be made.
    pub fn takes_next(&mut self) -> Option<Place> {
        self.seen += 1;
        if self.vectors.len() < self.size {
            return Some(Place(self.vectors.len()));
        }
        let place = usize::try_from(self.random.below(self.seen)).unwrap_or(usize::MAX);
        (place < self.size).then_some(Place(place))
    }

    /// Takes a vector into a place that [`Sample::takes_next`] returned.
    pub fn take(&mut self, Place(place): Place, vector: Quantized) {
        match self.vectors.get_mut(place) {
            Some(old) => *old = vector,
            None => self.vectors.push(vector),
        }
    }

    /// The number of vectors.
    pub fn len(&self) -> usize {
        self.vectors.len()
    }

    /// Whether it has no vector.
    pub fn is_empty(&self) -> bool {
        self.vectors.is_empty()
    }
}

/// A place in a sample.
#[derive(Debug, Clone, Copy)]
pub struct Place(usize);

/// Returns the number of lists for some number of vectors: twice its square root, within limits.
fn lists_for(items: u64, dimensions: usize) -> usize {
    let root = usize::try_from(items.isqrt()).unwrap_or(usize::MAX);
    let most = (CENTROIDS_BYTES / (dimensions + 8)).min(MAX_LISTS);
    root.saturating_mul(2).clamp(MIN_LISTS, most)
}

/// A training in progress. The result depends on the sample and the number of items only.
#[derive(Debug)]
pub struct Training {
    vectors: Vec<Quantized>,
    centroids: Centroids,
    random: SplitMix,
    /// The vector that is compared next.
    next: usize,
    rounds: usize,
    /// The sum of the vectors of each list, and their number.
    sums: Vec<f32>,
    counts: Vec<u32>,
}

impl Training {
    /// Begins the training of the lists of about `items` vectors. `None` if the sample is empty, or its vectors have different dimensions.
    pub fn new(sample: Sample, items: u64) -> Option<Training> {
        let Sample { mut vectors, .. } = sample;
        let dimensions = vectors.first()?.dimensions();
        if vectors.iter().any(|vector| vector.dimensions() != dimensions) {
            return None;
        }
        let lists = lists_for(items, dimensions).min(vectors.len());
        let mut random = SplitMix(lists as u64);
        // The first centres: some of the vectors, each at most once.
        for at in 0..lists {
            let other = at + random.below((vectors.len() - at) as u64) as usize;
            vectors.swap(at, other);
        }
        Some(Training {
            centroids: Centroids::of(&vectors[..lists]),
            random,
            next: 0,
            rounds: 0,
            sums: vec![0.0; lists * dimensions],
            counts: vec![0; lists],
            vectors,
        })
    }

    /// Compares about so many pairs of components; returns the centroids when the training is done.
    pub fn step(&mut self, products: usize) -> Option<Centroids> {
        let dimensions = self.centroids.dimensions();
        let vectors = (products / (dimensions * self.centroids.lists())).max(1);
        for _ in 0..vectors {
            let Some(vector) = self.vectors.get(self.next) else {
                break;
            };
            self.next += 1;
            let list = self.centroids.nearest(vector).unwrap_or(0) as usize;
            self.counts[list] += 1;
            let sum = &mut self.sums[list * dimensions..][..dimensions];
            for (sum, code) in sum.iter_mut().zip(&vector.codes) {
                *sum += vector.scale * f32::from(*code);
            }
        }
        if self.next == self.vectors.len() {
            self.end_round();
        }
        (self.rounds == ROUNDS).then(|| self.centroids.clone())
    }

    /// Moves each centre to the mean of its vectors. A list without vectors begins again at any vector.
    fn end_round(&mut self) {
        let mut centres = Vec::with_capacity(self.counts.len());
        for (sum, count) in self.sums.chunks_exact(self.centroids.dimensions()).zip(&self.counts) {
            let mean: Vec<f64> = sum.iter().map(|sum| f64::from(*sum) / f64::from(*count)).collect();
            let centre = match count {
                0 => None,
                // As it is, also for vectors of length 1: the distance to the mean is what is minimal.
                _ => Quantized::of(&mean, super::Similarity::Euclidean),
            };
            centres.push(centre.unwrap_or_else(|| {
                let any = self.random.below(self.vectors.len() as u64) as usize;
                self.vectors[any].clone()
            }));
        }
        self.centroids = Centroids::of(&centres);
        self.sums.fill(0.0);
        self.counts.fill(0);
        self.next = 0;
        self.rounds += 1;
    }
}

/// The generator SplitMix64: the same numbers for the same seed.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    /// Returns a number below `end`, which is above 0.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}
