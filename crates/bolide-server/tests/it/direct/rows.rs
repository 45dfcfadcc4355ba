//! The rows of the table: every operation that .NET sends in frames (rntbd.md §1.4), with the answers that it can have.

use serde_json::{Value, json};

use super::call::{Call, More, Operation, Resource, Scope, Sender};
use super::client::Style;
use super::hybrid_row::{self, Operation as InBatch};
use super::table::{Follow, Row};
use crate::client::Request;

/// Containers, about whose items all frames but those of databases ask: `c`; `w` has several ranges, `h` keys of two parts, `e` no items; the throughput of
/// `t` is spent, an item of `l` expires, and `g` is deleted.
pub const CONTAINERS: [&str; 7] = ["c", "w", "h", "e", "t", "l", "g"];

/// Ranges of them that frames name: each of `w`, and the only one of the others.
pub const RANGES: usize = CONTAINERS.len() + 4;

const P: &str = r#"["p"]"#;
const Q: &str = r#"["q"]"#;
/// A position that no range has.
const AHEAD: &str = "0:-1#1000000";

/// What makes a database with all that the rows are about.
pub fn preparation(database: &str) -> Vec<Request> {
    let at = |path: &str| format!("/dbs/{database}{path}");
    let mut made = vec![Request::post("/dbs", json!({"id": database}).to_string())];
    for id in CONTAINERS {
        made.push(definition(&at("/colls"), id));
        made.push(Request::put(
            &format!("/_bolide{}", at(&format!("/colls/{id}/throughput"))),
            r#"{"mode":"unlimited"}"#,
        ));
    }
    let item = |container: &str, body: Value, key: Value| {
        let path = at(&format!("/colls/{container}/docs"));
        Request::post(&path, body.to_string()).header("x-ms-documentdb-partitionkey", &key.to_string())
    };
    made.extend((1..=5).map(|n| item("c", json!({"id": format!("q{n}"), "pk": "q", "n": n}), json!(["q"]))));
    for n in 0..10 {
        let key = format!("k{n}");
        made.push(item("w", json!({"id": format!("w{n}"), "pk": key}), json!([key])));
    }
    made.push(item("h", json!({"id": "x", "a": "1", "b": "2"}), json!(["1", "2"])));
    made.push(item("l", json!({"id": "short", "pk": "p", "ttl": 10}), json!(["p"])));
    made.push(item("g", json!({"id": "x", "pk": "p"}), json!(["p"])));
    made.push(item("t", json!({"id": "x", "pk": "p"}), json!(["p"])));
    // What that has consumed is more, and the clock stands still.
    made.push(Request::put(
        &format!("/_bolide{}", at("/colls/t/throughput")),
        r#"{"mode":"provisioned","ru":1}"#,
    ));
    for (kind, body) in scripts() {
        made.push(Request::post(&at(&format!("/colls/c/{kind}")), body.to_string()));
    }
    for user in ["u", "v", "reads", "all", "key"] {
        made.push(Request::post(&at("/users"), json!({"id": user}).to_string()));
    }
    for (id, container) in [("p1", "c"), ("p2", "w")] {
        let resource = format!("dbs/{database}/colls/{container}");
        let permission = json!({"id": id, "permissionMode": "Read", "resource": resource});
        made.push(Request::post(&at("/users/u/permissions"), permission.to_string()));
    }
    // Users of one permission each: only one of them may be about the same container.
    for mut permission in [
        json!({"id": "reads", "permissionMode": "Read"}),
        json!({"id": "all", "permissionMode": "All"}),
        json!({"id": "key", "permissionMode": "All", "resourcePartitionKey": ["p"]}),
    ] {
        permission["resource"] = format!("dbs/{database}/colls/c").into();
        let path = at(&format!(
            "/users/{}/permissions",
            permission["id"].as_str().expect("text")
        ));
        made.push(Request::post(&path, permission.to_string()));
    }
    made
}

