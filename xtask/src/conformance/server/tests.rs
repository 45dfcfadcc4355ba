use super::*;

#[test]
fn the_clock_is_handed_over_with_its_milliseconds_and_beyond_2_to_the_32() {
    assert_eq!(rfc_3339(1_700_000_000_000).expect("in range"), "2023-11-14T22:13:20Z");
    assert_eq!(
        rfc_3339(1_700_000_000_007).expect("in range"),
        "2023-11-14T22:13:20.007Z"
    );
    assert_eq!(rfc_3339(6_442_450_937_000).expect("in range"), "2174-02-25T09:42:17Z");
}

#[test]
fn a_ready_file_counts_only_when_it_is_whole() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("ready.json");
    assert!(endpoints_in(&path).is_none());
    std::fs::write(&path, r#"{"cosmos":"http://127"#).expect("writable");
    assert!(endpoints_in(&path).is_none());
    std::fs::write(
        &path,
        r#"{"cosmos":"http://127.0.0.1:4711","mongo":"mongodb://localhost@127.0.0.1:4712/?replicaSet=globaldb"}"#,
    )
    .expect("writable");
    let endpoints = endpoints_in(&path).expect("the file is complete");
    assert_eq!(endpoints.cosmos, "http://127.0.0.1:4711");
    assert_eq!(endpoints.mongo.as_deref(), Some("127.0.0.1:4712"));
}
