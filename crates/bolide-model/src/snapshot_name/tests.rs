use super::*;

#[test]
fn names_can_be_part_of_the_name_of_a_file_and_nothing_else() {
    let longest = "x".repeat(MAX_BYTES);
    for name in ["a", "base", "Run-7_b.old", "-", "0", longest.as_str()] {
        assert_eq!(SnapshotName::parse(name).expect("valid").as_str(), name);
    }
    let too_long = "x".repeat(MAX_BYTES + 1);
    for name in [
        "",
        ".",
        "..",
        ".a",
        "a/b",
        "../a",
        "a\\b",
        "a b",
        "a\0",
        "ä",
        "a\n",
        "%2e",
        too_long.as_str(),
    ] {
        assert!(SnapshotName::parse(name).is_err(), "{name}");
    }
}
