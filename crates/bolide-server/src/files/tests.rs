use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn file_is_replaced_whole_with_the_mode_that_was_asked_for() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("file");
    let draft = dir.path().join("file.new");
    fs::write(&draft, "left by a crash").expect("writable");
    for (readers, mode) in [(Readers::Owner, 0o600), (Readers::Everybody, 0o644)] {
        write(&path, "text", readers).expect("writable");
        assert_eq!(fs::read_to_string(&path).expect("readable"), "text");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, mode);
        assert!(!draft.exists());
    }
}
