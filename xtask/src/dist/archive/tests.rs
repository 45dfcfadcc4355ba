use std::io::Read as _;

use super::*;

fn entries() -> Vec<Entry> {
    vec![
        Entry::program("b", b"run".to_vec()),
        Entry::file("a/one", b"text".to_vec()),
    ]
}

#[test]
fn the_same_content_gives_the_same_archive_in_any_order() {
    let files = tempfile::tempdir().expect("a temporary directory");
    let (one, other) = (files.path().join("1"), files.path().join("2"));
    for directory in [&one, &other] {
        fs::create_dir(directory).expect("made");
    }
    let first = write(&one, "x-1", entries(), 1_700_000_000).expect("written");
    let second = write(&other, "x-1", entries().into_iter().rev().collect(), 1_700_000_000).expect("written");
    assert_eq!(fs::read(first).expect("read"), fs::read(second).expect("read"));
}

#[test]
fn everything_is_in_one_folder_of_root_with_one_time() {
    let bytes = compressed("x-1", &entries(), 1_700_000_000).expect("packed");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
    let mut seen = Vec::new();
    for entry in archive.entries().expect("readable") {
        let mut entry = entry.expect("readable");
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("UTF-8");
        let header = entry.header();
        assert_eq!(
            (header.uid().ok(), header.gid().ok(), header.mtime().ok()),
            (Some(0), Some(0), Some(1_700_000_000))
        );
        let path = entry.path().expect("a path").display().to_string();
        seen.push((path, header.mode().expect("a mode"), text));
    }
    assert_eq!(
        seen,
        [
            ("x-1/b".to_owned(), 0o755, "run".to_owned()),
            ("x-1/a/one".to_owned(), 0o644, "text".to_owned()),
        ]
    );
}
