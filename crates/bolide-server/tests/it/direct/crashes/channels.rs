//! Channels that are silent, and channels that are cut in the middle of frames.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::relay::{Relay, Way};
use super::{verify, wait_for};
use crate::client::{Request, create_container};
use crate::direct::call::Operation;
use crate::direct::frames::PATIENCE;
use crate::direct::random::setting;
use crate::direct::sdk::{Sdk, batch, item, items};
use crate::listening::certificate;
use crate::server::Server;

const KEY: &str = r#"["p"]"#;

fn create(id: &str, pad: usize) -> crate::direct::call::Call {
    let body = json!({"id": id, "pk": "p", "pad": "x".repeat(pad)});
    items(Operation::Create).key(KEY).body(body.to_string())
}

/// A figure of the process, over a new connection: none may be idle here for long.
fn figure(server: &Server, name: &str) -> u64 {
    let page = server
        .client()
        .send(&Request::get("/_bolide/metrics"))
        .expect(200)
        .text();
    let line = page.lines().find(|line| line.starts_with(&format!("{name} ")));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.expect("it is told").parse().expect("a whole number")
}

/// Waits until the only connection is that which asks.
fn wait_for_silence(server: &Server) {
    wait_for("end of the connections", || figure(server, "bolide_connections") == 1);
}

/// Waits until no request holds memory that was not held before.
fn wait_for_memory(server: &Server, before: u64) {
    wait_for("release of memory", || {
        figure(server, "bolide_memory_used_bytes") <= before
    });
}

#[test]
fn a_channel_that_is_half_open_holds_up_neither_its_client_nor_the_server() {
    let server = Server::in_memory(&["--request-timeout", "1", "--idle-timeout", "2"]);
    create_container(&mut server.client());
    let pem = certificate(&server);
    wait_for_silence(&server);
    let memory = figure(&server, "bolide_memory_used_bytes");
    let relay = Relay::to(server.port());
    let new = || Sdk::new(relay.port(), &pem);
    let mut used = new();
    used.write(&create("before", 10)).expect("an answer").expect(201);
    used.write(&create("large", 1_500_000)).expect("an answer").expect(201);

    // One is in the middle of a frame, the answers to another one do not arrive, one has answered all.
    let mut sending = new();
    let (frame, channel) = sending.frame(&create("half", 400_000));
    channel.write(&frame[..frame.len() / 2]);
    let mut asking = new();
    for _ in 0..40 {
        let (frame, channel) = asking.frame(&item(Operation::Read, KEY, "large"));
        channel.write(&frame);
    }
    wait_for("requests that hold memory", || {
        figure(&server, "bolide_memory_used_bytes") > memory + 1_000_000
    });
    relay.freeze();

    // Its client waits for as long as it wants to, and goes on.
    used.wait_at_most(Duration::from_secs(1));
    let sent = used.write(&create("lost", 10));
    assert!(sent.is_none(), "the relay forwards nothing");
    let channels = used.channels;
    assert_eq!(
        used.read(item(Operation::Read, KEY, "before")).expect(200).json()["id"],
        "before"
    );
    assert!(used.channels > channels, "it opened no other channel");
    used.read(item(Operation::Read, KEY, "lost")).expect(404);
    used.wait_at_most(PATIENCE);
    used.write(&create("lost", 10)).expect("an answer").expect(201);
    drop(used);

    wait_for_silence(&server);
    wait_for_memory(&server, memory);
    let mut sdk = Sdk::new(server.port(), &pem);
    sdk.read(item(Operation::Read, KEY, "half")).expect(404);
    sdk.read(item(Operation::Read, KEY, "large")).expect(200);
    drop((sending, asking));
}

/// What was sent through the relay.
#[derive(Default)]
struct Told {
    /// Whether the answer to each batch came, by its number.
    batches: BTreeMap<usize, bool>,
    /// Increments with and without an answer.
    counted: [i64; 2],
}

