//! The queue of writes for one server.
//!
//! A lone write is sent at once. Those that come while [`POSTS`] are under way wait for the first of them to end, and share the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_core::NodeId;
use bytes::Bytes;
use http::{Response, StatusCode};
use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;
use tokio::sync::oneshot;

use super::{Forwarding, MESSAGES, SendError, messages, receiver_mac};

/// POSTs to one server at once. With few, those who wait for one POST to end are missing in the commits meanwhile.
pub(super) const POSTS: usize = 16;
/// Bytes of one POST.
const BYTES: usize = 1024 * 1024;
/// Writes that wait for one server.
const WAITING: usize = 1024;
/// How long a write waits to be sent, before it is carried out where it arrived.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long nothing is sent to a server after it has failed; twice as long after each further failure.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How a write ended that was to be carried out by another server.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answered(Response<Bytes>),
    /// It was not carried out.
    NotSent,
    /// It may have been carried out.
    Unknown,
}

/// A server to which writes are sent.
pub(super) struct Destination {
    pub node: NodeId,
    pub endpoint: String,
    queue: Mutex<Queue>,
}

struct Queue {
    posts: usize,
    waiting: VecDeque<Waiting>,
    next_number: u64,
    /// Whether it has shown that it has a key of the account.
    is_proven: bool,
    paused_until: Option<Instant>,
    pause: Duration,
}

struct Waiting {
    number: u64,
    message: Vec<u8>,
    reply: oneshot::Sender<Outcome>,
}

impl Destination {
    pub fn new(node: NodeId, endpoint: String) -> Destination {
        Destination {
            node,
            endpoint,
            queue: Mutex::new(Queue {
                posts: 0,
                waiting: VecDeque::new(),
                next_number: 0,
                is_proven: false,
                paused_until: None,
                pause: PAUSE,
            }),
        }
    }

    /// Sends a message, alone or with others, and waits for the response to it.
    pub async fn carry_out(self: Arc<Destination>, forwarding: &Arc<Forwarding>, message: Vec<u8>) -> Outcome {
        let now = forwarding.clock.now();
        let Some((number, mut answer)) = self.enqueue(now, message) else {
            return Outcome::NotSent;
        };
        if self.queue.lock().take_post() {
            tokio::spawn(self.clone().send_all(forwarding.clone()));
        }
        let answer = match forwarding.clock.timeout_at(now + PATIENCE, &mut answer).await {
            Some(answer) => answer,
            None if self.queue.lock().withdraw(number) => return Outcome::NotSent,
            None => answer.await,
        };
        // Without a reply the process ends.
        answer.unwrap_or(Outcome::Unknown)
    }

    fn enqueue(&self, now: Instant, message: Vec<u8>) -> Option<(u64, oneshot::Receiver<Outcome>)> {
        let mut queue = self.queue.lock();
        if queue.paused_until.is_some_and(|until| now < until) || queue.waiting.len() >= WAITING {
            return None;
        }
        let (reply, answer) = oneshot::channel();
        let number = queue.next_number;
        queue.next_number += 1;
        queue.waiting.push_back(Waiting { number, message, reply });
        Some((number, answer))
    }

    /// Sends what waits until nothing does.
    async fn send_all(self: Arc<Destination>, forwarding: Arc<Forwarding>) {
        loop {
            let batch = self.queue.lock().next();
            if batch.is_empty() {
                return;
            }
            let (messages, replies): (Vec<_>, Vec<_>) = batch
                .into_iter()
                .map(|waiting| (waiting.message, waiting.reply))
                .unzip();
            let outcomes = self.post(&forwarding, &messages).await;
            for (reply, outcome) in replies.into_iter().zip(outcomes) {
                // Whoever has asked may be gone.
                let _ = reply.send(outcome);
            }
        }
    }

