//! Files and targets that are not as they should be.

use super::*;

#[test]
fn errors_say_the_line_and_the_column() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    create_plain(&server, "c");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let large = "x".repeat(3 * 1024 * 1024);
    let cases: &[(&str, Vec<u8>, &[&str])] = &[
        (
            "a.jsonl",
            b"{\"id\": \"a\"}\n\n  {\"id\": x}\n".to_vec(),
            &["line 3, column 10", "JSON"],
        ),
        (
            "b.jsonl",
            b"{\"id\": \"a\"}\n{\"id\": \"b".to_vec(),
            &["line 2, column"],
        ),
        (
            "c.jsonl",
            b"{\"id\": \"a\"}\n{\"id\": \"\xFF\"}\n".to_vec(),
            &["line 2, column 9", "UTF-8"],
        ),
        ("d.jsonl", b"[1]\n".to_vec(), &["line 1, column 1", "object"]),
        ("e.jsonl", b"{\"pk\": 1}\n".to_vec(), &["line 1, column 1", "id"]),
        (
            "f.jsonl",
            format!("{{\"id\": \"a\", \"d\": {deep}}}\n").into_bytes(),
            &["line 1, column"],
        ),
        (
            "g.jsonl",
            format!("{{\"id\": \"a\"}}\n{{\"id\": \"b\", \"d\": \"{large}\"}}\n").into_bytes(),
            &["line 2, column 1", "longer"],
        ),
        ("h.json", b"{\"id\": \"a\"}".to_vec(), &["line 1, column 1", "array"]),
        (
            "i.json",
            b"[\n  {\"id\": \"a\"},\n  {\"id\": nope}\n]".to_vec(),
            &["line 3, column 11"],
        ),
        (
            "j.json",
            b"[{\"id\": \"a\"}, {\"id\":".to_vec(),
            &["line 1, column 21", "ends here"],
        ),
        (
            "k.json",
            b"[{\"id\": \"a\"}".to_vec(),
            &["line 1, column 13", "ends here"],
        ),
        ("l.json", b"[{\"id\": \"a\"}] x".to_vec(), &["line 1, column 15"]),
        (
            "m.json",
            b"[{\"id\": \"a\"} {\"id\": \"b\"}]".to_vec(),
            &["line 1, column 14"],
        ),
        (
            "n.json",
            format!("[{{\"id\": \"b\", \"d\": \"{large}\"}}]").into_bytes(),
            &["line 1, column 2", "longer"],
        ),
        ("o.csv", Vec::new(), &["line 1, column 1", "header"]),
        ("p.csv", b"id,a,a\n".to_vec(), &["line 1", "column 3", "twice"]),
        ("q.csv", b"id,a\nx,1\ny\n".to_vec(), &["line 3", "cells"]),
        ("r.csv", b"id,a\nx,\xFF\n".to_vec(), &["line 2", "column 2", "UTF-8"]),
        (
            "s.csv",
            format!("id,a\nx,\"{large}{large}").into_bytes(),
            &["line 2", "longer"],
        ),
    ];
    for (name, content, expected) in cases {
        let file = files.write(name, content);
        // Items before the error may have been written, in an earlier case too.
        let failure = fails(
            &[
                &["import", "--on-conflict", "replace", "--file", &file],
                &of(&endpoint, "c")[..],
            ]
            .concat(),
        );
        let place = format!("{file}: ");
        assert!(failure.contains(&place), "{name}: {failure}");
        for words in *expected {
            assert!(failure.contains(words), "{name}: expected `{words}`: {failure}");
        }
        assert!(failure.len() < 1000, "{name}: a short line");
    }
}

#[test]
fn an_item_that_the_server_refuses_is_named() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    create_plain(&server, "c");
    let mut rows = samples(300);
    rows[250]["ttl"] = json!("never");
    let file = files.write("a.jsonl", lines(&rows));
    let failure = fails(&[&["import", "--file", &file], &of(&endpoint, "c")[..]].concat());
    let place = "line 251, column 1: the item with id `i000250` and partition key [\"p12\"]";
    assert!(failure.contains(place) && failure.contains("ttl"), "{failure}");
}