#[test]
fn a_channel_that_is_cut_in_a_frame_does_no_request_twice_or_half() {
    let rounds = setting("BOLIDE_ROUNDS").map_or(40, |rounds| rounds * 10);
    let server = Server::in_memory(&[]);
    create_container(&mut server.client());
    let pem = certificate(&server);
    wait_for_silence(&server);
    let memory = figure(&server, "bolide_memory_used_bytes");
    let mut direct = Sdk::new(server.port(), &pem);
    let counter = json!({"id": "counter", "pk": "p", "n": 0}).to_string();
    direct
        .write(&items(Operation::Create).key(KEY).body(counter))
        .expect("an answer")
        .expect(201);
    drop(direct);

    let relay = Relay::to(server.port());
    let mut choices = fastrand::Rng::with_seed(setting("BOLIDE_SEED").unwrap_or(1));
    let mut sdk = Sdk::new(relay.port(), &pem);
    // Its connection for HTTP stays.
    sdk.pkranges();
    let mut told = Told::default();
    for _ in 0..rounds {
        let way = match choices.bool() {
            true => Way::ToServer,
            false => Way::ToClient,
        };
        relay.cut_next(way, choices.usize(..40_000));
        sdk.disconnect();
        let channels = sdk.channels;
        // Until the cut, or so many that it came while the channel was opened.
        for _ in 0..20 {
            if sdk.channels > channels + 1 {
                break;
            }
            told.send(&mut sdk, choices.bool());
        }
    }
    drop(sdk);
    drop(relay);
    wait_for_silence(&server);
    wait_for_memory(&server, memory);
    told.compare(&mut Sdk::new(server.port(), &pem));
    verify(&mut server.client());
}

impl Told {
    fn send(&mut self, sdk: &mut Sdk, is_batch: bool) {
        if !is_batch {
            let patch = json!({"operations": [{"op": "incr", "path": "/n", "value": 1}]}).to_string();
            let answer = sdk.write(&item(Operation::Patch, KEY, "counter").body(patch));
            self.counted[usize::from(answer.is_none())] += 1;
            if let Some(answer) = answer {
                answer.expect(200);
            }
            return;
        }
        let number = self.batches.len();
        let of = |half: &str| {
            let body = json!({"id": format!("{number}-{half}"), "pk": "p", "pad": pad(number)});
            json!({"operationType": "Create", "resourceBody": body})
        };
        let answer = sdk.write(&batch(KEY, &json!([of("a"), of("b")])));
        let is_answered = answer.is_some();
        if let Some(answer) = answer {
            let results = answer.expect(200).json();
            for (result, half) in results.as_array().expect("a list").iter().zip(["a", "b"]) {
                assert_eq!(result["statusCode"], 201);
                assert_eq!(result["resourceBody"]["id"], format!("{number}-{half}"));
                assert_eq!(result["resourceBody"]["pad"], pad(number));
            }
        }
        self.batches.insert(number, is_answered);
    }

    fn compare(&self, sdk: &mut Sdk) {
        let [answered, unclear] = self.counted;
        let unclear_batches = self.batches.values().filter(|is_answered| !**is_answered).count();
        assert!(
            answered > 0 && unclear > 0 && unclear_batches > 0,
            "too few were cut to show anything"
        );
        let counter = sdk.read(item(Operation::Read, KEY, "counter")).expect(200).json();
        let n = counter["n"].as_i64().expect("a number");
        assert!(
            (answered..=answered + unclear).contains(&n),
            "{n} increments, of {answered} with an answer and {unclear} without one"
        );
        for (number, is_answered) in &self.batches {
            let halves = ["a", "b"].map(|half| {
                let answer = sdk.read(item(Operation::Read, KEY, &format!("{number}-{half}")));
                match answer.head.status() {
                    404 => false,
                    _ => {
                        assert_eq!(answer.expect(200).json()["pad"], pad(*number));
                        true
                    }
                }
            });
            assert!(
                halves == [true, true] || halves == [false, false] && !is_answered,
                "batch {number}: {halves:?}, answered: {is_answered}"
            );
        }
    }
}

fn pad(number: usize) -> String {
    number.to_string().repeat(1500)
}
