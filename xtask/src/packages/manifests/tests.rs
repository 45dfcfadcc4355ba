//! Tests of the rules for packages.

use super::*;

#[test]
fn a_missing_page_and_another_licence_are_problems() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| fs::write(root.path().join(path), text).unwrap();
    fs::create_dir(root.path().join("package")).unwrap();
    for licence in LICENCES {
        write(licence, licence);
        write(&format!("package/{licence}"), licence);
    }
    write("package/README.md", "# Page\n");
    assert_eq!(problems_of(root.path(), "package"), Vec::<String>::new());
    fs::remove_file(root.path().join("package/README.md")).unwrap();
    write("package/LICENSE-MIT", "other");
    assert_eq!(
        problems_of(root.path(), "package"),
        [
            "package/LICENSE-MIT: differs from LICENSE-MIT",
            "package: there is no README.md"
        ]
    );
}

#[test]
fn a_version_is_between_its_marks() {
    assert_eq!(
        between("{\n  \"version\": \"1.2.3\",\n", "\n  \"version\": \"", "\","),
        Some("1.2.3")
    );
    assert_eq!(between("{}", "\"version\": \"", "\""), None);
}
