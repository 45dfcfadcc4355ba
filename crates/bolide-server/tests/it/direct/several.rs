//! Several servers over one PostgreSQL: each tells the addresses of all, and clients write to the owner of a partition.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bolide_postgres_server::Database;
use serde_json::{Value, json};

use super::call::{Call, Operation, Resource};
use super::client::{named_tokens, resolve_for};
use super::frames::{Answer, Direct, Sent};
use crate::client::{Request, Response};
use crate::listening::certificate;
use crate::server::Server;

/// The ports of the servers of a range: of the primary, and of the secondary.
type Ports = (u16, u16);
/// Longer than servers take for knowing that another one is dead.
const PATIENCE: Duration = Duration::from_secs(30);

fn on(database: &Database, arguments: &[&str]) -> Server {
    let arguments = [&["--advertise-host", "localhost"], arguments].concat();
    Server::with_environment(&[("BOLIDE_STORE", &database.address())], &arguments)
}

/// A container with five ranges; its resource id.
fn create(server: &Server) -> String {
    let mut client = server.client();
    client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
    let definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}).to_string();
    let made = Request::post("/dbs/d/colls", definition).header("x-ms-offer-throughput", "50000");
    let made: Value = client.send(&made).expect(201).json();
    made["_rid"].as_str().expect("text").to_owned()
}

fn asked(server: &Server, rid: &str) -> Response {
    let place = resolve_for(rid);
    let path =
        format!("//addresses/?$resolveFor={place}&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds=0,1,2,3,4");
    let request = Request::get(&path).signing_as("docs", &rid.to_lowercase());
    server
        .client()
        .send(&request.host(&format!("localhost:{}", server.port())))
}

/// The addresses of all ranges, as a server tells them.
fn addresses(server: &Server, rid: &str) -> BTreeMap<String, Ports> {
    let told = asked(server, rid).expect(200).json();
    let port = |address: &Value| -> u16 {
        let url = address["physcialUri"].as_str().expect("text");
        let rest = url.strip_prefix("rntbd://localhost:").expect("a host");
        rest.split('/').next().expect("a port").parse().expect("a number")
    };
    let told = told["Addresss"].as_array().expect("a list");
    let pairs = told.chunks(2).map(|pair| {
        assert_eq!(
            (&pair[0]["isPrimary"], &pair[1]["isPrimary"]),
            (&json!(true), &json!(false))
        );
        let range = pair[0]["partitionKeyRangeId"].as_str().expect("text").to_owned();
        (range, (port(&pair[0]), port(&pair[1])))
    });
    pairs.collect()
}

/// Waits until servers agree on what is asked of them.
fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn upsert(channel: &mut Direct, rid: &str, number: u32) -> Answer {
    let call = Call::new(Resource::Item, Operation::Upsert, "c").key("[\"p\"]");
    let mut tokens = named_tokens("d", rid, &call);
    tokens.insert(
        0x13,
        Sent::Text("/apps/bolide/services/s/partitions/p0/replicas/0p".to_owned()),
    );
    let body = json!({"id": "a", "pk": "p", "n": number}).to_string();
    channel.exchange(
        Resource::Item as u16,
        Operation::Upsert as u16,
        &tokens,
        body.as_bytes(),
    )
}

#[test]
fn each_server_tells_the_owner_of_a_range_and_its_successor() {
    let database = Database::create().expect("PostgreSQL is installed");
    let servers = [on(&database, &[]), on(&database, &[])];
    let [first, second] = &servers;
    let rid = create(first);
    let told = wait_for("both servers know each other", || {
        let (one, other) = (addresses(first, &rid), addresses(second, &rid));
        let ports: BTreeSet<u16> = one
            .values()
            .flat_map(|(primary, secondary)| [*primary, *secondary])
            .collect();
        (one == other && ports.len() == 2).then_some(one)
    });
    assert_eq!(told.len(), 5);
    for (primary, secondary) in told.values() {
        assert_ne!(primary, secondary);
    }
    // Any of them carries out a request with what the other one has acknowledged.
    let mut channels = servers
        .each_ref()
        .map(|server| Direct::connect(server.port(), &certificate(server), "2020-07-15"));
    for number in 0..20 {
        let channel = &mut channels[usize::from(number % 2 == 1)];
        let written = upsert(channel, &rid, number);
        assert!(
            written.head.status() < 300,
            "{}",
            String::from_utf8_lossy(&written.body)
        );
    }
    for server in &servers {
        let read = server
            .client()
            .send(&Request::get("/dbs/d/colls/c/docs/a").pk())
            .expect(200);
        assert_eq!(read.json()["n"], 19);
    }
    // One that dies is not told any more, and nothing is lost.
    let [dead, alive] = servers;
    drop(dead);
    let port = alive.port();
    wait_for("the dead one is not told any more", || {
        let told = addresses(&alive, &rid);
        told.values().all(|ports| *ports == (port, port)).then_some(())
    });
    let mut channel = Direct::connect(port, &certificate(&alive), "2020-07-15");
    assert_eq!(upsert(&mut channel, &rid, 20).head.status(), 200);
}

#[test]
fn others_do_not_tell_of_a_server_that_clients_in_direct_mode_do_not_reach() {
    let database = Database::create().expect("PostgreSQL is installed");
    let servers = [on(&database, &[]), on(&database, &["--no-direct"])];
    let rid = create(&servers[0]);
    let client = &mut servers[0].client();
    wait_for("both servers know each other", || {
        let nodes = client.send(&Request::get("/_bolide/cluster")).expect(200).json();
        (nodes["nodes"].as_array().expect("a list").len() == 2).then_some(())
    });
    let own = servers[0].port();
    assert!(addresses(&servers[0], &rid).values().all(|ports| *ports == (own, own)));
    assert!(
        asked(&servers[1], &rid)
            .expect_error(400)
            .text()
            .contains("gateway mode")
    );
}
