use super::*;

#[test]
fn only_links_to_files_of_the_project_are_followed() {
    let text = "[a](docs/a.md#top), [b](https://example.org/b.md), [c](#here) and [d](../LICENSE).";
    assert_eq!(links_in(text).collect::<Vec<_>>(), ["docs/a.md", "../LICENSE"]);
}

#[test]
fn a_link_is_relative_to_the_document() {
    let root = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir(root.path().join("docs")).expect("writable");
    std::fs::write(root.path().join("docs/there.md"), "").expect("writable");
    let document = TextFile {
        path: "docs/a.md".to_owned(),
        text: "[x](there.md) [y](docs/there.md)".to_owned(),
    };
    assert_eq!(
        check(&[document], root.path()),
        ["docs/a.md: the link to docs/there.md leads nowhere"]
    );
}
