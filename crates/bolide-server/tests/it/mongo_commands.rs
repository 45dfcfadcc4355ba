//! MongoDB's commands over the admin API: `POST /_bolide/dbs/{db}/mongo`.

use bson::rawdoc;
use serde_json::{Value, json};

use crate::client::{Client, Request};
use crate::mongo;
use crate::mongo_client::MongoClient;
use crate::server::Server;

const READONLY: &str = "cmVhZG9ubHktcmVhZG9ubHktcmVhZG9ubHk=";

fn command(database: &str, command: &Value) -> Request {
    Request::post(&format!("/_bolide/dbs/{database}/mongo"), command.to_string())
}

fn run(client: &mut Client, of: &Value) -> Value {
    client.send(&command("shop", of)).expect(200).json()
}

#[test]
fn documents_are_written_and_found_and_a_driver_sees_them() {
    let server = Server::in_memory(&["--mongo-no-auth"]);
    let mut client = server.client();
    let document = json!({"_id": {"$oid": "0123456789abcdef01234567"}, "n": {"$numberLong": "7"}});
    let inserted = run(&mut client, &json!({"insert": "carts", "documents": [document]}));
    assert_eq!(inserted["n"], json!({"$numberInt": "1"}));
    let found = client.send(&command("shop", &json!({"find": "carts"}))).expect(200);
    assert_eq!(found.json()["cursor"]["firstBatch"], json!([document]));
    let charge: f64 = found
        .header("x-ms-request-charge")
        .expect("a charge")
        .parse()
        .expect("a number");
    assert!(charge > 1.0);
    let mut driver = MongoClient::connect(mongo::port(&server)).expect("the server listens");
    let count = driver.run(&rawdoc! { "count": "carts", "query": {"n": 7_i64}, "$db": "shop" });
    assert_eq!(count.expect("a reply").get_i32("n").ok(), Some(1));
}

#[test]
fn errors_have_the_status_of_their_kind_and_the_code_of_the_command() {
    let server = Server::in_memory(&["--readonly-key", READONLY]);
    let mut client = server.client();
    run(&mut client, &json!({"insert": "carts", "documents": [{"_id": 1}]}));
    let mut refused = |request: Request, status: u16| client.send(&request).expect_error(status).json();
    let unknown = refused(command("shop", &json!({"nonsense": 1})), 400);
    assert_eq!(
        (&unknown["code"], &unknown["mongoCode"]),
        (&json!("CommandNotFound"), &json!(59))
    );
    assert_eq!(unknown["message"], "no such command: 'nonsense'");
    let write = json!({"insert": "carts", "documents": [{"_id": 2}]});
    assert_eq!(refused(command("shop", &write).key(READONLY), 403)["mongoCode"], 13);
    assert_eq!(
        refused(command("shop", &json!({"listIndexes": "none"})), 404)["mongoCode"],
        26
    );
    assert_eq!(
        refused(
            command("shop", &json!({"getMore": {"$numberLong": "7"}, "collection": "carts"})),
            404
        )["mongoCode"],
        43
    );
    assert_eq!(refused(command("sh.op", &json!({"ping": 1})), 400)["mongoCode"], 73);
    assert_eq!(
        refused(Request::post("/_bolide/dbs/shop/mongo", "{\"find\": "), 400)["mongoCode"],
        9
    );
    assert_eq!(refused(command("shop", &json!({"hello": 1})), 400)["mongoCode"], 115);
    refused(Request::get("/_bolide/dbs/shop/mongo"), 405);
    let found = client
        .send(&command("shop", &json!({"count": "carts"})).key(READONLY))
        .expect(200);
    assert_eq!(found.json()["n"], json!({"$numberInt": "1"}));
}

#[test]
fn a_server_without_the_front_end_says_so() {
    let server = Server::in_memory(&["--no-mongo"]);
    let refused = server
        .client()
        .send(&command("shop", &json!({"ping": 1})))
        .expect_error(409);
    assert!(refused.text().contains("--no-mongo"), "{}", refused.text());
}

#[test]
fn the_ends_of_documents_and_items_are_told_together() {
    let server = Server::in_memory(&["--virtual-clock=2023-11-14T22:13:20Z"]);
    let mut client = server.client();
    let now = 1_700_000_000_000_i64;
    run(
        &mut client,
        &json!({"createIndexes": "carts", "indexes": [{"key": {"at": 1}, "name": "at", "expireAfterSeconds": 60}]}),
    );
    let date = |ms: i64| json!({"$date": {"$numberLong": ms.to_string()}});
    run(
        &mut client,
        &json!({"insert": "carts", "documents": [{"_id": "a", "at": date(now + 250)}, {"_id": 7}, {"_id": "gone", "at": date(now - 60_000)}]}),
    );
    let ends = |client: &mut Client, collection: &str, items: Value| {
        let path = format!("/_bolide/dbs/shop/colls/{collection}/ttl/ends");
        client
            .send(&Request::post(&path, json!({"items": items}).to_string()))
            .expect(200)
            .json()["items"]
            .clone()
    };
    let asked = json!([{"id": "a"}, {"id": "{\"$numberInt\":\"7\"}"}, {"id": "gone"}, {"id": "none"}]);
    assert_eq!(
        ends(&mut client, "carts", asked),
        json!([
            {"state": "live", "endsMs": now + 60_250},
            {"state": "live", "endsMs": null},
            {"state": "expired", "endsMs": now},
            {"state": "absent", "endsMs": null},
        ])
    );
    let items = json!({"id": "items", "partitionKey": {"paths": ["/pk"]}, "defaultTtl": 100}).to_string();
    client.send(&Request::post("/dbs/shop/colls", items)).expect(201);
    for item in [json!({"id": "a", "pk": "p"}), json!({"id": "b", "pk": "p", "ttl": -1})] {
        client
            .send(&Request::post("/dbs/shop/colls/items/docs", item.to_string()).pk())
            .expect(201);
    }
    let asked = json!([{"id": "a", "pk": ["p"]}, {"id": "b", "pk": ["p"]}, {"id": "a", "pk": ["q"]}]);
    assert_eq!(
        ends(&mut client, "items", asked),
        json!([
            {"state": "live", "endsMs": now + 100_000},
            {"state": "live", "endsMs": null},
            {"state": "absent", "endsMs": null},
        ])
    );
    let mut refused = |items: Value| {
        let body = json!({ "items": items }).to_string();
        client
            .send(&Request::post("/_bolide/dbs/shop/colls/items/ttl/ends", body))
            .expect_error(400);
    };
    refused(json!([{"id": "a"}]));
    refused(json!([{"pk": ["p"]}]));
    refused(json!("a"));
    refused(Value::Array(vec![json!({"id": "a", "pk": ["p"]}); 101]));
}
