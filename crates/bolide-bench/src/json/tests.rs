use super::*;

#[test]
fn both_readers_find_the_same_values() {
    let documents: Vec<String> = (0..10).map(data::document).collect();
    for (path, pointer) in PATHS {
        let scanned = with_scanner(&documents, path).unwrap();
        assert_eq!(scanned, with_serde_json(&documents, pointer).unwrap(), "{path}");
        assert!(scanned.iter().all(|value| !value.is_null()), "{path}: {scanned:?}");
    }
}
