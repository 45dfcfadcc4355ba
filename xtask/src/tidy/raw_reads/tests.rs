use super::*;

fn problems(path: &str) -> usize {
    let file = TextFile {
        path: format!("{CORE}{path}"),
        text: "let reply = partition.read_raw(request).await?;\n".to_owned(),
    };
    check(&[file]).len()
}

#[test]
fn raw_reads_are_for_background_and_admin() {
    assert_eq!(problems("items/read.rs"), 1);
    assert_eq!(problems("background/jobs/expire.rs"), 0);
    assert_eq!(problems("admin/import.rs"), 0);
}
