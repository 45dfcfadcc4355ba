use super::*;

/// Numbers between -1 and 1, the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn vector(&mut self, dimensions: usize) -> Vec<f64> {
        (0..dimensions).map(|_| self.next()).collect()
    }

    /// Vectors around some centres.
    fn clusters(&mut self, clusters: usize, each: usize, dimensions: usize) -> Vec<Vec<f64>> {
        let centres: Vec<Vec<f64>> = (0..clusters).map(|_| self.vector(dimensions)).collect();
        let all = (0..clusters * each).map(|at| centres[at % clusters].clone());
        all.map(|centre| centre.iter().map(|x| x + 0.1 * self.next()).collect())
            .collect()
    }
}

fn trained(vectors: &[Vec<f64>], similarity: Similarity) -> Centroids {
    let mut sample = Sample::new(vectors.len() as u64, vectors[0].len());
    for vector in vectors {
        if let Some(place) = sample.takes_next() {
            sample.take(place, Quantized::of(vector, similarity).expect("a vector"));
        }
    }
    let mut training = Training::new(sample, vectors.len() as u64).expect("a sample");
    loop {
        if let Some(centroids) = training.step(10_000) {
            return centroids;
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The lower, the more similar.
fn exact(a: &[f64], b: &[f64], similarity: Similarity) -> f64 {
    match similarity {
        Similarity::DotProduct => -dot(a, b),
        Similarity::Cosine => -dot(a, b) / (dot(a, a) * dot(b, b)).sqrt(),
        // What a target and all entries have in common is left out.
        Similarity::Euclidean => dot(b, b) - 2.0 * dot(a, b),
    }
}

#[test]
fn an_entry_has_the_bytes_that_are_documented() {
    let entry = Quantized::of(&[0.5, -1.0, 0.0], Similarity::Euclidean)
        .expect("a vector")
        .encode();
    let scale = (1.0_f64 / 127.0) as f32;
    assert_eq!(entry[..4], scale.to_be_bytes());
    // 64 and -127 are 0.5 and -1 of 127.
    assert_eq!(entry[8..], [64, 129, 0]);
    let length = f32::from_be_bytes(entry[4..8].try_into().expect("four bytes"));
    assert!((length - 1.25).abs() < 0.01, "{length}");
}

#[test]
fn vectors_that_have_no_entry() {
    for vector in [
        vec![],
        vec![0.0; MAX_DIMENSIONS + 1],
        vec![f64::NAN, 1.0],
        vec![f64::INFINITY],
        vec![1e30, 1.0],
    ] {
        assert_eq!(
            Quantized::of(&vector, Similarity::Euclidean),
            None,
            "{} dimensions",
            vector.len()
        );
        assert!(Target::of(&vector, Similarity::Euclidean).is_none());
    }
    assert_eq!(
        Quantized::of(&[1e-200, 1e-200], Similarity::Cosine),
        None,
        "its squared length is 0"
    );
    assert!(Quantized::of(&[0.0, 0.0], Similarity::Cosine).is_some());
}

#[test]
fn estimates_are_about_the_distances() {
    let mut numbers = Numbers(1);
    for similarity in [Similarity::Cosine, Similarity::DotProduct, Similarity::Euclidean] {
        for dimensions in [1, 3, 64, MAX_DIMENSIONS] {
            let vector = numbers.vector(dimensions);
            let target = Target::of(&vector, similarity).expect("a target");
            for _ in 0..20 {
                let other = numbers.vector(dimensions);
                let entry = Quantized::of(&other, similarity).expect("a vector").encode();
                let (estimate, exact) = (
                    target.estimate(&entry).expect("the same dimensions"),
                    exact(&vector, &other, similarity),
                );
                let unit = match similarity {
                    Similarity::Cosine => 1.0,
                    _ => (dot(&vector, &vector) * dot(&other, &other)).sqrt() + dot(&other, &other),
                };
                assert!(
                    (f64::from(estimate) - exact).abs() <= 0.02 * unit,
                    "{similarity:?} {dimensions}: {estimate} {exact}"
                );
            }
        }
    }
    let target = Target::of(&[1.0, 2.0], Similarity::Cosine).expect("a target");
    assert_eq!(
        target.estimate(&Quantized::of(&[1.0], Similarity::Cosine).expect("a vector").encode()),
        None
    );
    assert_eq!(target.estimate(&[1, 2, 3]), None);
}

#[test]
fn extreme_codes_do_not_overflow() {
    for sign in [1.0, -1.0] {
        let vector = vec![sign; MAX_DIMENSIONS];
        let target = Target::of(&vec![1.0; MAX_DIMENSIONS], Similarity::DotProduct).expect("a target");
        let entry = Quantized::of(&vector, Similarity::DotProduct)
            .expect("a vector")
            .encode();
        let expected = -sign * MAX_DIMENSIONS as f64;
        assert!((f64::from(target.estimate(&entry).expect("an estimate")) - expected).abs() < 10.0);
    }
}

#[test]
fn similar_vectors_are_in_the_first_lists() {
    for similarity in [Similarity::Cosine, Similarity::DotProduct, Similarity::Euclidean] {
        let mut numbers = Numbers(2);
        let vectors = numbers.clusters(40, 50, 16);
        let centroids = trained(&vectors, similarity);
        assert_eq!(
            (centroids.lists(), centroids.dimensions()),
            (88, 16),
            "twice the root of 2,000"
        );
        let list_of = |vector: &[f64]| centroids.nearest(&Quantized::of(vector, similarity).expect("a vector"));
        let (mut found, mut wanted) = (0, 0);
        for vector in vectors.iter().step_by(37) {
            let target = Target::of(vector, similarity).expect("a target");
            let order = centroids.order(&target);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..88), "each list once");
            let mut nearest: Vec<&Vec<f64>> = vectors.iter().collect();
            nearest.sort_by(|a, b| exact(vector, a, similarity).total_cmp(&exact(vector, b, similarity)));
            found += nearest[..10]
                .iter()
                .filter(|near| order[..9].contains(&list_of(near).expect("a list")))
                .count();
            wanted += 10;
        }
        assert!(found * 100 >= wanted * 90, "{similarity:?}: {found} of {wanted}");
    }
}

#[test]
fn centroids_are_stored_and_read_again() {
    let mut numbers = Numbers(3);
    let vectors = numbers.clusters(5, 40, 7);
    let centroids = trained(&vectors, Similarity::Cosine);
    assert_eq!(
        trained(&vectors, Similarity::Cosine),
        centroids,
        "a training depends on its sample only"
    );
    let bytes = centroids.encode();
    assert_eq!(bytes.len(), 4 + centroids.lists() * (8 + 7));
    assert_eq!(Centroids::decode(&bytes), Some(centroids));
    for damaged in [
        &bytes[..0],
        &bytes[..4],
        &bytes[..bytes.len() - 1],
        &[0; 12],
        &[0xFF; 20],
    ] {
        assert_eq!(Centroids::decode(damaged), None, "{damaged:?}");
    }
}

#[test]
fn a_sample_is_bounded_and_takes_from_everywhere() {
    let mut sample = Sample::new(100, 2);
    let mut last = 0;
    for at in 0..100_000 {
        if let Some(place) = sample.takes_next() {
            sample.take(
                place,
                Quantized::of(&[f64::from(at), 1.0], Similarity::Euclidean).expect("a vector"),
            );
            last = at;
        }
    }
    assert_eq!(sample.len(), 24 * 20, "for 20 lists");
    assert!(last > 90_000, "{last}");
}

#[test]
fn a_training_of_equal_vectors_ends() {
    let vectors = vec![vec![0.0; 4]; 30];
    let centroids = trained(&vectors, Similarity::Cosine);
    assert_eq!(
        centroids.nearest(&Quantized::of(&[0.0; 4], Similarity::Cosine).expect("a vector")),
        Some(0)
    );
}
