use tempfile::TempDir;

use super::*;

#[test]
fn folders_are_made_and_an_older_certificate_is_replaced() {
    let root = TempDir::new().expect("a temporary directory");
    let path = root.path().join(CLASSIC_FOLDER).join(CLASSIC_REST);
    for pem in ["first", "second"] {
        write_to(&path, pem).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("readable"), pem);
    }
    let folder = path.parent().expect("a folder");
    assert_eq!(fs::read_dir(folder).expect("readable").count(), 1, "no draft is left");
}

#[test]
fn a_path_that_cannot_be_made_is_an_error() {
    let root = TempDir::new().expect("a temporary directory");
    let file = root.path().join("file");
    fs::write(&file, "").expect("a file");
    assert!(write_to(&file.join("below").join("emulator.pem"), "x").is_err());
}
