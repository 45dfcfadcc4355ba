//! Assertions of the .NET SDK's own test suite, which runs against the emulator.

use serde_json::{Value, json};

use crate::client::{Client, Request, Response, create_container, create_item};
use crate::server::Server;

const CONTAINER: &str = "/dbs/d/colls/c";
const ITEM: &str = "/dbs/d/colls/c/docs/a";
/// Far above the limit of a body, as in .NET's suite.
const HUGE_BYTES: usize = 30 * 1024 * 1024;

fn started() -> (Server, Client) {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    (server, client)
}

fn message(answer: &Response) -> String {
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_container_says_that_it_shares_its_databases_throughput() {
    let (_server, mut client) = started();
    let database = Request::post("/dbs", r#"{"id":"shared"}"#).header("x-ms-offer-throughput", "400");
    client.send(&database).expect(201);
    let create = |path: &str, id: &str| {
        let definition = json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash"}});
        Request::post(path, definition.to_string())
    };
    let shares = client.send(&create("/dbs/shared/colls", "a")).expect(201);
    assert_eq!(shares.header("x-ms-share-throughput"), Some("true"));
    let own = create("/dbs/shared/colls", "b").header("x-ms-offer-throughput", "400");
    assert_eq!(client.send(&own).expect(201).header("x-ms-share-throughput"), None);
    let alone = client.send(&create("/dbs/d/colls", "d")).expect(201);
    assert_eq!(alone.header("x-ms-share-throughput"), None);
}

#[test]
fn answers_about_items_and_scripts_have_quotas_and_replicas() {
    let (_server, mut client) = started();
    let created = create_item(&mut client, "a");
    let read = client.send(&Request::get(ITEM).pk()).expect(200);
    for answer in [&created, &read] {
        for name in ["x-ms-current-write-quorum", "x-ms-current-replica-set-size"] {
            let count: u32 = answer.header(name).expect(name).parse().expect("a number");
            assert!(count > 0, "{name}");
        }
    }
    let script = Request::post(&format!("{CONTAINER}/udfs"), r#"{"id":"f","body":"function () {}"}"#);
    let script = client.send(&script).expect(201);
    for answer in [&created, &read, &script] {
        for name in ["x-ms-resource-quota", "x-ms-resource-usage"] {
            assert!(
                answer.header(name).is_some_and(|text| text.contains("collectionSize=")),
                "{name}"
            );
        }
        let usage = answer.header("x-ms-resource-usage").expect("usage");
        assert!(
            usage.contains("documentsCount=-1;"),
            "no count that may be an old one: {usage}"
        );
        assert_eq!(answer.header("x-ms-alt-content-path"), Some("dbs/d/colls/c"));
        assert!(answer.header("x-ms-content-path").is_some());
    }
}

#[test]
fn an_item_that_is_not_there_names_no_container() {
    let (_server, mut client) = started();
    let missing = client.send(&Request::get(ITEM).pk()).expect_error(404);
    assert_eq!(missing.header("x-ms-content-path"), None);
    assert!(missing.header("x-ms-session-token").is_some());
    let batch = batch(&mut client, json!([{"operationType": "Read", "id": "a"}]), &[]).expect(207);
    assert_eq!(batch.header("x-ms-content-path"), None);
    create_item(&mut client, "a");
    let create = Request::post(&format!("{CONTAINER}/docs"), r#"{"id":"a","pk":"p"}"#).pk();
    let conflict = client.send(&create).expect_error(409);
    assert!(conflict.header("x-ms-content-path").is_some());
}

#[test]
fn nonsense_in_headers_about_indexing_and_formats_is_refused() {
    let (_server, mut client) = started();
    let create = |id: &str| Request::post(&format!("{CONTAINER}/docs"), format!(r#"{{"id":"{id}","pk":"p"}}"#)).pk();
    let nonsense = create("a").header("x-ms-indexing-directive", "\"Invalid Value\"");
    client.send(&nonsense).expect_error(400);
    client
        .send(&create("a").header("x-ms-indexing-directive", "Exclude"))
        .expect(201);
    let feed = |format| {
        Request::get(&format!("{CONTAINER}/docs")).header("x-ms-documentdb-content-serialization-format", format)
    };
    client.send(&feed("Not a valid value")).expect_error(400);
    client.send(&feed("JsonText")).expect(200);
}

#[test]
fn replacing_an_item_that_is_not_there_is_404_whatever_the_body() {
    let (_server, mut client) = started();
    let bodies = [
        r#"{"id":"a","pk":"p"}"#,
        r#"{"id":"a","pk":"other"}"#,
        r#"{"pk":"p"}"#,
        "no JSON",
        "",
    ];
    for body in bodies {
        client.send(&Request::put(ITEM, body).pk()).expect_error(404);
    }
    create_item(&mut client, "a");
    for body in &bodies[1..] {
        client.send(&Request::put(ITEM, body).pk()).expect_error(400);
    }
}

#[test]
fn an_encryption_policy_names_keys_that_are_there_and_never_changes() {
    let (_server, mut client) = started();
    let key = json!({"id": "key", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "AAEC",
        "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP"}});
    let definition = |key: &str| {
        json!({"id": "e", "partitionKey": {"paths": ["/pk"], "kind": "Hash"},
            "clientEncryptionPolicy": {"policyFormatVersion": 1, "includedPaths": [{"path": "/a", "clientEncryptionKeyId": key,
                "encryptionType": "Deterministic", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256"}]}})
    };
    let create = |definition: Value| Request::post("/dbs/d/colls", definition.to_string());
    let unknown = client.send(&create(definition("unknownKey"))).expect_error(400);
    let words = "ClientEncryptionKey with id '[unknownKey]' does not exist.";
    assert!(message(&unknown).contains(words), "{}", message(&unknown));

    let made = Request::post("/dbs/d/clientencryptionkeys", key.to_string());
    let made = client.send(&made).expect(201).json();
    assert!(made["_cts"].is_i64() && made["_cts"] == made["_ts"], "{made}");
    let mut rewrapped = key.clone();
    rewrapped["wrappedDataEncryptionKey"] = json!("AAED");
    let rewrapped = Request::put("/dbs/d/clientencryptionkeys/key", rewrapped.to_string());
    let rewrapped = client.send(&rewrapped).expect(200).json();
    assert_eq!(rewrapped["_cts"], made["_cts"]);

    client.send(&create(definition("key"))).expect(201);
    let replace = |definition: &Value| Request::put("/dbs/d/colls/e", definition.to_string());
    let mut same = definition("key");
    same["defaultTtl"] = json!(60);
    client.send(&replace(&same)).expect(200);
    same.as_object_mut()
        .expect("an object")
        .remove("clientEncryptionPolicy");
    let dropped = client.send(&replace(&same)).expect_error(400);
    let words = "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.";
    assert!(message(&dropped).contains(words), "{}", message(&dropped));
}

#[test]
fn spatial_indexes_are_answered_with_all_types() {
    let (_server, mut client) = started();
    let definition = json!({"id": "s", "partitionKey": {"paths": ["/pk"], "kind": "Hash"},
        "indexingPolicy": {"spatialIndexes": [{"path": "/area/*", "types": ["LineString"]}]}});
    let created = client
        .send(&Request::post("/dbs/d/colls", definition.to_string()))
        .expect(201);
    let types = &created.json()["indexingPolicy"]["spatialIndexes"][0]["types"];
    assert_eq!(types, &json!(["Point", "LineString", "Polygon", "MultiPolygon"]));
}

#[test]
fn offers_keep_their_identity_and_drop_a_policy_that_a_replace_leaves_out() {
    let (_server, mut client) = started();
    let settings = r#"{"maxThroughput":5000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":10}}}"#;
    let create = Request::post("/dbs", r#"{"id":"auto"}"#).header("x-ms-cosmos-offer-autopilot-settings", settings);
    let database = client.send(&create).expect(201).json();
    let offer = offer_of(&mut client, &database["_rid"]);
    let policy = "/content/offerAutopilotSettings/autoUpgradePolicy";
    assert_eq!(
        offer.pointer(policy),
        Some(&json!({"throughputPolicy": {"incrementPercent": 10}}))
    );
    let path = format!("/offers/{}", offer["_rid"].as_str().expect("a rid"));
    let mut replaced = offer.clone();
    replaced["content"] = json!({"offerAutopilotSettings": {"maxThroughput": 6000}});
    let replaced = client
        .send(&Request::put(&path, replaced.to_string()))
        .expect(200)
        .json();
    assert_eq!(replaced["content"]["offerAutopilotSettings"]["maxThroughput"], 6000);
    assert_eq!(replaced.pointer(policy), None);
    for (id, rid) in [
        (offer["id"].clone(), json!("NotAllowed")),
        (json!("NotAllowed"), offer["_rid"].clone()),
        (Value::Null, Value::Null),
    ] {
        let mut other = offer.clone();
        (other["id"], other["_rid"]) = (id, rid);
        client.send(&Request::put(&path, other.to_string())).expect_error(400);
    }
}

#[test]
fn the_old_performance_levels_are_shown_as_they_were_sent() {
    let (_server, mut client) = started();
    for level in ["S1", "S2", "S3"] {
        let definition = json!({"id": level, "partitionKey": {"paths": ["/pk"], "kind": "Hash"}});
        let create = Request::post("/dbs/d/colls", definition.to_string()).header("x-ms-offer-type", level);
        let container = client.send(&create).expect(201).json();
        assert_eq!(offer_of(&mut client, &container["_rid"])["offerType"], level);
    }
    let create = Request::post("/dbs/d/colls", "{}").header("x-ms-offer-type", "S4");
    client.send(&create).expect_error(400);
}

fn offer_of(client: &mut Client, resource: &Value) -> Value {
    let offers = client.send(&Request::get("/offers")).expect(200).json();
    let mut offers = offers["Offers"].as_array().expect("a feed").iter();
    offers
        .find(|offer| offer["offerResourceId"] == *resource)
        .expect("it has one")
        .clone()
}

#[test]
fn system_procedures_can_be_executed_in_every_container() {
    let (_server, mut client) = started();
    let mut execute = |name: &str, arguments: Value| {
        client.send(&Request::post(&format!("{CONTAINER}/sprocs/{name}"), arguments.to_string()).pk())
    };
    assert_eq!(execute("__.sys.echo", json!(["foobar"])).expect(200).json(), "foobar");
    let documents = json!([{"id": "a", "pk": "p"}, {"id": "b", "pk": "p"}]);
    let inserted = execute("__.sys.commonBulkInsert", json!([documents, {}])).expect(200);
    assert_eq!(inserted.json(), json!({"count": 2, "errorCode": 0}));
    let again = json!([[{"id": "c", "pk": "p"}, {"id": "a", "pk": "p"}], {"softStopOnConflict": true}]);
    let stopped = execute("__.sys.commonBulkInsert", again).expect(200);
    assert_eq!(stopped.json(), json!({"count": 1, "errorCode": 409}));
    let again = json!([[{"id": "d", "pk": "p"}, {"id": "a", "pk": "p"}]]);
    execute("__.sys.commonBulkInsert", again).expect_error(400);
    let upserted = execute("__.sys.commonBulkInsert", json!([documents, {"enableUpsert": true}])).expect(200);
    assert_eq!(upserted.json(), json!({"count": 2, "errorCode": 0}));
    execute("__.sys.other", json!([])).expect_error(404);
    client
        .send(&Request::get(&format!("{CONTAINER}/docs/d")).pk())
        .expect_error(404);
}

#[test]
fn arguments_are_those_that_function_apply_accepts() {
    let (_server, mut client) = started();
    let source = "function (a, b, c) { getContext().getResponse().setBody(a + (b || '') + (c || '')); }";
    let define = json!({"id": "p", "body": source});
    let create = Request::post(&format!("{CONTAINER}/sprocs"), define.to_string());
    client.send(&create).expect(201);
    let mut execute = |arguments: &str| client.send(&Request::post(&format!("{CONTAINER}/sprocs/p"), arguments).pk());
    for arguments in [
        r#"{"0":"onetwothree","length":1}"#,
        r#"{"0":"onetwothree","length":"1"}"#,
        r#"{"0":"onetwothree","length":10000}"#,
        r#"{"0":"onetwothree","1":"test","length":1.5}"#,
        r#"{"0":"one","2":"twothree","length":3}"#,
        r#"{"0":"one","2":"three","1":"two","length":3}"#,
    ] {
        assert_eq!(execute(arguments).expect(200).json(), "onetwothree", "{arguments}");
    }
    for arguments in ["null", r#"{"0":"one"}"#, r#"{"0":"one","length":-1}"#] {
        assert_eq!(execute(arguments).expect(200).json(), "undefined", "{arguments}");
    }
    for arguments in [
        r#"{"0":"one","length":600000}"#,
        r#"{"0":"one","length":1e9}"#,
        "7",
        r#""text""#,
    ] {
        execute(arguments).expect_error(400);
    }
}

#[test]
fn scripts_see_quotas_and_go_on_from_an_empty_continuation() {
    let (_server, mut client) = started();
    create_item(&mut client, "a");
    let source = "function () { __.readDocuments(__.getSelfLink(), {pageSize: 1, continuation: ''}, (error, documents, info) => {
        if (error) throw error;
        __.response.setBody({count: documents.length, info}); }); }";
    let define = json!({"id": "p", "body": source});
    client
        .send(&Request::post(&format!("{CONTAINER}/sprocs"), define.to_string()))
        .expect(201);
    let executed = Request::post(&format!("{CONTAINER}/sprocs/p"), "[]").pk();
    let left = client.send(&executed).expect(200).json();
    assert_eq!(left["count"], 1);
    for name in ["maxCollectionSizeInMB", "currentCollectionSizeInMB"] {
        let text = left["info"][name].as_str().expect("a text");
        assert!(
            text.starts_with("documentSize=0;") && text.contains("collectionSize="),
            "{text}"
        );
    }
}

#[test]
fn triggers_see_quotas_and_the_link_of_what_is_replaced() {
    let (_server, mut client) = started();
    let item = create_item(&mut client, "a").json();
    for (id, time, source) in [
        (
            "note",
            "Pre",
            "function () { const request = getContext().getRequest(), body = request.getBody(); body.link = body._self;
                request.setBody(body); }",
        ),
        (
            "quota",
            "Post",
            "function () { const response = getContext().getResponse(), body = response.getBody();
                body.usage = response.getResourceQuotaCurrentUsage(); body.quota = response.getMaxResourceQuota();
                response.setBody(body); }",
        ),
    ] {
        let trigger = json!({"id": id, "body": source, "triggerType": time, "triggerOperation": "Replace"});
        client
            .send(&Request::post(&format!("{CONTAINER}/triggers"), trigger.to_string()))
            .expect(201);
    }
    let replace = |path: &str| {
        Request::put(path, r#"{"id":"a","pk":"p"}"#)
            .pk()
            .header("x-ms-documentdb-pre-trigger-include", "note")
            .header("x-ms-documentdb-post-trigger-include", "quota")
    };
    let replaced = client.send(&replace(ITEM)).expect(200).json();
    assert_eq!(replaced["link"], item["_self"]);
    for name in ["usage", "quota"] {
        let text = replaced[name].as_str().expect("a text");
        assert!(text.contains("collectionSize="), "{text}");
    }
    client
        .send(&replace(&format!("{CONTAINER}/docs/other")))
        .expect_error(404);
}

fn batch(client: &mut Client, operations: Value, headers: &[(&str, &str)]) -> Response {
    let request = Request::post(&format!("{CONTAINER}/docs"), operations.to_string())
        .pk()
        .header("x-ms-cosmos-is-batch-request", "True")
        .header("x-ms-cosmos-batch-atomic", "True");
    let request = headers
        .iter()
        .fold(request, |request, (name, value)| request.header(name, value));
    client.send(&request)
}

#[test]
fn a_read_in_a_batch_of_a_version_that_is_known_is_304() {
    let (_server, mut client) = started();
    let etag = create_item(&mut client, "a").json()["_etag"].clone();
    let operations = json!([
        {"operationType": "Read", "id": "a"},
        {"operationType": "Read", "id": "a", "ifMatch": etag},
        {"operationType": "Read", "id": "a", "ifMatch": "\"other\""},
    ]);
    let answered = batch(&mut client, operations, &[]).expect(207).json();
    let statuses: Vec<&Value> = answered
        .as_array()
        .expect("results")
        .iter()
        .map(|result| &result["statusCode"])
        .collect();
    assert_eq!(statuses, [&json!(200), &json!(304), &json!(200)]);
}

#[test]
fn a_batch_that_reads_behind_its_session_does_nothing() {
    let (_server, mut client) = started();
    create_item(&mut client, "a");
    let ahead = [("x-ms-session-token", "0:-1#1000")];
    let operations = json!([
        {"operationType": "Create", "resourceBody": {"id": "b", "pk": "p"}},
        {"operationType": "Read", "id": "a"},
    ]);
    let refused = batch(&mut client, operations, &ahead).expect_error(404);
    assert_eq!(refused.header("x-ms-substatus"), Some("1002"));
    client
        .send(&Request::get(&format!("{CONTAINER}/docs/b")).pk())
        .expect_error(404);
    let writes = json!([{"operationType": "Create", "resourceBody": {"id": "b", "pk": "p"}}]);
    batch(&mut client, writes, &ahead).expect(200);
}

#[test]
fn a_batch_whose_answer_would_be_too_large_does_nothing() {
    let (_server, mut client) = started();
    let text = "x".repeat(1024 * 1024);
    let large = json!({"id": "large", "pk": "p", "text": text});
    let create = Request::post(&format!("{CONTAINER}/docs"), large.to_string()).pk();
    client.send(&create).expect(201);
    let read = json!({"operationType": "Read", "id": "large"});
    let patch = json!({"operationType": "Patch", "id": "large", "resourceBody": {"operations": [{"op": "set", "path": "/n", "value": 1}]}});
    for operations in [vec![read.clone(); 10], [vec![patch; 2], vec![read; 2], vec![]].concat()] {
        let count = operations.len();
        let answered = batch(&mut client, json!(operations), &[]).expect(207).json();
        assert_eq!(answered[0]["statusCode"], 424);
        assert_eq!(answered[count - 1]["statusCode"], 413);
    }
    let stored = client
        .send(&Request::get(&format!("{CONTAINER}/docs/large")).pk())
        .expect(200);
    assert_eq!(stored.json().get("n"), None);
}

#[test]
fn a_body_far_over_the_limit_is_answered_once_it_was_sent() {
    let (_server, mut client) = started();
    let request = Request::post(&format!("{CONTAINER}/docs"), vec![b' '; HUGE_BYTES]).pk();
    // Like .NET: reads nothing before everything is written.
    client.send(&request).expect_error(413);
    // The connection can still be used.
    create_item(&mut client, "a");
}
