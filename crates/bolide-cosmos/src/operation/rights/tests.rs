use std::fmt::Write as _;

use super::*;
use crate::admin;
use crate::operation::Operation;

/// The document that shows the table.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
const BEGIN: &str =
    "<!-- rights: begin; `UPDATE=1 cargo test -p bolide-cosmos --lib rights` writes this from the code -->\n";
const END: &str = "<!-- rights: end -->\n";

fn key(key: Access) -> &'static str {
    match key {
        Access::ReadOnly => "read-only",
        Access::Full => "read-write",
    }
}

fn mode(mode: Option<PermissionMode>) -> &'static str {
    mode.map_or("–", PermissionMode::as_str)
}

fn tables() -> String {
    let mut text = String::from(
        "| operation | account key | token for a container | for a partition key | for an item | for a script |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for operation in Operation::all() {
        let rights = operation.rights();
        let [container, partition_key, item, script] = rights.tokens.map(mode);
        writeln!(
            text,
            "| {} | {} | {container} | {partition_key} | {item} | {script} |",
            operation.name(),
            key(rights.key)
        )
        .expect("writing to a String cannot fail");
    }
    text.push_str("\n| route | account key |\n| --- | --- |\n");
    for route in &admin::ROUTES {
        let key = route.key.map_or("none", key);
        writeln!(text, "| {} /_bolide/{} | {key} |", route.method, route.path)
            .expect("writing to a String cannot fail");
    }
    for open in ["/_explorer/emulator.pem", "/_explorer/{file}"] {
        writeln!(text, "| GET {open} | none |").expect("writing to a String cannot fail");
    }
    text
}

#[test]
fn the_page_on_security_shows_this_table() {
    let page = std::fs::read_to_string(PAGE).expect("docs/security.md can be read");
    let (head, rest) = page.split_once(BEGIN).expect("the page marks where the table begins");
    let (shown, tail) = rest.split_once(END).expect("the page marks where the table ends");
    let table = format!("\n{}\n", tables());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(PAGE, format!("{head}{BEGIN}{table}{END}{tail}")).expect("docs/security.md can be written");
        return;
    }
    assert_eq!(
        shown, table,
        "docs/security.md shows another table than the code has; `UPDATE=1 cargo test -p bolide-cosmos --lib rights` writes it anew"
    );
}

#[test]
fn tokens_for_less_open_no_more_than_tokens_for_the_container() {
    let rank = |mode: Option<PermissionMode>| match mode {
        Some(PermissionMode::Read) => 0,
        Some(PermissionMode::All) => 1,
        None => 2,
    };
    for operation in Operation::all() {
        let [container, smaller @ ..] = operation.rights().tokens;
        assert!(
            smaller.into_iter().all(|mode| rank(mode) >= rank(container)),
            "{}",
            operation.name()
        );
    }
}

#[test]
fn read_only_tokens_cannot_write() {
    for operation in Operation::all() {
        let rights = operation.rights();
        assert!(
            rights.key == Access::ReadOnly || !rights.tokens.contains(&READ),
            "{}",
            operation.name()
        );
    }
}