#[test]
fn a_conflict_is_named_skipped_or_replaced() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    create_plain(&server, "c");
    let there = files.write("there.jsonl", "{\"id\": \"i000003\", \"pk\": \"p3\", \"old\": true}\n");
    succeeds(&[&["import", "--file", &there], &of(&endpoint, "c")[..]].concat());
    let file = files.write("new.jsonl", lines(&samples(10)));
    let import = |how| {
        [
            &["import", "--on-conflict", how, "--file", &file],
            &of(&endpoint, "c")[..],
        ]
        .concat()
    };
    let failure = fails(&import("fail"));
    assert!(failure.contains("line 4, column 1"), "{failure}");
    assert!(
        failure.contains("id `i000003` and partition key [\"p3\"]: it is there already"),
        "{failure}"
    );
    let other_words = fails(&import("skip"));
    assert!(other_words.contains("new.jsonl.bolide-import"), "{other_words}");
    std::fs::remove_file(format!("{file}.bolide-import")).expect("it is there");
    let skipped = succeeds(&import("skip"));
    assert!(skipped.contains("were there already and were skipped"), "{skipped}");
    assert_eq!(
        items(&server, "c")[3],
        json!({"id": "i000003", "pk": "p3", "old": true})
    );
    assert_eq!(
        succeeds(&import("replace")),
        "imported 10 items, 10 of them replaced one\n"
    );
    assert_eq!(items(&server, "c"), samples(10));
}

#[test]
fn the_last_of_several_versions_in_one_file_wins() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    create_plain(&server, "c");
    let version = |n: usize| json!({"id": format!("i{}", n % 50), "pk": format!("p{}", n % 5), "version": n});
    let versions: Vec<Value> = (0..3000).map(version).collect();
    let file = files.write("a.jsonl", lines(&versions));
    let failure = fails(&[&["import", "--file", &file], &of(&endpoint, "c")[..]].concat());
    assert!(failure.contains("it is there already"), "{failure}");
    std::fs::remove_file(format!("{file}.bolide-import")).expect("it is there");
    succeeds(
        &[
            &["import", "--on-conflict", "replace", "--file", &file],
            &of(&endpoint, "c")[..],
        ]
        .concat(),
    );
    let last: Vec<u64> = items(&server, "c")
        .iter()
        .filter_map(|item| item["version"].as_u64())
        .collect();
    assert!(
        last.len() == 50 && last.iter().all(|version| *version >= 2950),
        "{last:?}"
    );
}

#[test]
fn targets_and_options_that_are_wrong_are_named() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    create_plain(&server, "c");
    let file = files.write("a.jsonl", lines(&samples(3)));
    let unknown = fails(&[&["import", "--file", &file], &of(&endpoint, "nope")[..]].concat());
    assert!(unknown.contains("no such container. name=`db/nope`"), "{unknown}");
    let nameless = files.write("a.txt", "");
    let format = fails(&[&["import", "--file", &nameless], &of(&endpoint, "c")[..]].concat());
    assert!(format.contains("--format"), "{format}");
    let missing = fails(&[&["import", "--file", "/no/such/file.jsonl"], &of(&endpoint, "c")[..]].concat());
    assert!(missing.contains("/no/such/file.jsonl"), "{missing}");
    let there = fails(&[&["export", "--file", &file], &of(&endpoint, "c")[..]].concat());
    assert!(there.contains("is there already"), "{there}");
    let key = ["--key", "bm90IHRoZSBrZXkgb2YgdGhpcyBzZXJ2ZXI="];
    let unauthorized = fails(&[&["import", "--file", &file], &of(&endpoint, "c")[..], &key].concat());
    assert!(unauthorized.contains("401"), "{unauthorized}");
    drop(server);
    let gone = fails(&[&["import", "--file", &file], &of(&endpoint, "c")[..]].concat());
    assert!(gone.contains(&endpoint), "{gone}");
}

#[test]
fn a_unique_key_that_is_taken_is_no_item_that_is_there() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    let container = json!({
        "id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/mail"]}]},
    });
    create(&mut server.client(), &container, "400");
    let rows = [
        json!({"id": "a", "pk": "p", "mail": "m"}),
        json!({"id": "b", "pk": "p", "mail": "m"}),
    ];
    let file = files.write("a.jsonl", lines(&rows));
    let failure = fails(
        &[
            &["import", "--on-conflict", "skip", "--file", &file],
            &of(&endpoint, "c")[..],
        ]
        .concat(),
    );
    // Items of a file are written at the same time, so either may be first.
    assert!(failure.contains("a value of its unique key"), "{failure}");
}
