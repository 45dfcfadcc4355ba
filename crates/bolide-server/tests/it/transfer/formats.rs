//! What one format writes, it reads again.

use super::*;

#[test]
fn every_format_gives_the_same_items_again() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    create_plain(&server, "from");
    let source = files.write("source.jsonl", lines(&samples(500)));
    let imported = succeeds(&[&["import", "--file", &source], &of(&endpoint, "from")[..]].concat());
    assert_eq!(imported, "imported 500 items\n");
    assert_eq!(items(&server, "from"), samples(500));
    for ending in ["jsonl", "ndjson", "json", "csv"] {
        let file = files.text(&format!("out.{ending}"));
        let exported = succeeds(&[&["export", "--file", &file], &of(&endpoint, "from")[..]].concat());
        assert_eq!(exported, "exported 500 items\n");
        create_plain(&server, ending);
        succeeds(&[&["import", "--file", &file], &of(&endpoint, ending)[..]].concat());
        assert_eq!(items(&server, ending), samples(500), "{ending}");
        assert!(!has_place(&file, "import") && !has_place(&file, "export"), "{ending}");
    }
}

#[test]
fn an_empty_container_gives_a_file_without_items() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    create_plain(&server, "from");
    for (ending, expected) in [("jsonl", ""), ("json", "[\n]\n"), ("csv", "id\n")] {
        let file = files.text(&format!("out.{ending}"));
        let exported = succeeds(&[&["export", "--file", &file], &of(&endpoint, "from")[..]].concat());
        assert_eq!(exported, "exported 0 items\n");
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), expected);
        let imported = succeeds(&[&["import", "--file", &file], &of(&endpoint, "from")[..]].concat());
        assert_eq!(imported, "imported 0 items\n");
    }
}

#[test]
fn hierarchical_and_missing_keys_are_kept() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    let key = json!({"paths": ["/tenant", "/user/name", "/n"], "kind": "MultiHash", "version": 2});
    for id in ["from", "to"] {
        create(&mut server.client(), &json!({"id": id, "partitionKey": key}), "30000");
    }
    let keys = [
        json!({"id": "a", "tenant": "t", "user": {"name": "ada"}, "n": 1}),
        json!({"id": "b", "tenant": "t", "user": {"name": "ada"}}),
        json!({"id": "c", "tenant": null, "user": {"name": true}, "n": 1.5}),
        json!({"id": "d", "user": 5}),
        json!({"id": "e"}),
    ];
    let source = files.write("source.jsonl", lines(&keys));
    succeeds(&[&["import", "--file", &source], &of(&endpoint, "from")[..]].concat());
    let out = files.text("out.json");
    succeeds(&[&["export", "--file", &out], &of(&endpoint, "from")[..]].concat());
    succeeds(&[&["import", "--file", &out], &of(&endpoint, "to")[..]].concat());
    assert_eq!(items(&server, "to"), keys);
}

#[test]
fn standard_input_and_output_are_files_too() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    create_plain(&server, "c");
    let mut child = command()
        .args([&["import", "--file", "-", "--format", "jsonl"], &of(&endpoint, "c")[..]].concat())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut input = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, lines(&samples(5)).as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "imported 5 items\n");
    let exported = bolide(&[&["export", "--file", "-", "--format", "jsonl"], &of(&endpoint, "c")[..]].concat());
    assert_eq!(String::from_utf8_lossy(&exported.stderr), "exported 5 items\n");
    let lines = String::from_utf8(exported.stdout).expect("UTF-8");
    let mut ids: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an item")["id"].take())
        .collect();
    ids.sort_by_key(|id| id.to_string());
    assert_eq!(
        ids,
        samples(5).iter().map(|item| item["id"].clone()).collect::<Vec<_>>()
    );
}

#[test]
fn a_data_directory_is_read_and_written_without_a_server() {
    let data = TempDir::new().expect("a temporary directory");
    let directory = data.path().to_str().expect("UTF-8");
    let files = Files::new();
    let server = Server::on(data.path(), &[]);
    create_plain(&server, "c");
    let target = ["--data-dir", directory, "--database", "db", "--container", "c"];
    let source = files.write("source.jsonl", lines(&samples(300)));
    let taken = fails(&[&["import", "--file", &source], &target[..]].concat());
    assert!(taken.contains("--data-dir"), "{taken}");
    drop(server);
    let imported = succeeds(&[&["import", "--file", &source], &target[..]].concat());
    assert_eq!(imported, "imported 300 items\n");
    let out = files.text("out.jsonl");
    succeeds(&[&["export", "--file", &out], &target[..]].concat());
    let server = Server::on(data.path(), &[]);
    assert_eq!(items(&server, "c"), samples(300));
    create_plain(&server, "again");
    let endpoint = endpoint(&server);
    succeeds(&[&["import", "--file", &out], &of(&endpoint, "again")[..]].concat());
    assert_eq!(items(&server, "again"), samples(300));
}

#[test]
fn times_are_kept_in_a_new_container() {
    let server = Server::in_memory(&[]);
    let endpoint = endpoint(&server);
    let files = Files::new();
    for id in ["new", "used", "missing"] {
        create_plain(&server, id);
    }
    let with_times: Vec<Value> = (0..50)
        .map(|n| json!({"id": format!("i{n}"), "pk": "p", "_ts": 1_700_000_000 + n}))
        .collect();
    let json = files.write("source.json", serde_json::to_string_pretty(&with_times).expect("JSON"));
    let import = |container| {
        [
            &["import", "--keep-timestamps", "--file", &json],
            &of(&endpoint, container)[..],
        ]
        .concat()
    };
    assert_eq!(succeeds(&import("new")), "imported 50 items\n");
    let read = Request::get("/dbs/db/colls/new/docs/i7").pk();
    let item = server.client().send(&read).expect(200).json();
    assert_eq!(item["_ts"], 1_700_000_007);
    let again = fails(&import("new"));
    assert!(again.contains("never written"), "{again}");
    assert!(!has_place(&json, "import"));

    let source = files.write(
        "times.jsonl",
        "{\"id\": \"a\", \"pk\": \"p\", \"_ts\": 5}\n\n{\"id\": \"b\", \"pk\": \"p\"}\n",
    );
    let timeless = fails(
        &[
            &["import", "--keep-timestamps", "--file", &source],
            &of(&endpoint, "missing")[..],
        ]
        .concat(),
    );
    assert!(
        timeless.contains("line 3, column 1") && timeless.contains("_ts"),
        "{timeless}"
    );
    assert_eq!(items(&server, "missing"), Vec::<Value>::new(), "all or none");
}
