//! Attacks by hostile clients.

mod over_frames;
mod over_http;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::Result;
use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::direct::endpoint::Endpoint;
use crate::direct::frames::Known;

/// Timeout of a response: then the attacker disconnects and connects again.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Pause before an attacker reconnects after its connection was refused or ended.
const PAUSE: Duration = Duration::from_millis(50);
/// More connections than a server with 1,024 descriptors could accept.
const IDLE_CONNECTIONS: usize = 1_200;
/// Connections that send large bodies without a key.
const BODIES: usize = 500;
/// Channels that send nothing: more than a server accepts by default.
const CHANNELS: usize = 10_000;
/// Channels that never end a frame.
const SLOW_CHANNELS: usize = 500;
/// The item used in most attacks.
const ITEM: &str = "worst";
/// A response of more than 30 MB.
const LARGE_QUERY: &str = "SELECT VALUE ARRAY(SELECT VALUE REPLICATE('a', 10000) FROM a IN c.xs) FROM c";

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
    /// Channels of direct mode that send nothing.
    Channels,
    /// Frames that come byte by byte, or whose payload does not come.
    SlowFrames,
    /// Frames that are unsigned, wrongly signed, or come before the context.
    FramesWithoutKey,
    /// Large responses to frames, many on each channel, that nobody reads.
    UnreadFrames,
    /// All of them.
    All,
}

impl Attack {
    /// All, in the order of the table.
    pub const ALL: [Attack; 13] = [
        Attack::None,
        Attack::Queries,
        Attack::Groups,
        Attack::Patches,
        Attack::Scripts,
        Attack::Answers,
        Attack::Bodies,
        Attack::Idle,
        Attack::Channels,
        Attack::SlowFrames,
        Attack::FramesWithoutKey,
        Attack::UnreadFrames,
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
            Attack::Channels => "channels",
            Attack::SlowFrames => "slow frames",
            Attack::FramesWithoutKey => "frames without a key",
            Attack::UnreadFrames => "unread frames",
            Attack::All => "all at once",
        }
    }

    /// The number of its connections, where `connections` is that of attacks without one of their own.
    pub fn connections(self, connections: usize) -> usize {
        self.parts(connections).iter().map(|(_, connections)| connections).sum()
    }

    /// Its parts, each with its number of connections.
    fn parts(self, connections: usize) -> Vec<(Attack, usize)> {
        match self {
            Attack::None => Vec::new(),
            Attack::Bodies => vec![(self, BODIES)],
            Attack::Idle => vec![(self, IDLE_CONNECTIONS)],
            Attack::Channels => vec![(self, CHANNELS)],
            Attack::SlowFrames => vec![(self, SLOW_CHANNELS)],
            Attack::All => Attack::ALL
                .into_iter()
                .filter(|part| *part != Attack::All)
                .flat_map(|part| part.parts(connections))
                .collect(),
            Attack::Queries
            | Attack::Groups
            | Attack::Patches
            | Attack::Scripts
            | Attack::Answers
            | Attack::FramesWithoutKey
            | Attack::UnreadFrames => {
                vec![(self, connections)]
            }
        }
    }

    fn is_direct(self) -> bool {
        use Attack::{Channels, FramesWithoutKey, SlowFrames, UnreadFrames};
        matches!(self, Channels | SlowFrames | FramesWithoutKey | UnreadFrames)
    }
}

/// What is attacked.
pub struct Target {
    address: SocketAddr,
    keyed: Arc<Requests>,
    read_only: Requests,
    endpoint: Arc<Endpoint>,
    known: Known,
}

impl Target {
    /// A server, in whose container the data for the attacks is stored.
    pub async fn prepare(address: SocketAddr, control: &mut Connection, keyed: &Arc<Requests>) -> Result<Target> {
        let mut known = Known::of(control, keyed).await?;
        over_http::prepare(control, keyed, &mut known).await?;
        Ok(Target {
            address,
            keyed: keyed.clone(),
            read_only: Requests::to(address).read_only(),
            endpoint: Arc::new(Endpoint::of(address, control).await?),
            known,
        })
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
    pub fn start(attack: Attack, connections: usize, target: &Target) -> Result<Attackers> {
        let responses = ResponseCounts::default();
        let frames = over_frames::Kit::new(target)?;
        let mut tasks = JoinSet::new();
        for (part, connections) in attack.parts(connections) {
            for number in 0..connections {
                let responses = responses.clone();
                tasks.spawn(match part.is_direct() {
                    true => frames.attacker(part, number, responses),
                    false => over_http::attacker(part, number, target, responses),
                });
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
