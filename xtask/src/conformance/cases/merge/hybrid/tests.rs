use serde_json::json;

use super::*;

#[test]
fn equal_scores_share_a_rank_and_the_next_has_the_next() {
    let found: Vec<Found> = [0.5, 2.0, 0.5, 0.1]
        .into_iter()
        .map(|score| Found {
            payload: None,
            scores: vec![score],
        })
        .collect();
    let mut ranks = ranks(&found, 0, true);
    ranks.sort_by_key(|(row, _)| *row);
    assert_eq!(ranks, [(0, 2.0), (1, 1.0), (2, 2.0), (3, 3.0)]);
}

#[test]
fn statistics_are_sums_over_ranges() {
    let part = json!({"documentCount": 2, "fullTextStatistics": [{"totalWordCount": 10, "hitCounts": [1, 0]}]});
    let query = "S({documentdb-formattablehybridsearchquery-totaldocumentcount}, \
                 {documentdb-formattablehybridsearchquery-totalwordcount-0}, \
                 {documentdb-formattablehybridsearchquery-hitcountsarray-0})";
    assert_eq!(with_statistics(query, &[part.clone(), part]), "S(4, 20, [2, 0])");
}