    /// Sends messages together; returns an outcome for each.
    async fn post(&self, forwarding: &Forwarding, messages: &[Vec<u8>]) -> Vec<Outcome> {
        let all = |outcome: fn() -> Outcome| messages.iter().map(|_| outcome()).collect();
        if let Err(why) = self.prove(forwarding).await {
            self.failed(forwarding, &why);
            return all(|| Outcome::NotSent);
        }
        let answered = forwarding.post(self, messages.concat().into(), "").await;
        let (status, body) = match answered {
            Ok(response) => (response.status(), response.into_body()),
            Err(SendError::NotSent(why)) => {
                self.failed(forwarding, &why);
                return all(|| Outcome::NotSent);
            }
            Err(SendError::NoResponse(why)) => {
                self.failed(forwarding, &why);
                return all(|| Outcome::Unknown);
            }
        };
        let responses = messages::responses(body, messages.len()).filter(|all| all.len() == messages.len());
        match responses {
            Some(responses) if status == StatusCode::OK => {
                match responses
                    .iter()
                    .any(|response| response.status() == StatusCode::SERVICE_UNAVAILABLE)
                {
                    true => self.failed(forwarding, "it answers 503"),
                    false => self.queue.lock().pause = PAUSE,
                }
                responses.into_iter().map(Outcome::Answered).collect()
            }
            _ => {
                self.failed(forwarding, &format!("it answers {status}"));
                // It refuses before it begins.
                match status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE {
                    true => all(|| Outcome::NotSent),
                    false => all(|| Outcome::Unknown),
                }
            }
        }
    }

    /// Lets the server prove that it has a key of the account, and is the node that it is taken for.
    async fn prove(&self, forwarding: &Forwarding) -> Result<(), String> {
        if self.queue.lock().is_proven {
            return Ok(());
        }
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        let answered = forwarding.post(self, Bytes::new(), &nonce).await;
        let response = answered.map_err(|(SendError::NotSent(why) | SendError::NoResponse(why))| why)?;
        let proof = receiver_mac(&forwarding.keys, &self.node.to_string(), nonce.as_bytes());
        if response.status() != StatusCode::OK || !bool::from(response.body().ct_eq(proof.as_bytes())) {
            return Err(format!("something else is there, which answers {}", response.status()));
        }
        self.queue.lock().is_proven = true;
        Ok(())
    }

    /// Sends nothing for a while; what waits is carried out where it arrived.
    fn failed(&self, forwarding: &Forwarding, why: &str) {
        let now = forwarding.clock.now();
        let mut queue = self.queue.lock();
        queue.is_proven = false;
        // The POSTs that are under way fail together, and are one failure.
        if queue.paused_until.is_none_or(|until| until <= now) {
            let (node, endpoint) = (self.node, &self.endpoint);
            tracing::warn!(%node, endpoint, why, "writes are not forwarded for a while");
            queue.paused_until = Some(now + queue.pause);
            queue.pause = LONGEST_PAUSE.min(queue.pause * 2);
        }
        for waiting in queue.waiting.drain(..) {
            let _ = waiting.reply.send(Outcome::NotSent);
        }
    }
}

impl Queue {
    /// Whether one more POST may begin; counts it.
    fn take_post(&mut self) -> bool {
        let may = self.posts < POSTS;
        self.posts += usize::from(may);
        may
    }

    /// The messages of the next POST. If there are none, the POST that was counted ends.
    fn next(&mut self) -> Vec<Waiting> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < MESSAGES
            && let Some(first) = self.waiting.front()
            && (batch.is_empty() || bytes + first.message.len() <= BYTES)
            && let Some(first) = self.waiting.pop_front()
        {
            // Those who gave up meanwhile need no answer.
            if !first.reply.is_closed() {
                bytes += first.message.len();
                batch.push(first);
            }
        }
        self.posts -= usize::from(batch.is_empty());
        batch
    }

    /// Takes a message back; `false` if it was sent.
    fn withdraw(&mut self, number: u64) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.number != number);
        self.waiting.len() < before
    }
}
