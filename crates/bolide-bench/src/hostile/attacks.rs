//! Attacks by hostile clients.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Result;
use crate::connection::Connection;
use crate::cosmos::Requests;

/// Timeout of a response: then the attacker disconnects and connects again.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Pause before an attacker reconnects after its connection was refused or ended.
const PAUSE: Duration = Duration::from_millis(50);
/// More connections than a server with 1,024 descriptors could accept.
const IDLE_CONNECTIONS: usize = 1_200;
/// Connections that send large bodies without a key.
const BODIES: usize = 500;
const BODY_BYTES: usize = 2_000_000;
/// How long a body is held just before its end.
const HOLD_TIME: Duration = Duration::from_secs(10);
/// Length of the array that queries join with itself: about ten million pairs.
const ELEMENTS: usize = 3_163;
/// The item used in most attacks.
const ITEM: &str = "worst";

/// A kind of attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Attack {
    /// None, for comparison.
    None,
    /// Queries that visit ten million rows of one item, with a read-only key.
    Queries,
    /// Queries that use as much memory as they can, with a read-only key.
    Groups,
    /// Patches with conditions like those of the queries.
    Patches,
    /// Stored procedures that never end.
    Scripts,
    /// Large responses that nobody reads.
    Answers,
    /// Large bodies without a key.
    Bodies,
    /// Connections that send nothing.
    Idle,
    /// All of them.
    All,
}

impl Attack {
    /// All, in the order of the table.
    pub const ALL: [Attack; 9] = [
        Attack::None,
        Attack::Queries,
        Attack::Groups,
        Attack::Patches,
        Attack::Scripts,
        Attack::Answers,
        Attack::Bodies,
        Attack::Idle,
        Attack::All,
    ];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Attack::None => "none",
            Attack::Queries => "queries",
            Attack::Groups => "groups",
            Attack::Patches => "patches",
            Attack::Scripts => "scripts",
            Attack::Answers => "unread responses",
            Attack::Bodies => "bodies without a key",
            Attack::Idle => "idle connections",
            Attack::All => "all at once",
        }
    }

    /// Its parts, each with its number of connections.
    fn parts(self, connections: usize) -> Vec<(Attack, usize)> {
        match self {
            Attack::None => Vec::new(),
            Attack::Bodies => vec![(self, BODIES)],
            Attack::Idle => vec![(self, IDLE_CONNECTIONS)],
            Attack::All => Attack::ALL
                .into_iter()
                .filter(|part| *part != Attack::All)
                .flat_map(|part| part.parts(connections))
                .collect(),
            Attack::Queries | Attack::Groups | Attack::Patches | Attack::Scripts | Attack::Answers => {
                vec![(self, connections)]
            }
        }
    }
}

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

/// Stores the data for the attacks.
pub async fn prepare(control: &mut Connection, requests: &Requests) -> Result<()> {
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
    control
        .expect(201, &requests.create_document(ITEM, &item.to_string()))
        .await?;
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
fn request(attack: Attack, number: usize, keyed: &Requests, read_only: &Requests) -> Vec<u8> {
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
        _ => read_only.query("SELECT VALUE ARRAY(SELECT VALUE REPLICATE('a', 10000) FROM a IN c.xs) FROM c"),
    }
}

/// The number of responses of each kind.
type ResponseCounts = Arc<Mutex<BTreeMap<String, u64>>>;

/// Running attackers.
pub struct Attackers {
    tasks: JoinSet<()>,
    responses: ResponseCounts,
}

impl Attackers {
    /// Starts an attack.
    pub async fn start(
        attack: Attack,
        connections: usize,
        address: SocketAddr,
        keyed: &Arc<Requests>,
    ) -> Result<Attackers> {
        let read_only = Requests::to(address).read_only();
        let responses = ResponseCounts::default();
        let mut tasks = JoinSet::new();
        for (part, connections) in attack.parts(connections) {
            for number in 0..connections {
                let responses = responses.clone();
                match part {
                    Attack::Idle => tasks.spawn(stay(address, responses)),
                    Attack::Bodies => tasks.spawn(send_body(address, keyed.unsigned_head(BODY_BYTES), responses)),
                    Attack::Answers => tasks.spawn(leave_unread(
                        address,
                        request(part, number, keyed, &read_only),
                        responses,
                    )),
                    _ => tasks.spawn(repeat(address, request(part, number, keyed, &read_only), responses)),
                };
            }
        }
        Ok(Attackers { tasks, responses })
    }

    /// Ends the attack, and returns the responses that the attackers got.
    pub async fn stop(mut self) -> String {
        self.tasks.shutdown().await;
        let responses = self.responses.lock();
        let counted: Vec<String> = responses
            .iter()
            .map(|(response, times)| format!("{times} × {response}"))
            .collect();
        counted.join(", ")
    }
}

fn note(responses: &ResponseCounts, response: impl Into<String>) {
    *responses.lock().entry(response.into()).or_default() += 1;
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
