//! Links from one document of the project to another.

use std::path::Path;

use super::TextFile;

/// Every relative link in a document leads to a file that is there.
pub fn check(files: &[TextFile], root: &Path) -> Vec<String> {
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    let broken = |file: &TextFile| {
        let directory = root.join(&file.path);
        let directory = directory.parent().unwrap_or(root).to_path_buf();
        let missing = links_in(&file.text).filter(move |link| !directory.join(link).exists());
        missing
            .map(|link| format!("{}: the link to {link} leads nowhere", file.path))
            .collect::<Vec<_>>()
    };
    documents.flat_map(broken).collect()
}

/// The files that `[text](file#heading)` links name; addresses elsewhere and headings on the same page are none.
fn links_in(text: &str) -> impl Iterator<Item = &str> {
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let files =
        targets.filter(|target| !target.contains("://") && !target.starts_with('#') && !target.starts_with("mailto:"));
    files.filter_map(|target| target.split('#').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_files_of_the_project_are_followed() {
        let text = "[a](docs/a.md#top), [b](https://example.org/b.md), [c](#here) and [d](../LICENSE).";
        assert_eq!(links_in(text).collect::<Vec<_>>(), ["docs/a.md", "../LICENSE"]);
    }

    #[test]
    fn a_link_is_followed_from_where_the_document_lies() {
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
}
