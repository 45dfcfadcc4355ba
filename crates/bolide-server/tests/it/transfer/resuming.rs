//! Servers that are slow, throttle, or change while items are moved.

use super::*;

#[test]
fn a_throttled_import_writes_everything() {
    let server = Server::in_memory(&["--enforce-throughput"]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    let container = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    create(&mut server.client(), &container, "400");
    let file = files.write("a.jsonl", lines(&samples(200)));
    let imported = succeeds(&[&["import", "--file", &file], &of(&endpoint, "c")[..]].concat());
    assert_eq!(imported, "imported 200 items\n");
    assert_eq!(items(&server, "c"), samples(200));
}

#[test]
fn refusals_that_pass_are_tried_again() {
    let server = Server::in_memory(&["--enable-faults"]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    create_plain(&server, "c");
    let rule = |operation: &str, status: u16, times: u32| json!({"match": {"operation": operation}, "status": status, "times": times});
    for status in [429, 449, 503, 408] {
        let rules = json!([rule("Batch", status, 3), rule("ReadFeed", status, 2)]);
        server
            .client()
            .send(&Request::put("/_bolide/faults/rules", rules.to_string()))
            .expect(200);
        let file = files.write(&format!("{status}.jsonl"), lines(&samples(100)));
        succeeds(
            &[
                &["import", "--on-conflict", "replace", "--file", &file],
                &of(&endpoint, "c")[..],
            ]
            .concat(),
        );
        let out = files.text(&format!("{status}.json"));
        assert_eq!(
            succeeds(&[&["export", "--file", &out], &of(&endpoint, "c")[..]].concat()),
            "exported 100 items\n"
        );
    }
    assert_eq!(items(&server, "c"), samples(100));
}

#[test]
fn a_server_without_bulk_requests_gets_single_writes() {
    let server = Server::in_memory(&["--enable-faults"]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    create_plain(&server, "c");
    let rules = json!([{"match": {"operation": "Batch"}, "status": 400, "times": 1_000_000}]);
    server
        .client()
        .send(&Request::put("/_bolide/faults/rules", rules.to_string()))
        .expect(200);
    let file = files.write("a.jsonl", lines(&samples(300)));
    assert_eq!(
        succeeds(&[&["import", "--file", &file], &of(&endpoint, "c")[..]].concat()),
        "imported 300 items\n"
    );
    assert_eq!(items(&server, "c"), samples(300));
}

#[test]
fn items_of_the_largest_size_are_written_alone() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    create_plain(&server, "c");
    let large = |n: usize| json!({"id": format!("i{n}"), "pk": "p", "text": "x".repeat(2 * 1024 * 1024 - 100)});
    let rows: Vec<Value> = (0..6).map(large).collect();
    let file = files.write("a.jsonl", lines(&rows));
    assert_eq!(
        succeeds(&[&["import", "--file", &file], &of(&endpoint, "c")[..]].concat()),
        "imported 6 items\n"
    );
    let out = files.text("out.json");
    assert_eq!(
        succeeds(&[&["export", "--file", &out], &of(&endpoint, "c")[..]].concat()),
        "exported 6 items\n"
    );
    assert!(items(&server, "c") == rows);
}
