use serde_json::json;

use super::*;

const TABLE: &str = "Text.\n\n| crate | uses | for |\n| --- | --- | --- |\n| `model` | – | words |\n\
                     | `storage` | `model` | bytes |\n\nMore text with a `word`.\n";

fn metadata(storage_uses: &[&str]) -> Value {
    let dependencies: Vec<Value> = storage_uses
        .iter()
        .map(|name| json!({"name": name, "kind": null}))
        .collect();
    json!({"packages": [
        {"name": "model", "dependencies": [{"name": "serde", "kind": null}, {"name": "storage", "kind": "dev"}]},
        {"name": "storage", "dependencies": dependencies},
    ]})
}

#[test]
fn a_correct_table_passes_and_development_dependencies_are_not_restricted() {
    assert_eq!(check(TABLE, &metadata(&["model"])), Vec::<String>::new());
}

#[test]
fn an_edge_that_the_table_lacks_and_one_it_invents_are_reported() {
    let stale = check(TABLE, &metadata(&[]));
    assert_eq!(stale, ["ARCHITECTURE.md: storage does not use model of its row"]);
    let table = TABLE.replace("| `storage` | `model` |", "| `storage` | – |");
    assert_eq!(
        check(&table, &metadata(&["model"])),
        ["ARCHITECTURE.md: storage uses model, which its row lacks"]
    );
}

#[test]
fn a_crate_without_a_row_and_a_row_without_a_crate_are_reported() {
    let table = TABLE.replace("`storage`", "`engine`");
    let problems = check(&table, &metadata(&["model"]));
    assert!(
        problems.iter().any(|problem| problem.contains("no row for storage")),
        "{problems:?}"
    );
    assert!(
        problems
            .iter()
            .any(|problem| problem.contains("engine, which is no crate")),
        "{problems:?}"
    );
}

#[test]
fn using_a_crate_further_down_is_reported() {
    let table = "| crate | uses | for |\n|---|---|---|\n| `model` | `storage` | x |\n| `storage` | – | y |\n";
    assert_eq!(
        upward_uses(&table_in(table)),
        ["ARCHITECTURE.md: model uses storage, which is not above it"]
    );
}
