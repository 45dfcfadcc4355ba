//! A sharded MongoDB collection through both protocols, over splits by the admin API.

use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};
use serde_json::{Value, json};

use crate::client::{Client, Request};
use crate::mongo::port;
use crate::mongo_client::MongoClient;
use crate::server::Server;

const ADMIN: &str = "/_bolide/dbs/db/colls/c";
const NOSQL: &str = "/dbs/db/colls/c";
const DOCUMENTS: i32 = 60;
const KEYS: i32 = 6;

struct Fixture {
    _server: Server,
    http: Client,
    mongo: MongoClient,
}

impl Fixture {
    /// A collection whose documents end one after the other, ten seconds after their dates.
    fn new() -> Fixture {
        let server = Server::in_memory(&["--mongo-no-auth", "--virtual-clock=2023-11-14T22:13:20Z"]);
        let mut fixture = Fixture {
            http: server.client(),
            mongo: MongoClient::connect(port(&server)).expect("it listens"),
            _server: server,
        };
        fixture.run(&rawdoc! { "shardCollection": "db.c", "key": { "k": "hashed" }, "$db": "admin" });
        let index = rawdoc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 10 };
        fixture.run(&rawdoc! { "createIndexes": "c", "indexes": [index], "$db": "db" });
        let mut documents = RawArrayBuf::new();
        for n in 0..DOCUMENTS {
            let at = bson::DateTime::from_millis(1_700_000_000_000 + 1_000 * i64::from(n));
            let k = format!("k{}", n % KEYS);
            documents.push(rawdoc! { "_id": format!("i{}", n / KEYS), "k": k, "at": at });
        }
        fixture.run(&rawdoc! { "insert": "c", "documents": documents, "$db": "db" });
        fixture
    }

    fn run(&mut self, command: &RawDocumentBuf) -> RawDocumentBuf {
        let reply = self.mongo.run(command).expect("a reply");
        assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{reply:?}");
        assert!(reply.get_array("writeErrors").is_err(), "{reply:?}");
        reply
    }

    fn post(&mut self, path: &str, body: &Value) -> Value {
        let request = Request::post(&format!("{ADMIN}/{path}"), body.to_string());
        self.http.send(&request).expect(200).json()
    }

    fn advance(&mut self, ms: i64) {
        let request = Request::put("/_bolide/clock", json!({ "advanceMs": ms }).to_string());
        self.http.send(&request).expect(200);
    }

    fn first_batch(&mut self, command: &RawDocumentBuf) -> Vec<String> {
        let reply = self.run(command);
        let cursor = reply.get_document("cursor").expect("a cursor");
        let batch = cursor.get_array("firstBatch").expect("a batch");
        batch
            .into_iter()
            .map(|document| format!("{:?}", document.expect("valid")))
            .collect()
    }

    /// What both protocols say about the collection: in all, for each key, and for each of some documents.
    fn answers(&mut self) -> Vec<String> {
        let mut answers = Vec::new();
        let sort = || rawdoc! { "_id": 1, "k": 1 };
        for filter in (0..KEYS).map(|k| rawdoc! { "k": format!("k{k}") }).chain([rawdoc! {}]) {
            let find =
                rawdoc! { "find": "c", "filter": filter.clone(), "sort": sort(), "batchSize": 1000, "$db": "db" };
            answers.extend(self.first_batch(&find));
            let reply = self.run(&rawdoc! { "count": "c", "query": filter, "$db": "db" });
            answers.push(format!("{:?}", reply.get_i32("n").expect("a number")));
        }
        for n in 0..DOCUMENTS {
            let (id, k) = (format!("i{}", n / KEYS), format!("k{}", n % KEYS));
            let find = rawdoc! { "find": "c", "filter": { "_id": &*id, "k": &*k }, "$db": "db" };
            answers.extend(self.first_batch(&find));
            let read = Request::get(&format!("{NOSQL}/docs/{id}"));
            let read = read.header("x-ms-documentdb-partitionkey", &json!([k]).to_string());
            let read = self.http.send(&read);
            answers.push(format!("{} {}", read.status, read.json()["k"]));
        }
        let query = json!({ "query": "SELECT VALUE c.id FROM c WHERE c.k = 'k3'", "partitionKey": ["k3"] });
        let mut rows: Vec<String> = self.post("query", &query)["rows"]
            .as_array()
            .expect("rows")
            .iter()
            .map(Value::to_string)
            .collect();
        rows.sort();
        answers.extend(rows);
        answers
    }
}

#[test]
fn splits_change_no_answer_of_either_protocol() {
    let mut fixture = Fixture::new();
    for (live, step) in [(60, 0), (60, 9_999), (59, 1), (39, 20_000), (0, 60_000)] {
        fixture.advance(step);
        let before = fixture.answers();
        let read = before.iter().filter(|answer| answer.starts_with("200 ")).count();
        assert_eq!(i32::try_from(read), Ok(live), "items read by id and partition key");
        let count = fixture.run(&rawdoc! { "count": "c", "$db": "db" });
        assert_eq!(count.get_i32("n").expect("a number"), live);
        let split = fixture.post("split", &json!({}));
        assert_eq!(split["children"].as_array().map(Vec::len), Some(2));
        assert_eq!(fixture.answers(), before, "with {live} documents");
        let verified = fixture.post("verify", &json!({}));
        assert_eq!(
            (&verified["ok"], &verified["live"]),
            (&json!(true), &json!(live)),
            "{verified}"
        );
    }
    let ranges = fixture
        .http
        .send(&Request::get(&format!("{NOSQL}/pkranges")))
        .expect(200)
        .json();
    assert_eq!(ranges["_count"], 6);
}
