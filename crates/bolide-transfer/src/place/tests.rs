use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

#[test]
fn a_place_is_read_as_it_was_written_last() {
    let files = TempDir::new().expect("a temporary directory");
    let file = PlaceFile::beside(&files.path().join("a.jsonl"), "import");
    assert_eq!(file.path(), files.path().join("a.jsonl.bolide-import"));
    assert_eq!(file.read::<Value>(), Ok(None));
    for n in 0..3 {
        file.write(&json!({"n": n})).expect("it can be written");
        assert_eq!(file.read(), Ok(Some(json!({"n": n}))));
    }
    assert_eq!(
        fs::read_dir(files.path()).expect("a directory").count(),
        1,
        "no drafts are left"
    );
    file.remove().expect("it can be removed");
    file.remove().expect("again");
    assert_eq!(file.read::<Value>(), Ok(None));
}

#[test]
fn a_file_that_is_no_place_is_an_error_that_names_it() {
    let files = TempDir::new().expect("a temporary directory");
    let file = PlaceFile::beside(&files.path().join("a.csv"), "export");
    fs::write(file.path(), "{\"n\":").expect("it can be written");
    let error = file.read::<Value>().expect_err("half of a place").to_string();
    assert!(
        error.contains("a.csv.bolide-export") && error.contains("remove it"),
        "{error}"
    );
}

#[test]
fn a_changed_file_has_another_identity() {
    let files = TempDir::new().expect("a temporary directory");
    let path = files.path().join("a.jsonl");
    fs::write(&path, "one").expect("it can be written");
    let identity = Identity::of(&path).expect("an identity");
    assert_eq!(Identity::of(&path), Ok(identity.clone()));
    fs::write(&path, "two").expect("it can be written");
    assert_ne!(Identity::of(&path), Ok(identity));
}

#[test]
fn a_locked_file_is_not_locked_twice() {
    let files = TempDir::new().expect("a temporary directory");
    let path = files.path().join("a.jsonl");
    let first = File::create(&path).expect("a file");
    let second = File::open(&path).expect("a file");
    assert_eq!(lock(&first, &path), Ok(()));
    assert!(lock(&second, &path).is_err());
    drop(first);
    assert_eq!(lock(&second, &path), Ok(()));
}