fn definition(path: &str, id: &str) -> Request {
    let mut definition = json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    match id {
        "h" => definition["partitionKey"] = json!({"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}),
        "l" => definition["defaultTtl"] = json!(-1),
        _ => {}
    }
    let create = Request::post(path, definition.to_string());
    match id {
        "w" => create.header("x-ms-offer-throughput", "30000"),
        _ => create,
    }
}

fn scripts() -> [(&'static str, Value); 4] {
    let answers = "function s(n) { console.log('ä ' + n); getContext().getResponse().setBody({n: n}); }";
    let writes = "function writes(id) {
        var c = getContext().getCollection();
        c.createDocument(c.getSelfLink(), {id: id, pk: 'p'}, function (error, made) {
            if (error) throw error;
            getContext().getResponse().setBody(made.id);
        });
    }";
    let before =
        "function t() { var r = getContext().getRequest(); var b = r.getBody(); b.seen = true; r.setBody(b); }";
    [
        ("sprocs", json!({"id": "s", "body": answers})),
        (
            "sprocs",
            json!({"id": "throws", "body": "function throws() { throw new Error('no'); }"}),
        ),
        ("sprocs", json!({"id": "writes", "body": writes})),
        (
            "triggers",
            json!({"id": "t", "triggerType": "Pre", "triggerOperation": "All", "body": before}),
        ),
    ]
}

/// All rows, in the order in which they are sent.
pub fn all(style: Style) -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(reads());
    rows.extend(writes());
    rows.extend(batches());
    rows.extend(queries());
    rows.extend(feeds());
    rows.extend(change_feeds());
    rows.extend(ranges());
    rows.extend(others());
    rows.extend(scripts_and_conflicts());
    rows.extend(databases());
    rows.extend(users_and_permissions());
    rows.extend(senders());
    rows.extend(faults());
    rows.extend(without_throughput());
    rows.extend(times(style));
    rows
}

/// Rows for levels that are stronger than the account's.
pub fn above_the_account() -> Vec<Row> {
    vec![
        row("a read above the account", item(Operation::Read, "q1").key(Q), 400, 0),
        row("a query above the account", query("SELECT * FROM c").range(0), 400, 0),
        row("a feed above the account", items(Operation::ReadFeed).range(0), 400, 0),
    ]
}

fn row(name: &'static str, call: Call, status: u16, sub_status: u32) -> Row {
    Row {
        name,
        call,
        status,
        sub_status,
        before: Vec::new(),
        before_each: None,
        follow: Follow::No,
        items: None,
        is_ahead: false,
    }
}

impl Row {
    /// Goes on with continuations, to so many items.
    fn pages(self, items: u64) -> Row {
        self.all_pages().items(items)
    }

    fn all_pages(mut self) -> Row {
        self.follow = Follow::Continuation;
        self
    }

    /// Goes on with etags, to so many items.
    fn changes(mut self, items: u64) -> Row {
        self.follow = Follow::Etag;
        self.items(items)
    }

    fn items(mut self, items: u64) -> Row {
        self.items = Some(items);
        self
    }

    fn after(mut self, method: &'static str, path: &'static str, body: &'static str) -> Row {
        self.before.push((method, path, body));
        self
    }

    fn with_fault(mut self, rules: &'static str) -> Row {
        self.before_each = Some(("PUT", "/_bolide/faults/rules", rules));
        self
    }

    fn ahead(mut self) -> Row {
        self.is_ahead = true;
        self
    }
}

fn items(operation: Operation) -> Call {
    Call::new(Resource::Item, operation, "c")
}

/// An operation on an item with the key `p`.
fn item(operation: Operation, id: &str) -> Call {
    items(operation).leaf(id).key(P)
}

/// A new item with the key `p`.
fn create(body: &str) -> Call {
    items(Operation::Create).key(P).body(body)
}

fn upsert(body: &str) -> Call {
    items(Operation::Upsert).key(P).body(body)
}

fn query(text: &str) -> Call {
    items(Operation::Query).body(json!({"query": text, "parameters": []}).to_string())
}

fn changes() -> Call {
    items(Operation::ReadFeed).with(More::Text(0x3F, "a-im", "Incremental Feed".to_owned()))
}

fn since(time: &str) -> More {
    More::Text(0x47, "if-modified-since", time.to_owned())
}

fn in_container(container: &'static str, call: Call) -> Call {
    Call { container, ..call }
}

fn minimal() -> More {
    More::Word(0x82, "prefer", 1, "return=minimal")
}

/// A question for how far a range is.
fn barrier(target: u16, header: &'static str, container: &'static str) -> Call {
    let head = Call::new(Resource::Container, Operation::Head, container);
    head.leaf(container).key(P).with(More::Position(target, header, 1))
}

/// From a bound of effective partition keys to another one; an empty start is left out.
fn between(call: Call, start: &str, end: &str) -> Call {
    let call = match start {
        "" => call,
        start => call.with(More::Ascii(0x62, "x-ms-start-epk", start.to_owned())),
    };
    call.with(More::Ascii(0x63, "x-ms-end-epk", end.to_owned()))
        .with(More::Word(0x64, "x-ms-read-key-type", 3, "EffectivePartitionKeyRange"))
}

#[rustfmt::skip]
fn reads() -> Vec<Row> {
    let of = |id: &str| item(Operation::Read, id).key(Q);
    let in_deleted = |call| in_container("g", call);
    vec![
        row("a read in a container without items", in_container("e", of("none")), 404, 0),
        row("a read", of("q1"), 200, 0),
        row("a read of what is not there", of("none"), 404, 0),
        row("a read without a change", of("q1").with(More::OwnEtag), 304, 0),
        row("a read after a change", of("q1").matching("\"other\""), 200, 0),
        row("a read with another key", item(Operation::Read, "q1"), 404, 0),
        row("a read with a malformed key", item(Operation::Read, "q1").key("q"), 400, 0),
        row("a read without a key", items(Operation::Read).leaf("q1"), 400, 0),
        row("a read in its session", of("q1").session("0:-1#1"), 200, 0),
        row("a read before its session", of("q1").session(AHEAD), 404, 1002).ahead(),
        row("a read with a malformed session", of("q1").session("x"), 400, 0),
        row("a read in a container that is deleted next", in_deleted(item(Operation::Read, "x")), 200, 0),
        row("a read in a deleted container", in_deleted(item(Operation::Read, "x")), 404, 0).after("DELETE", "/dbs/{db}/colls/g", ""),
        row("a query of a deleted container", in_deleted(query("SELECT * FROM c").range(0)), 404, 1003),
        row("a write to a deleted container", in_deleted(create(r#"{"id":"y","pk":"p"}"#)), 404, 1003),
    ]
}

// Long: it is a table.
#[rustfmt::skip]
fn writes() -> Vec<Row> {
    let replace = |id: &str, body: &str| item(Operation::Replace, id).body(body);
    let patch = |id: &str, body: &str| item(Operation::Patch, id).body(body);
    let delete = |id: &str| item(Operation::Delete, id);
    let keyed = |key, body: &str| items(Operation::Create).key(key).body(body);
    let in_two = |call: Call| in_container("h", call.key(r#"["1","2"]"#));
    let trigger = |name: &str| More::Text(0x09, "x-ms-documentdb-pre-trigger-include", name.to_owned());
    let large = format!(r#"{{"id":"large","pk":"p","text":"{}"}}"#, "x".repeat(2_200_000));
    let set = r#"{"operations":[{"op":"set","path":"/n","value":5}]}"#;
    let conditional = r#"{"condition":"from c where c.n = 99","operations":[{"op":"set","path":"/n","value":6}]}"#;
    let fulfilled = r#"{"condition":"from c where c.n = 5","operations":[{"op":"incr","path":"/n","value":1}]}"#;
    vec![
        row("a create", create(r#"{"id":"a","pk":"p","n":1}"#), 201, 0),
        row("a second create", create(r#"{"id":"a","pk":"p"}"#), 409, 0),
        row("a create of malformed JSON", create(r#"{"id":"#), 400, 0),
        row("a create without an id", create(r#"{"pk":"p"}"#), 400, 0),
        row("a create under another key", create(r#"{"id":"b","pk":"other"}"#), 400, 1001),
        row("a create without an answer", create(r#"{"id":"b","pk":"p"}"#).with(minimal()), 201, 0),
        row("a create with a trigger", create(r#"{"id":"t","pk":"p"}"#).with(trigger("t")), 201, 0),
        row("a create with a trigger that is not there", create(r#"{"id":"t2","pk":"p"}"#).with(trigger("none")), 400, 0),
        row("a create of too much", create(&large), 413, 0),
        row("a create with an odd id", create(r#"{"id":"ü x+%2F","pk":"p"}"#), 201, 0),
        row("a read of an odd id", item(Operation::Read, "ü x+%2F"), 200, 0),
        row("a create with a key in Unicode", keyed(r#"["ключ"]"#, r#"{"id":"k","pk":"ключ"}"#), 201, 0),
        row("a read with a key in Unicode", item(Operation::Read, "k").key(r#"["ключ"]"#), 200, 0),
        row("a create with null as its key", keyed("[null]", r#"{"id":"nil","pk":null}"#), 201, 0),
        row("a read with null as its key", item(Operation::Read, "nil").key("[null]"), 200, 0),
        row("a create with no key", keyed("[{}]", r#"{"id":"no"}"#), 201, 0),
        row("a read with no key", item(Operation::Read, "no").key("[{}]"), 200, 0),
        row("a create with a key of two parts", in_two(create(r#"{"id":"y","a":"1","b":"2"}"#)), 201, 0),
        row("a read with a key of two parts", in_two(item(Operation::Read, "y")), 200, 0),
        row("a read with one of two parts", in_two(item(Operation::Read, "y")).key(r#"["1"]"#), 400, 1001),
        row("a replace", replace("a", r#"{"id":"a","pk":"p","n":2}"#), 200, 0),
        row("a replace without an answer", replace("a", r#"{"id":"a","pk":"p","n":2}"#).with(minimal()), 200, 0),
        row("a replace of the same", replace("a", r#"{"id":"a","pk":"p","n":3}"#).with(More::OwnEtag), 200, 0),
        row("a replace of another", replace("a", r#"{"id":"a","pk":"p"}"#).matching("\"other\""), 412, 0),
        row("a replace of nothing", replace("none", r#"{"id":"none","pk":"p"}"#), 404, 0),
        row("a replace by malformed JSON", replace("a", "{"), 400, 0),
        row("an upsert that creates", upsert(r#"{"id":"u","pk":"p"}"#), 201, 0),
        row("an upsert that replaces", upsert(r#"{"id":"u","pk":"p","n":1}"#), 200, 0),
        row("an upsert without an answer", upsert(r#"{"id":"u","pk":"p","n":1}"#).with(minimal()), 200, 0),
        row("an upsert of another", upsert(r#"{"id":"u","pk":"p"}"#).matching("\"other\""), 412, 0),
        row("a patch", patch("a", set), 200, 0),
        row("a patch without an answer", patch("a", set).with(minimal()), 200, 0),
        row("a patch whose condition holds", patch("a", fulfilled), 200, 0),
        row("a patch whose condition does not hold", patch("a", conditional), 412, 1110),
        row("a patch of another", patch("a", set).matching("\"other\""), 412, 0),
        row("a patch of nothing", patch("none", set), 404, 0),
        row("a patch without operations", patch("a", r#"{"operations":[]}"#), 400, 0),
        row("a patch of malformed JSON", patch("a", "{"), 400, 0),
        row("a delete of another", delete("u").matching("\"other\""), 412, 0),
        row("a delete", delete("u"), 204, 0),
        row("a second delete", delete("u"), 404, 0),
        row("a delete of the same", delete("b").with(More::OwnEtag), 204, 0),
        row("a delete without a key", items(Operation::Delete).leaf("a"), 400, 0),
        row("a read after deletes", item(Operation::Read, "a"), 200, 0),
    ]
}

fn operation<'a>(kind: i32, id: Option<&'a str>, body: Option<&'a str>) -> InBatch<'a> {
    InBatch {
        kind,
        id,
        body,
        ..InBatch::default()
    }
}

/// A batch that is done as a whole or not at all.
fn atomic(body: impl AsRef<[u8]>) -> Call {
    items(Operation::Batch)
        .key(P)
        .body(body)
        .with(More::Flag(0x73, "x-ms-cosmos-batch-atomic", true))
        .with(More::Flag(0x75, "x-ms-cosmos-batch-ordered", true))
}

fn bulk(body: impl AsRef<[u8]>) -> Call {
    items(Operation::Batch)
        .range(0)
        .body(body)
        .with(More::Flag(0x73, "x-ms-cosmos-batch-atomic", false))
        .with(More::Flag(0x74, "x-ms-cosmos-batch-continue-on-error", true))
}

#[rustfmt::skip]
fn batches() -> Vec<Row> {
    use hybrid_row::{CREATE, DELETE, PATCH, READ, REPLACE, UPSERT, batch};
    let keyed = |kind, id, body| InBatch { key: Some(P), ..operation(kind, id, body) };
    let committed = batch(&[
        operation(CREATE, None, Some(r#"{"id":"b1","pk":"p"}"#)),
        operation(UPSERT, None, Some(r#"{"id":"b2","pk":"p"}"#)),
        operation(REPLACE, Some("b1"), Some(r#"{"id":"b1","pk":"p","n":1}"#)),
        operation(PATCH, Some("b1"), Some(r#"{"operations":[{"op":"set","path":"/m","value":2}]}"#)),
        operation(READ, Some("b1"), None),
        operation(DELETE, Some("b2"), None),
    ]);
    let undone = batch(&[
        operation(CREATE, None, Some(r#"{"id":"b3","pk":"p"}"#)),
        operation(CREATE, None, Some(r#"{"id":"b1","pk":"p"}"#)),
        operation(READ, Some("b1"), None),
    ]);
    let replaced = operation(REPLACE, Some("b1"), Some(r#"{"id":"b1","pk":"p"}"#));
    let of_another = batch(&[InBatch { if_match: Some("\"other\""), ..replaced }]);
    let done = batch(&[
        keyed(CREATE, None, Some(r#"{"id":"k1","pk":"p"}"#)),
        keyed(UPSERT, None, Some(r#"{"id":"k1","pk":"p","n":1}"#)),
    ]);
    let mixed = batch(&[
        keyed(CREATE, None, Some(r#"{"id":"k2","pk":"p"}"#)),
        keyed(CREATE, None, Some(r#"{"id":"k2","pk":"p"}"#)),
        keyed(READ, Some("none"), None),
        keyed(DELETE, Some("k1"), None),
    ]);
    vec![
        row("a batch", atomic(committed), 200, 0),
        row("a batch that is undone", atomic(undone), 207, 0),
        row("a read of what was undone", item(Operation::Read, "b3"), 404, 0),
        row("a batch on another", atomic(of_another), 207, 0),
        row("a batch that reads", atomic(batch(&[operation(READ, Some("b1"), None)])), 200, 0),
        row("a malformed batch", atomic(b"\x81\xf0\xd8\xff\x7f"), 400, 0),
        row("a batch in JSON", atomic(r#"[{"operationType":"Read","id":"b1"}]"#), 200, 0),
        row("a bulk", bulk(done), 200, 0),
        row("a bulk with failures", bulk(mixed), 207, 0),
        row("a malformed bulk", bulk("x"), 400, 0),
    ]
}

#[rustfmt::skip]
fn queries() -> Vec<Row> {
    let on_range = |text: &str| query(text).range(0);
    let of_q = |text: &str| query(text).key(Q);
    let one = || on_range("SELECT * FROM c WHERE c.id = 'q3'");
    let with_parameters = json!({"query": "SELECT c.id FROM c WHERE c.n > @n AND c.pk = @k", "parameters": [
        {"name": "@n", "value": 3}, {"name": "@k", "value": "q"},
    ]});
    let index_metrics = More::Flag(0xC2, "x-ms-cosmos-populateindexmetrics-V2", true);
    let old_index_metrics = More::Flag(0xA9, "x-ms-cosmos-populateindexmetrics", true);
    let without_metrics = More::Flag(0x42, "x-ms-documentdb-populatequerymetrics", false);
    let short_continuation = More::Number(0x43, "x-ms-documentdb-responsecontinuationtokenlimitinkb", 1);
    vec![
        row("a query in pages", on_range("SELECT * FROM c WHERE c.pk = 'q'").page(2), 200, 0).pages(5),
        row("a query of a key in pages", of_q("SELECT * FROM c").page(2).with(short_continuation), 200, 0).pages(5),
        row("a query in order", on_range("SELECT c.n FROM c WHERE c.pk = 'q' ORDER BY c.n DESC").page(3), 200, 0).pages(5),
        row("a query with parameters", on_range("").body(with_parameters.to_string()), 200, 0).items(2),
        row("a count", on_range("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'q'"), 200, 0).items(1),
        row("a sum of a key", of_q("SELECT VALUE SUM(c.n) FROM c"), 200, 0).items(1),
        row("groups", of_q("SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk"), 200, 0).items(1),
        row("a query of one item", one(), 200, 0).items(1),
        row("a query for nothing", on_range("SELECT * FROM c WHERE c.n = 77"), 200, 0).items(0),
        row("a query without metrics", one().with(without_metrics), 200, 0).items(1),
        row("a query with metrics of indexes", one().with(index_metrics), 200, 0).items(1),
        row("a query with old metrics of indexes", one().with(old_index_metrics), 200, 0).items(1),
        row("a query that is none", on_range("SELEC * FROM c"), 400, 0),
        row("a query whose body is none", on_range("").body("{"), 400, 0),
        row("a query with a wrong continuation", on_range("SELECT * FROM c").continuing("x"), 400, 0),
        row("a query of a range that is not there", query("SELECT * FROM c").range(77), 410, 1002),
        row("a query before its session", one().session(AHEAD), 404, 1002).ahead(),
        row("a query up to a bound", between(on_range("SELECT c.id FROM c WHERE c.pk = 'q'"), "", "1F"), 200, 0).items(5),
        row("a query between bounds", between(on_range("SELECT c.id FROM c WHERE c.pk = 'q'"), "1F", "FF"), 200, 0).items(0),
        row("a query between bounds in pages", between(on_range("SELECT c.id FROM c").page(3), "0F", "FF"), 200, 0).all_pages(),
        row("a query of one of two parts", in_container("h", between(on_range("SELECT * FROM c"), "", "FF")), 200, 0).items(2),
        row("a query of an empty container", in_container("e", on_range("SELECT * FROM c")), 200, 0).items(0),
    ]
}

#[rustfmt::skip]
fn feeds() -> Vec<Row> {
    let feed = || items(Operation::ReadFeed);
    vec![
        row("a feed of a range", feed().range(0), 200, 0).items(13),
        row("a feed of a range in pages", feed().range(0).page(3), 200, 0).pages(13),
        row("a feed of a key", feed().key(Q), 200, 0).items(5),
        row("a feed of a key in pages", feed().key(Q).page(2), 200, 0).pages(5),
        row("a feed of a key without items", feed().key(r#"["none"]"#), 200, 0).items(0),
        row("a feed of an empty container", in_container("e", feed().range(0)), 200, 0).items(0),
        row("a feed with a wrong continuation", feed().range(0).continuing("x"), 400, 0),
        row("a feed of a range that is not there", feed().range(77), 410, 1002),
        row("a feed before its session", feed().range(0).session(AHEAD), 404, 1002).ahead(),
    ]
}

#[rustfmt::skip]
fn change_feeds() -> Vec<Row> {
    let of_range = || changes().range(0);
    vec![
        row("all changes", of_range(), 200, 0).changes(13),
        row("all changes in pages", of_range().page(4), 200, 0).changes(13),
        row("changes of a key", changes().key(Q).page(2), 200, 0).changes(5),
        row("changes from now", of_range().matching("*"), 304, 0).changes(0),
        row("changes of a key from now", changes().key(Q).matching("*"), 304, 0),
        row("changes since a time", of_range().with(since("Tue, 14 Nov 2023 22:13:10 GMT")), 200, 0).changes(13),
        row("changes since a later time", of_range().with(since("Tue, 14 Nov 2023 23:13:20 GMT")), 304, 0),
        row("changes since no time", of_range().with(since("yesterday")), 400, 0),
        row("changes up to a bound", between(of_range(), "", "1F"), 200, 0),
        row("changes between bounds", between(of_range().page(3), "1F", "FF"), 200, 0),
        row("changes in an empty container", in_container("e", of_range()), 304, 0),
        row("changes after no continuation", of_range().matching("\"x\""), 400, 0),
        row("changes of a range that is not there", changes().range(77), 410, 1002),
        row("changes before their session", of_range().session(AHEAD), 404, 1002).ahead(),
    ]
}

/// In a container with five ranges.
#[rustfmt::skip]
fn ranges() -> Vec<Row> {
    let read = |id: &str, key| in_container("w", item(Operation::Read, id).key(key));
    let all = |range| in_container("w", query("SELECT c.id FROM c").range(range));
    let changes = |range| in_container("w", changes().range(range));
    vec![
        row("a read in one of the ranges", read("w1", r#"["k1"]"#), 200, 0),
        row("a read in another range", read("w2", r#"["k2"]"#), 200, 0),
        row("a write in one of the ranges", in_container("w", upsert(r#"{"id":"n","pk":"k7"}"#).key(r#"["k7"]"#)), 201, 0),
        row("a barrier in one of the ranges", barrier(0x4B, "x-ms-target-lsn", "w").key(r#"["k7"]"#), 200, 0),
        row("a query of range 0", all(0), 200, 0),
        row("a query of range 1", all(1), 200, 0),
        row("a query of range 3", all(3), 200, 0),
        row("a query of the last range", all(4), 200, 0),
        row("a query of one range more", all(5), 410, 1002),
        row("changes of range 2", changes(2), 200, 0),
        row("changes of one range more", changes(5), 410, 1002),
    ]
}

/// What .NET 3.64 sends rarely or never: barriers, queries as plain text, and bounds as bytes.
#[rustfmt::skip]
fn others() -> Vec<Row> {
    let committed = barrier(0x4C, "x-ms-target-global-committed-lsn", "c");
    let reached = barrier(0x4B, "x-ms-target-lsn", "c");
    let of_databases = Call::new(Resource::Database, Operation::HeadFeed, "");
    let as_text = |text: &str| items(Operation::SqlQuery).range(0).body(text);
    let in_bytes = |call: Call, start: Vec<u8>, end: Vec<u8>| {
        call.with(More::Bytes(0x62, "x-ms-start-epk", start))
            .with(More::Bytes(0x63, "x-ms-end-epk", end))
            .with(More::Word(0x64, "x-ms-read-key-type", 2, "EffectivePartitionKeyRange"))
    };
    let half = || { let mut bytes = vec![0; 16]; bytes[0] = 0x1F; bytes };
    let of_q = || query("SELECT c.id FROM c WHERE c.pk = 'q'").range(0);
    vec![
        row("a barrier for what is committed", committed, 200, 0),
        row("a barrier for a position", reached, 200, 0),
        row("a barrier of the databases", of_databases, 200, 0),
        row("a query as plain text", as_text("SELECT * FROM c WHERE c.pk = 'q'").page(2), 200, 0).pages(5),
        row("a query as plain text that is none", as_text("SELEC"), 400, 0),
        row("a query between bounds as bytes", in_bytes(of_q(), vec![0; 16], half()), 200, 0).items(5),
        row("a query of nothing between bounds as bytes", in_bytes(of_q(), half(), vec![0xFF]), 200, 0).items(0),
        row("changes between bounds as bytes", in_bytes(changes().range(0), vec![0; 16], half()), 200, 0),
        row("a feed between bounds as bytes", in_bytes(items(Operation::ReadFeed).range(0), half(), vec![0xFF]), 200, 0),
    ]
}

#[rustfmt::skip]
fn scripts_and_conflicts() -> Vec<Row> {
    let run = |id: &str, arguments: &str| {
        Call::new(Resource::Procedure, Operation::Execute, "c").leaf(id).key(P).body(arguments)
    };
    let logging = More::Flag(0x3E, "x-ms-documentdb-script-enable-logging", true);
    let conflicts = |operation| Call::new(Resource::Conflict, operation, "c");
    let text = r#"{"query":"SELECT * FROM c","parameters":[]}"#;
    vec![
        row("a stored procedure with its log", run("s", "[7]").with(logging), 200, 0),
        row("a stored procedure", run("s", "[]"), 200, 0),
        row("a stored procedure that writes", run("writes", r#"["w1"]"#), 200, 0),
        row("a stored procedure that fails to write", run("writes", r#"["w1"]"#), 400, 409),
        row("a stored procedure that throws", run("throws", "[]"), 400, 0),
        row("a stored procedure with malformed arguments", run("s", "["), 400, 0),
        row("a stored procedure that is not there", run("none", "[]"), 404, 0),
        row("a stored procedure without a key", Call { scope: Scope::Nothing, ..run("s", "[]") }, 400, 0),
        row("conflicts", conflicts(Operation::ReadFeed).range(0), 200, 0).items(0),
        row("a query of conflicts", conflicts(Operation::Query).range(0).body(text), 200, 0).items(0),
        row("a conflict", conflicts(Operation::Read).leaf("none").key(P), 404, 0),
        row("a delete of a conflict", conflicts(Operation::Delete).leaf("none").key(P), 404, 0),
    ]
}

#[rustfmt::skip]
fn databases() -> Vec<Row> {
    let of = |resource, operation| Call::new(resource, operation, "");
    let all = |resource| of(resource, Operation::ReadFeed);
    let query = |resource, text: &str| {
        of(resource, Operation::Query).body(json!({"query": text, "parameters": []}).to_string())
    };
    vec![
        row("a database", of(Resource::Database, Operation::Read), 200, 0),
        row("a database that is not there", of(Resource::Database, Operation::Read).leaf("none"), 404, 0),
        row("all databases", all(Resource::Database), 200, 0),
        row("all databases in pages", all(Resource::Database).page(1), 200, 0).all_pages(),
        row("a query of databases", query(Resource::Database, "SELECT * FROM r WHERE r.id = '{db}'"), 200, 0).items(1),
        row("a query of databases that is none", query(Resource::Database, "SELEC"), 400, 0),
        row("all containers", all(Resource::Container), 200, 0).items(6),
        row("all containers in pages", all(Resource::Container).page(2), 200, 0).pages(6),
        row("a query of containers", query(Resource::Container, "SELECT * FROM r WHERE r.id = 'c'"), 200, 0).items(1),
        row("a query of containers in pages", query(Resource::Container, "SELECT VALUE r.id FROM r").page(2), 200, 0).pages(6),
    ]
}

#[rustfmt::skip]
fn users_and_permissions() -> Vec<Row> {
    let user = |operation| Call::new(Resource::User, operation, "");
    let permission = |operation| Call { user: "u", ..Call::new(Resource::Permission, operation, "") };
    let replace = || permission(Operation::Replace).leaf("p1")
        .body(r#"{"id":"p1","permissionMode":"All","resource":"dbs/{db}/colls/c"}"#);
    vec![
        row("a user", user(Operation::Read).leaf("u"), 200, 0),
        row("a user that is not there", user(Operation::Read).leaf("none"), 404, 0),
        row("all users", user(Operation::ReadFeed), 200, 0).items(5),
        row("a replace of a user", user(Operation::Replace).leaf("v").body(r#"{"id":"v2"}"#), 200, 0),
        row("a replace of a user by one that is there", user(Operation::Replace).leaf("u").body(r#"{"id":"v2"}"#), 409, 0),
        row("a permission", permission(Operation::Read).leaf("p1"), 200, 0),
        row("a permission that is not there", permission(Operation::Read).leaf("none"), 404, 0),
        row("all permissions", permission(Operation::ReadFeed), 200, 0).items(2),
        row("all permissions in pages", permission(Operation::ReadFeed).page(1), 200, 0).pages(2),
        row("a replace of a permission", replace(), 200, 0),
        row("a replace of another permission", replace().matching("\"other\""), 412, 0),
        row("a delete of a permission", permission(Operation::Delete).leaf("p2"), 204, 0),
        row("a second delete of a permission", permission(Operation::Delete).leaf("p2"), 404, 0),
    ]
}

/// Who has less than all rights.
#[rustfmt::skip]
fn senders() -> Vec<Row> {
    let read = || item(Operation::Read, "q1").key(Q);
    let of_p = || item(Operation::Read, "a");
    let write = || upsert(r#"{"id":"s","pk":"p"}"#);
    let all = || query("SELECT * FROM c").range(0);
    let (reads, may, of_key) = (Sender::Token("reads"), Sender::Token("all"), Sender::Token("key"));
    vec![
        row("a read with the key that reads", read().by(Sender::ReadOnlyKey), 200, 0),
        row("a query with the key that reads", all().by(Sender::ReadOnlyKey), 200, 0),
        row("a write with the key that reads", write().by(Sender::ReadOnlyKey), 403, 0),
        row("a read with another key", read().by(Sender::OtherKey), 401, 0),
        row("a write with another key", write().by(Sender::OtherKey), 401, 0),
        row("a list of databases with another key",
            Call::new(Resource::Database, Operation::ReadFeed, "").by(Sender::OtherKey), 401, 0),
        row("a read with a token to read", read().by(reads), 200, 0),
        row("a read of nothing with a token", item(Operation::Read, "none").by(reads), 404, 0),
        row("a query with a token to read", all().by(reads), 200, 0),
        row("changes with a token to read", changes().range(0).by(reads), 200, 0).changes(14),
        row("a write with a token to read", write().by(reads), 403, 0),
        row("a write with a token for all", write().by(may), 201, 0),
        row("a procedure with a token for all",
            Call::new(Resource::Procedure, Operation::Execute, "c").leaf("s").key(P).body("[]").by(may), 200, 0),
        row("a read with a token of its key", of_p().by(of_key), 200, 0),
        row("a read with a token of another key", read().by(of_key), 403, 0),
        row("a query with a token of a key", all().by(of_key), 403, 0),
        row("a query of its key with a token", query("SELECT * FROM c").key(P).by(of_key), 200, 0),
        row("a read with a token of another container", in_container("l", item(Operation::Read, "short")).by(reads), 403, 0),
    ]
}

/// Faults that are injected.
#[rustfmt::skip]
fn faults() -> Vec<Row> {
    let read = |name, status, sub_status| row(name, item(Operation::Read, "q1").key(Q), status, sub_status);
    let write = |name, status| row(name, upsert(r#"{"id":"f","pk":"p"}"#), status, 0);
    vec![
        read("a fault 403", 403, 0).with_fault(r#"[{"match":{"operation":"ReadItem"},"status":403,"times":1}]"#),
        read("a fault 408", 408, 0).with_fault(r#"[{"match":{"operation":"ReadItem"},"status":408,"times":1}]"#),
        read("a fault 410", 410, 1000).with_fault(r#"[{"match":{"operation":"ReadItem"},"status":410,"subStatus":1000,"times":1}]"#),
        read("a fault 429", 429, 3200)
            .with_fault(r#"[{"match":{"operation":"ReadItem"},"status":429,"subStatus":3200,"retryAfterMs":5,"times":1}]"#),
        read("a fault 449", 449, 0).with_fault(r#"[{"match":{"operation":"ReadItem"},"status":449,"retryAfterMs":7,"times":1}]"#),
        read("a fault 500", 500, 0).with_fault(r#"[{"match":{"operation":"ReadItem"},"status":500,"times":1}]"#),
        read("a fault 503", 503, 21).with_fault(r#"[{"match":{"operation":"ReadItem"},"status":503,"subStatus":21,"times":1}]"#),
        write("a fault 408 of a write", 408).with_fault(r#"[{"match":{"operation":"UpsertItem"},"status":408,"times":1}]"#),
        write("a fault 449 of a write", 449).with_fault(r#"[{"match":{"operation":"UpsertItem"},"status":449,"retryAfterMs":9,"times":1}]"#),
        write("a fault 503 of a write", 503).with_fault(r#"[{"match":{"operation":"UpsertItem"},"status":503,"times":1}]"#),
        write("a write after faults", 201),
    ]
}

fn without_throughput() -> Vec<Row> {
    let spent = |name, call| row(name, in_container("t", call), 429, 3200);
    vec![
        spent("a read without throughput", item(Operation::Read, "x")),
        spent("a write without throughput", upsert(r#"{"id":"y","pk":"p"}"#)),
        spent("a query without throughput", query("SELECT * FROM c").range(0)),
        spent("a feed without throughput", items(Operation::ReadFeed).range(0)),
        spent("changes without throughput", changes().range(0)),
    ]
}

/// What changes with time. The clock goes on for all databases, so these are the last rows.
#[rustfmt::skip]
fn times(style: Style) -> Vec<Row> {
    let before_it = match style {
        Style::Names => "Tue, 14 Nov 2023 22:13:30 GMT",
        Style::Rids => "Tue, 14 Nov 2023 22:13:41 GMT",
    };
    let of_short = |operation| in_container("l", item(operation, "short"));
    vec![
        row("a read of what has not expired", of_short(Operation::Read), 200, 0),
        row("a read of what has expired", of_short(Operation::Read), 404, 0)
            .after("PUT", "/_bolide/clock", r#"{"advanceMs":11000}"#),
        row("a delete of what has expired", of_short(Operation::Delete), 404, 0),
        row("a create of what has expired", in_container("l", create(r#"{"id":"short","pk":"p"}"#)), 201, 0),
        row("a write after a time", create(r#"{"id":"later","pk":"p"}"#), 201, 0),
        row("changes since that time", changes().range(0).with(since(before_it)), 200, 0).changes(1),
    ]
}
