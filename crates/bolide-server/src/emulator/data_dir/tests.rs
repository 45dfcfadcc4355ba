use tempfile::TempDir;

use super::*;

#[test]
fn the_first_directory_that_can_be_written_is_used() {
    let root = TempDir::new().expect("a temporary directory");
    let (missing, file, first, second) = (
        root.path().join("missing"),
        root.path().join("file"),
        root.path().join("first"),
        root.path().join("second"),
    );
    fs::write(&file, "").expect("a file");
    fs::create_dir(&first).expect("a directory");
    fs::create_dir(&second).expect("a directory");
    assert_eq!(first_usable(&[&missing, &file, &first, &second]), Some(first));
    assert_eq!(first_usable(&[&missing, &file]), None);
}

#[test]
fn a_directory_that_a_start_made_for_the_certificate_is_not_one_for_data() {
    let root = TempDir::new().expect("a temporary directory");
    fs::create_dir(root.path().join(certificate::CLASSIC_FOLDER)).expect("a directory");
    assert_eq!(first_usable(&[root.path()]), None);
    fs::write(root.path().join("data"), "").expect("a file");
    assert_eq!(first_usable(&[root.path()]), Some(root.path().to_owned()));
}
