use super::*;

#[test]
fn what_no_index_covers_is_potential() {
    let usage = QueryUsage {
        indexed: vec!["/name".to_owned()],
        unindexed: vec!["/_etag".to_owned()],
        sort: vec![("/a".to_owned(), false), ("/b".to_owned(), true)],
        advice: Vec::new(),
    };
    assert_eq!(
        of_text(&usage).to_string(),
        r#"{"PotentialIndexes":{"CompositeIndexes":[],"SingleIndexes":[{"IndexSpec":"/_etag/?"}]},"#.to_owned()
            + r#""UtilizedIndexes":{"CompositeIndexes":[{"IndexSpecs":["/a ASC","/b DESC"]}],"SingleIndexes":[{"IndexSpec":"/name/?"}]}}"#
    );
}
