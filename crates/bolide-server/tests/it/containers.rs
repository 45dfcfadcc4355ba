//! The members of a container that can be replaced, and the conflicts feed, which is always empty (cosmos-rest §§4.3, 12.2).

use serde_json::{Value, json};

use crate::client::{Client, Request, create_container};
use crate::server::Server;

const CONTAINER: &str = "/dbs/d/colls/full";

/// A container with all kinds of settings.
fn definition() -> Value {
    json!({
        "id": "full",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "defaultTtl": 60,
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a"]}]},
        "computedProperties": [{"name": "low", "query": "SELECT VALUE LOWER(c.a) FROM c"}],
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut definition = definition();
    definition[member] = value;
    definition
}

fn without(member: &str) -> Value {
    let mut definition = definition();
    definition.as_object_mut().expect("an object").remove(member);
    definition
}

fn started() -> (Server, Client) {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    client
        .send(&Request::post("/dbs/d/colls", definition().to_string()))
        .expect(201);
    (server, client)
}

#[test]
fn changes_of_fixed_members_are_refused_and_nothing_changes() {
    let (_server, mut client) = started();
    let before = client.send(&Request::get(CONTAINER)).expect(200).json();
    for (definition, status) in [
        (with("id", json!("other")), 400),
        (
            with(
                "partitionKey",
                json!({"paths": ["/other"], "kind": "Hash", "version": 2}),
            ),
            400,
        ),
        (with("uniqueKeyPolicy", json!({"uniqueKeys": [{"paths": ["/b"]}]})), 403),
        (without("uniqueKeyPolicy"), 403),
        (
            with(
                "clientEncryptionPolicy",
                json!({"includedPaths": [], "policyFormatVersion": 2}),
            ),
            400,
        ),
        (with("defaultTtl", json!(0)), 400),
        (with("computedProperties", json!({"name": "low"})), 400),
    ] {
        client
            .send(&Request::put(CONTAINER, definition.to_string()))
            .expect_error(status);
        assert_eq!(
            client.send(&Request::get(CONTAINER)).expect(200).json(),
            before,
            "{definition}"
        );
    }
    let stale = Request::put(CONTAINER, definition().to_string()).header("if-match", "\"other\"");
    client.send(&stale).expect_error(412);
}

#[test]
fn replaceable_members_change_and_missing_ones_are_removed() {
    let (_server, mut client) = started();
    let etag = client.send(&Request::get(CONTAINER)).expect(200).json()["_etag"].clone();
    let mut replace = |definition: Value| {
        client
            .send(&Request::put(CONTAINER, definition.to_string()))
            .expect(200)
            .json()
    };
    let longer = replace(with("defaultTtl", json!(90)));
    assert_eq!(longer["defaultTtl"], 90);
    assert_ne!(longer["_etag"], etag);
    assert_eq!(replace(without("defaultTtl")).get("defaultTtl"), None);
    assert_eq!(replace(without("computedProperties")).get("computedProperties"), None);
    let narrow =
        json!({"indexingMode": "consistent", "includedPaths": [{"path": "/a/?"}], "excludedPaths": [{"path": "/*"}]});
    let paths = &replace(with("indexingPolicy", narrow))["indexingPolicy"]["includedPaths"];
    assert_eq!(paths[0]["path"], "/a/?");
    let feeding = replace(with("changeFeedPolicy", json!({"retentionDuration": 10})));
    assert_eq!(feeding["changeFeedPolicy"], json!({"retentionDuration": 10}));
}

#[test]
fn the_feed_of_conflicts_is_empty_and_asks_for_what_a_query_of_items_asks_for() {
    let (_server, mut client) = started();
    let path = format!("{CONTAINER}/conflicts");
    let listed = client.send(&Request::get(&path)).expect(200);
    assert_eq!(listed.header("x-ms-item-count"), Some("0"));
    let listed = listed.json();
    assert_eq!((&listed["Conflicts"], &listed["_count"]), (&json!([]), &json!(0)));
    for request in [
        Request::get(&format!("{path}/c")),
        Request::new("DELETE", &format!("{path}/c")),
    ] {
        client.send(&request).expect_error(404);
    }
    let query = || {
        Request::post(&path, r#"{"query":"SELECT * FROM c"}"#)
            .header("content-type", "application/query+json")
            .header("x-ms-documentdb-isquery", "True")
    };
    client.send(&query()).expect_error(400);
    let crossing = query().header("x-ms-documentdb-query-enablecrosspartition", "True");
    for query in [crossing, query().pk()] {
        assert_eq!(client.send(&query).expect(200).json()["Conflicts"], json!([]));
    }
}
