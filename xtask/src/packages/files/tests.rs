//! Tests of listings and their comparison.

use super::*;

fn paths(names: &[&str]) -> BTreeSet<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

#[test]
fn a_listing_has_the_files_of_all_folders() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("a/b")).unwrap();
    fs::write(folder.path().join("a/b/c"), "").unwrap();
    fs::write(folder.path().join("d"), "").unwrap();
    assert_eq!(listing(folder.path()).unwrap(), paths(&["a/b/c", "d"]));
}

#[test]
fn a_copy_has_the_same_listing() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("from/a")).unwrap();
    fs::write(folder.path().join("from/a/b"), "text").unwrap();
    copy(&folder.path().join("from"), &folder.path().join("to")).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("to/a/b")).unwrap(), "text");
}

#[test]
fn what_is_left_or_missing_is_named() {
    compare(&paths(&["a"]), &paths(&["a"])).unwrap();
    let problem = compare(&paths(&["a", "b"]), &paths(&["a", "c"]))
        .unwrap_err()
        .to_string();
    assert_eq!(problem, "after the package was uninstalled: left: c, missing: b");
}

#[test]
fn one_file_is_found_by_its_beginning_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let found = || only_file(folder.path(), "bolide-", ".whl").map_err(|error| error.to_string());
    assert!(found().unwrap_err().contains("found none"));
    fs::write(folder.path().join("bolide-1.whl"), "").unwrap();
    assert_eq!(found().unwrap(), folder.path().join("bolide-1.whl"));
    fs::write(folder.path().join("bolide-2.whl"), "").unwrap();
    assert!(found().unwrap_err().contains("found several"));
}
