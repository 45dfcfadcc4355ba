use super::*;

/// A 64-bit ELF file for a processor, with one program header after its header.
fn elf(machine: u8, header_kind: u8) -> Vec<u8> {
    let mut bytes = vec![0; 64 + 56];
    bytes[..4].copy_from_slice(b"\x7fELF");
    bytes[18] = machine;
    // The offset of the program headers, the size of each, and how many there are.
    (bytes[32], bytes[54], bytes[56]) = (64, 56, 1);
    bytes[64] = header_kind;
    bytes
}

#[test]
fn the_processor_is_read_from_the_file() {
    assert_eq!(architecture_of(&elf(62, 1)), Some("amd64"));
    assert_eq!(architecture_of(&elf(183, 1)), Some("arm64"));
    assert_eq!(architecture_of(&elf(40, 1)), None);
    assert_eq!(architecture_of(b"#!/bin/sh\n"), None);
    assert_eq!(architecture_of(b"\x7fELF"), None);
}

#[test]
fn a_binary_with_a_loader_is_not_static() {
    assert!(is_static(&elf(62, 1)));
    assert!(!is_static(&elf(62, 3)));
}

#[test]
fn a_truncated_binary_is_not_static() {
    assert!(!is_static(&elf(62, 1)[..60]));
    assert!(!is_static(&elf(62, 1)[..66]));
    assert!(!is_static(b"\x7fELF"));
}

#[test]
fn parents_come_once_and_before_their_files() {
    let mut tar = Tar::new(Vec::new());
    tar.directory("data", 0o700, USER).expect("written");
    tar.file("usr/bin/a", 0o755, b"a").expect("written");
    tar.file("usr/bin/b", 0o644, b"bb").expect("written");
    let bytes = tar.0.into_inner().expect("finished");
    let mut archive = tar::Archive::new(&bytes[..]);
    let entries = archive.entries().expect("a tar file").map(|entry| {
        let entry = entry.expect("an entry");
        let header = entry.header();
        let path = entry.path().expect("a path").display().to_string();
        (
            path,
            header.mode().expect("a mode"),
            header.uid().expect("an owner"),
            header.size().expect("a size"),
        )
    });
    let expected = [
        ("data/", 0o700, 65532, 0),
        ("usr/", 0o755, 0, 0),
        ("usr/bin/", 0o755, 0, 0),
        ("usr/bin/a", 0o755, 0, 1),
        ("usr/bin/b", 0o644, 0, 2),
    ];
    let expected = expected.map(|(path, mode, owner, size)| (path.to_owned(), mode, owner, size));
    assert_eq!(entries.collect::<Vec<_>>(), expected);
}
