//! Stored procedures, triggers and user-defined functions over HTTP. Source: cosmos-rest §11.

use serde_json::{Value, json};

use crate::client::{Client, Request, Response, create_container, create_item};
use crate::server::Server;

const CONTAINER: &str = "/dbs/d/colls/c";

fn started() -> (Server, Client) {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    (server, client)
}

fn script(id: &str, body: &str) -> String {
    json!({"id": id, "body": body}).to_string()
}

fn trigger(id: &str, time: &str, operation: &str, body: &str) -> String {
    json!({"id": id, "body": body, "triggerType": time, "triggerOperation": operation}).to_string()
}

fn at(keyword: &str, id: &str) -> String {
    format!("{CONTAINER}/{keyword}/{id}")
}

fn define(client: &mut Client, keyword: &str, body: &str) -> Response {
    client.send(&Request::post(&format!("{CONTAINER}/{keyword}"), body).header("x-ms-documentdb-is-upsert", "True"))
}

/// Defines a stored procedure and executes it.
fn execute(client: &mut Client, source: &str, arguments: &str) -> Response {
    define(client, "sprocs", &script("p", source));
    client.send(&Request::post(&at("sprocs", "p"), arguments).pk())
}

#[test]
fn each_kind_of_script_goes_through_its_life() {
    let (_server, mut client) = started();
    for (keyword, array, extra) in [
        ("sprocs", "StoredProcedures", json!({})),
        ("udfs", "UserDefinedFunctions", json!({})),
        (
            "triggers",
            "Triggers",
            json!({"triggerType": "pre", "triggerOperation": "All"}),
        ),
    ] {
        let with = |id: &str, body: &str| {
            let mut script = json!({"id": id, "body": body});
            script
                .as_object_mut()
                .expect("an object")
                .extend(extra.as_object().expect("an object").clone());
            script
        };
        let feed = format!("{CONTAINER}/{keyword}");
        let sent = with("s 1", "function () {}");
        let created = client.send(&Request::post(&feed, sent.to_string())).expect(201);
        let made = created.json();
        for (name, value) in sent.as_object().expect("an object") {
            assert_eq!(made[name], *value, "{keyword}");
        }
        let etag = created.header("etag").expect("an etag").to_owned();
        assert_eq!(made["_etag"], etag);
        let own = format!("/{}", made["_self"].as_str().expect("a link").trim_end_matches('/'));
        assert!(own.contains(keyword), "{own}");
        client.send(&Request::post(&feed, sent.to_string())).expect_error(409);
        assert_eq!(
            client.send(&Request::get(&at(keyword, "s%201"))).status,
            200,
            "{keyword}"
        );

        let listed = client.send(&Request::get(&feed)).expect(200).json();
        assert_eq!(
            (&listed[array][0]["id"], &listed["_count"]),
            (&json!("s 1"), &json!(1)),
            "{keyword}"
        );
        let query = Request::post(
            &feed,
            r#"{"query":"SELECT * FROM root r WHERE r.id=@id","parameters":[{"name":"@id","value":"s 1"}]}"#,
        );
        assert_eq!(
            client.send(&query.query()).expect(200).json()[array][0]["_rid"],
            made["_rid"]
        );

        let replace = Request::put(&at(keyword, "s%201"), with("t", "function () { return 1 }").to_string());
        client
            .send(&replace.clone().header("if-match", "\"other\""))
            .expect_error(412);
        let replaced = client.send(&replace.header("if-match", &etag)).expect(200).json();
        assert_eq!((&replaced["id"], &replaced["_rid"]), (&json!("t"), &made["_rid"]));
        client.send(&Request::get(&at(keyword, "s%201"))).expect_error(404);
        client.send(&Request::new("DELETE", &at(keyword, "t"))).expect(204);
        client.send(&Request::get(&at(keyword, "t"))).expect_error(404);
        client
            .send(&Request::new("DELETE", &at(keyword, "t")))
            .expect_error(404);
    }
}

