//! Tests of reading go.mod.

use super::*;

#[test]
fn the_path_of_a_module_is_in_its_first_directive() {
    assert_eq!(
        module_path("module example.org/a/b\n\ngo 1.21\n").unwrap(),
        "example.org/a/b"
    );
    assert!(module_path("go 1.21\n").is_err());
}
