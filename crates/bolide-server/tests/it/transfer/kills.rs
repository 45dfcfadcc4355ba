//! Imports and exports that are killed in the middle, and started again with the same words.

use std::process::{Child, Stdio};

use super::*;

/// Items of an import that is killed: many more than are there at the last kill, so that it is not over on a busy machine either.
const IMPORTED: usize = 12_000;
/// Items of an export that is killed.
const ITEMS: usize = 12_000;

/// A server whose container `c` takes about two thousand items per second, so that an import is never over before it is killed.
fn slow_server() -> Server {
    let server = Server::in_memory(&["--enforce-throughput"]);
    let container = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    create(&mut server.client(), &container, "20000");
    server
}

fn start(arguments: &[&str]) -> Child {
    command()
        .args(arguments)
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary starts")
}

fn count(client: &mut Client) -> u64 {
    let query = Request::post(
        "/_bolide/dbs/db/colls/c/query",
        r#"{"query": "SELECT VALUE COUNT(1) FROM c"}"#,
    );
    unthrottled(client, &query).json()["rows"][0].as_u64().expect("a count")
}

#[test]
fn a_killed_import_goes_on_and_neither_loses_nor_doubles_items() {
    let server = slow_server();
    let endpoint = endpoint(&server);
    let files = Files::new();
    let file = files.write("a.jsonl", lines(&samples(IMPORTED)));
    let import = [&["import", "--file", &file], &of(&endpoint, "c")[..]].concat();
    let mut client = server.client();
    for at in [1, 500, 1_500, 3_000, 5_000] {
        let mut child = start(&import);
        while count(&mut client) < at {
            let ended = child.try_wait().expect("it can be waited for");
            assert!(ended.is_none(), "it ended before {at} items: {ended:?}");
        }
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert!(has_place(&file, "import"), "the place is kept");
    }
    let summary = succeeds(&import);
    assert!(summary.contains("were imported by an earlier run"), "{summary}");
    assert!(!has_place(&file, "import"));
    assert_eq!(items(&server, "c"), samples(IMPORTED));
}

#[test]
fn an_item_that_others_wrote_meanwhile_is_a_conflict() {
    let server = slow_server();
    let endpoint = endpoint(&server);
    let files = Files::new();
    let file = files.write("a.jsonl", lines(&samples(IMPORTED)));
    let import = [&["import", "--file", &file], &of(&endpoint, "c")[..]].concat();
    let mut child = start(&import);
    let mut client = server.client();
    while count(&mut client) < 500 {}
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let last = IMPORTED - 1;
    let other = json!({"id": format!("i{last:06}"), "pk": format!("p{}", last % 17), "other": true});
    let create = Request::post("/dbs/db/colls/c/docs", other.to_string())
        .header("x-ms-documentdb-partitionkey", &format!("[\"p{}\"]", last % 17));
    client.send(&create).expect(201);
    let failure = fails(&import);
    let expected = format!("line {IMPORTED}, column 1: the item with id `i{last:06}`");
    assert!(failure.contains(&expected), "{failure}");
}

/// Starts an export and kills it when its file has so many bytes, if it is not over before.
fn kill_export(export: &[&str], file: &str, bytes: u64) {
    if Path::new(file).exists() && !has_place(file, "export") {
        return;
    }
    let mut child = start(export);
    let is_long = || std::fs::metadata(file).is_ok_and(|metadata| metadata.len() >= bytes);
    while !is_long() && child.try_wait().expect("it can be waited for").is_none() {}
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

#[test]
fn a_killed_export_goes_on_and_neither_loses_nor_doubles_items() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    create_plain(&server, "c");
    let source = files.write("source.jsonl", lines(&samples(ITEMS)));
    succeeds(&[&["import", "--file", &source], &of(&endpoint, "c")[..]].concat());
    for ending in ["jsonl", "json", "csv"] {
        let file = files.text(&format!("out.{ending}"));
        let export = [&["export", "--file", &file], &of(&endpoint, "c")[..]].concat();
        for at in [1, 1_200_000, 2_400_000] {
            kill_export(&export, &file, at);
        }
        if has_place(&file, "export") {
            let summary = succeeds(&export);
            assert!(summary.contains("of them by an earlier run"), "{summary}");
        }
        let id = format!("again-{ending}");
        create_plain(&server, &id);
        succeeds(&[&["import", "--file", &file], &of(&endpoint, &id)[..]].concat());
        assert_eq!(items(&server, &id), samples(ITEMS), "{ending}");
    }
}

#[test]
fn a_split_range_is_exported_once() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    create_plain(&server, "c");
    let source = files.write("source.jsonl", lines(&samples(ITEMS)));
    succeeds(&[&["import", "--file", &source], &of(&endpoint, "c")[..]].concat());
    let file = files.text("out.jsonl");
    let export = [&["export", "--file", &file], &of(&endpoint, "c")[..]].concat();
    kill_export(&export, &file, 1_200_000);
    let mut client = server.client();
    for range in ["0", "1", "2"] {
        let split = Request::post("/_bolide/dbs/db/colls/c/split", json!({"range": range}).to_string());
        client.send(&split).expect(200);
    }
    if has_place(&file, "export") {
        succeeds(&export);
    }
    create_plain(&server, "again");
    succeeds(&[&["import", "--file", &file], &of(&endpoint, "again")[..]].concat());
    assert_eq!(items(&server, "again"), samples(ITEMS));
}