#[test]
fn a_procedure_answers_with_its_body_and_the_headers_of_a_write() {
    let (_server, mut client) = started();
    let source = "function (name, n) { console.log('The value of %s is %s.', name, n); getContext().getResponse().setBody({name, n}) }";
    let answer = execute(&mut client, source, r#"["x",1]"#).expect(200);
    assert_eq!(answer.json(), json!({"name": "x", "n": 1}));
    assert_eq!(answer.header("x-ms-documentdb-script-log-results"), None);
    for name in [
        "x-ms-session-token",
        "x-ms-request-charge",
        "lsn",
        "x-ms-alt-content-path",
        "x-ms-documentdb-partitionkeyrangeid",
    ] {
        assert!(answer.header(name).is_some(), "{name}");
    }
    let logging = Request::post(&at("sprocs", "p"), r#"["x",1]"#)
        .pk()
        .header("x-ms-documentdb-script-enable-logging", "True");
    let answer = client.send(&logging).expect(200);
    assert_eq!(
        answer.header("x-ms-documentdb-script-log-results"),
        Some("The%20value%20of%20x%20is%201.")
    );
    assert_eq!(execute(&mut client, "function () {}", "").expect(200).text(), "\"\"");
}

#[test]
fn a_procedure_that_fails_says_why_and_changes_nothing() {
    let (_server, mut client) = started();
    let create = "var c = getContext().getCollection(); c.createDocument(c.getSelfLink(), {id: 'a', pk: 'p'}";
    for (source, sub_status, message) in [
        (format!("function () {{ {create}, function () {{ throw new Error('why') }}) }}"), None, "why"),
        (format!("function () {{ {create}, function () {{ throw new Error(429, 'why') }}) }}"), Some("429"), "why"),
        (format!("function () {{ {create}); {create}) }}"), Some("409"), "already exists"),
        ("function () { var c = getContext().getCollection(); c.createDocument(c.getSelfLink(), {id: 'a', pk: 'other'}) }".to_owned(), Some("400"), "artition key"),
        ("Line Separator".to_owned(), Some("65535"), "Encountered exception while compiling Javascript."),
    ] {
        let answer = execute(&mut client, &source, "[]").expect_error(400);
        assert_eq!(answer.header("x-ms-substatus"), sub_status, "{source}");
        assert!(answer.json()["message"].as_str().is_some_and(|text| text.contains(message)), "{source}: {}", answer.text());
        client.send(&Request::get(&format!("{CONTAINER}/docs/a")).pk()).expect_error(404);
    }
}

#[test]
fn triggers_run_where_they_are_named() {
    let (_server, mut client) = started();
    let rename = "function () { var q = getContext().getRequest(), d = q.getBody(); d.id += 't1'; q.setBody(d) }";
    define(&mut client, "triggers", &trigger("rename", "Pre", "Create", rename)).expect(201);
    define(
        &mut client,
        "triggers",
        &trigger("fail", "Post", "All", "function () { throw new Error('why') }"),
    )
    .expect(201);
    let answer = "function () { var r = getContext().getResponse(), d = r.getBody(); r.setBody({only: d.id}) }";
    define(&mut client, "triggers", &trigger("answer", "Post", "All", answer)).expect(201);
    let create = |id: &str| Request::post(&format!("{CONTAINER}/docs"), json!({"id": id, "pk": "p"}).to_string()).pk();
    let pre = "x-ms-documentdb-pre-trigger-include";
    let post = "x-ms-documentdb-post-trigger-include";

    let created = client.send(&create("doc").header(pre, "rename")).expect(201);
    assert_eq!(created.json()["id"], "doct1");
    assert_eq!(created.json()["_etag"].as_str(), created.header("etag"));
    let shown = client
        .send(&create("a").header(pre, "rename").header(post, "answer"))
        .expect(201);
    assert_eq!(shown.json(), json!({"only": "at1"}));
    let failed = client.send(&create("b").header(post, "answer, fail")).expect_error(400);
    assert!(failed.text().contains("why"), "{}", failed.text());
    client
        .send(&Request::get(&format!("{CONTAINER}/docs/b")).pk())
        .expect_error(404);
    let upsert = create("b")
        .header("x-ms-documentdb-is-upsert", "True")
        .header(post, "answer");
    assert_eq!(client.send(&upsert).expect(201).json(), json!({"only": "b"}));
    let link = format!("{CONTAINER}/docs/b");
    let replace = Request::put(&link, r#"{"id":"b","pk":"p","n":1}"#)
        .pk()
        .header(post, "answer");
    assert_eq!(client.send(&replace).expect(200).json(), json!({"only": "b"}));
    let patch = Request::new("PATCH", &link)
        .body(r#"[{"op":"incr","path":"/n","value":1}]"#)
        .pk();
    client.send(&patch.header(post, "fail")).expect_error(400);
    assert_eq!(client.send(&Request::get(&link).pk()).expect(200).json()["n"], 1);
    client
        .send(&Request::new("DELETE", &link).pk().header(post, "fail"))
        .expect_error(400);
    client
        .send(&Request::new("DELETE", &link).pk().header(pre, "rename"))
        .expect_error(400);
    client
        .send(&Request::new("DELETE", &link).pk().header(post, "answer"))
        .expect_error(400);
    client.send(&Request::new("DELETE", &link).pk()).expect(204);
}

#[test]
fn functions_are_called_by_queries() {
    let (_server, mut client) = started();
    create_item(&mut client, "a");
    define(
        &mut client,
        "udfs",
        &script("shout", "function (text) { return text.toUpperCase() + '!' }"),
    )
    .expect(201);
    let mut query = |text: &str| {
        client.send(
            &Request::post(&format!("{CONTAINER}/docs"), json!({"query": text}).to_string())
                .pk()
                .query(),
        )
    };
    assert_eq!(
        query("SELECT VALUE udf.shout(c.id) FROM c").expect(200).json()["Documents"],
        json!(["A!"])
    );
    let thrown = query("SELECT VALUE udf.shout(1) FROM c").expect_error(400);
    assert!(thrown.text().contains("shout"), "{}", thrown.text());
    query("SELECT VALUE udf.none(1) FROM c").expect_error(400);
    query("SELECT VALUE udf.Shout(c.id) FROM c").expect_error(400);
}

#[test]
fn bad_input_to_every_route_is_refused_and_the_server_keeps_serving() {
    let (_server, mut client) = started();
    define(
        &mut client,
        "sprocs",
        &script("p", "function () { getContext().getResponse().setBody(1) }"),
    )
    .expect(201);
    let post = |path: &str, body: &str| Request::post(&format!("{CONTAINER}/{path}"), body);
    let long = script(&"x".repeat(256), "x");
    let cases: Vec<(&str, Request, u16)> = vec![
        ("no body", post("sprocs", ""), 400),
        ("no JSON", post("udfs", "{"), 400),
        ("an array", post("triggers", "[]"), 400),
        ("no source", post("sprocs", r#"{"id":"x"}"#), 400),
        ("no id", post("udfs", r#"{"body":"x"}"#), 400),
        ("a number as source", post("udfs", r#"{"id":"x","body":1}"#), 400),
        (
            "a trigger without type",
            post("triggers", r#"{"id":"x","body":"x","triggerOperation":"All"}"#),
            400,
        ),
        (
            "an unknown type",
            post("triggers", &trigger("x", "During", "All", "x")),
            400,
        ),
        (
            "an unknown operation",
            post("triggers", &trigger("x", "Pre", "Read", "x")),
            400,
        ),
        ("a slash in the id", post("sprocs", &script("a/b", "x")), 400),
        ("a long id", post("sprocs", &long), 400),
        ("a query that is none", post("sprocs", r#"{"query":1}"#).query(), 400),
        (
            "replacing nothing",
            Request::put(&at("sprocs", "none"), script("none", "x")),
            404,
        ),
        (
            "replacing without a source",
            Request::put(&at("sprocs", "p"), r#"{"id":"p"}"#),
            400,
        ),
        ("executing nothing", post("sprocs/none", "[]").pk(), 404),
        ("executing a trigger", post("triggers/t", "[]").pk(), 405),
        ("executing without a key", post("sprocs/p", "[]"), 400),
        (
            "executing with a key that is none",
            post("sprocs/p", "[]").header("x-ms-documentdb-partitionkey", "x"),
            400,
        ),
        (
            "executing with two keys",
            post("sprocs/p", "[]").header("x-ms-documentdb-partitionkey", r#"["p","q"]"#),
            400,
        ),
        ("arguments that are no array", post("sprocs/p", "7").pk(), 400),
        ("arguments that are no JSON", post("sprocs/p", "[").pk(), 400),
        (
            "patching a script",
            Request::new("PATCH", &at("sprocs", "p")).body("{}"),
            405,
        ),
        (
            "a container that is not there",
            Request::get("/dbs/d/colls/none/sprocs"),
            404,
        ),
        ("a path below a script", Request::get(&at("sprocs", "p/q")), 404),
        (
            "an unknown trigger",
            post("docs", r#"{"id":"x","pk":"p"}"#)
                .pk()
                .header("x-ms-documentdb-pre-trigger-include", "none"),
            400,
        ),
        (
            "a trigger in a batch",
            post("docs", "[]")
                .pk()
                .header("x-ms-cosmos-is-batch-request", "True")
                .header("x-ms-documentdb-post-trigger-include", "t"),
            400,
        ),
    ];
    for (what, bad, status) in cases {
        let answer = client.send(&bad);
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        answer.expect_error(status);
        let good = client.send(&Request::post(&at("sprocs", "p"), "[]").pk());
        assert_eq!((good.status, good.text().as_str()), (200, "1"), "after {what}");
    }
    let missing = client.send(&post("triggers", r#"{"id":"x"}"#)).expect_error(400);
    let fragment = "The input content is invalid because the required properties - 'body; triggerType; triggerOperation; ' - are missing";
    assert!(
        missing.json()["message"]
            .as_str()
            .is_some_and(|text| text.contains(fragment)),
        "{}",
        missing.text()
    );
}

#[test]
fn hostile_procedures_get_their_status_and_the_server_keeps_serving() {
    let (_server, mut client) = started();
    for (source, status) in [
        ("function () { while (true) {} }", 408),
        ("function () { var all = []; for (;;) all.push([all.length]) }", 400),
        ("function deep() { deep() }", 400),
        (
            "function () { getContext().getResponse().setBody({a: 'x'.repeat(2e6), b: 'x'.repeat(2e6)}) }",
            413,
        ),
    ] {
        execute(&mut client, source, "[]").expect_error(status);
        let good = execute(
            &mut client,
            "function () { getContext().getResponse().setBody(1) }",
            "[]",
        );
        assert_eq!(good.expect(200).json(), Value::from(1), "after {source}");
    }
}
