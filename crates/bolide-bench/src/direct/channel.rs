//! A channel: a connection in direct mode, with one request under way or several.

use std::time::{Duration, Instant};

use bolide_rntbd::context::{ContextRequest, PROTOCOL_VERSION};
use bolide_rntbd::frame::{Head, LENGTH_BYTES, head_rest};
use bolide_rntbd::table::response;
use bolide_rntbd::token::Kind;
use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::endpoint::{Endpoint, Tls};
use super::frames::Frame;
use crate::Result;
use crate::load::Period;

/// The longest head of a response.
const HEAD_LIMIT: usize = 64 * 1024;
/// Room for each reading.
const READ_BYTES: usize = 16 * 1024;

/// See the module.
pub struct Channel {
    stream: Tls,
    incoming: Incoming,
    outgoing: Vec<u8>,
    /// The number of the last request.
    last: u32,
}

impl Channel {
    /// Connects, and negotiates.
    pub async fn open(endpoint: &Endpoint) -> Result<Channel> {
        let mut channel = Channel {
            stream: endpoint.connect().await?,
            incoming: Incoming::default(),
            outgoing: Vec::new(),
            last: 0,
        };
        let context = ContextRequest {
            activity_id: [1; 16],
            protocol_version: PROTOCOL_VERSION,
            client_version: "2020-07-15".to_owned(),
            user_agent: "bolide-bench".to_owned(),
        };
        let context = context.write().ok_or("the context is too long")?;
        channel.stream.write_all(&context).await?;
        channel.stream.flush().await?;
        match channel.receive().await?.head.status() {
            200 => Ok(channel),
            status => Err(format!("the server refuses the context with status {status}").into()),
        }
    }

    /// The stream of a channel to which nothing has been sent since.
    pub fn into_stream(self) -> Tls {
        self.stream
    }

    /// Sends a request, with [`Channel::flush`] at the latest; returns its number.
    pub async fn write(&mut self, frame: &Frame) -> Result<u32> {
        self.last = self.last.wrapping_add(1);
        frame.write(self.last, &mut self.outgoing);
        self.stream.write_all(&self.outgoing).await?;
        Ok(self.last)
    }

    /// Sends what is still to be sent.
    pub async fn flush(&mut self) -> Result<()> {
        Ok(self.stream.flush().await?)
    }

    /// The next response.
    pub async fn receive(&mut self) -> Result<Answer> {
        loop {
            if let Some(answer) = self.incoming.next()? {
                return Ok(answer);
            }
            self.incoming.bytes.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.incoming.bytes).await? == 0 {
                return Err("the server closed the channel".into());
            }
        }
    }
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub head: Head,
    pub body: Bytes,
}

/// Bytes that have arrived, and the responses in them.
#[derive(Debug, Default)]
pub struct Incoming {
    pub bytes: BytesMut,
    /// That of a response whose payload is not there yet.
    head: Option<Head>,
}

impl Incoming {
    /// Takes off a response; `None`: it is not whole yet.
    pub fn next(&mut self) -> Result<Option<Answer>> {
        if self.head.is_none() {
            let Some(length) = self.bytes.first_chunk::<LENGTH_BYTES>() else {
                return Ok(None);
            };
            let rest = head_rest(*length, HEAD_LIMIT)?;
            if self.bytes.len() < LENGTH_BYTES + rest {
                return Ok(None);
            }
            self.bytes.advance(LENGTH_BYTES);
            self.head = Some(Head::read(self.bytes.split_to(rest).freeze())?);
        }
        let present = self
            .head
            .as_ref()
            .map(|head| head.tokens.get(response::PAYLOAD_PRESENT));
        // In the first response another token has this id, of another type.
        let has_payload = present
            .flatten()
            .is_some_and(|token| (token.kind, token.whole()) == (Kind::Byte, Ok(1)));
        let Some(body) = (match has_payload {
            true => self.payload()?,
            false => Some(Bytes::new()),
        }) else {
            return Ok(None);
        };
        Ok(self.head.take().map(|head| Answer { head, body }))
    }

    fn payload(&mut self) -> Result<Option<Bytes>> {
        let Some(length) = self.bytes.first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*length))?;
        if self.bytes.len() < LENGTH_BYTES + length {
            return Ok(None);
        }
        self.bytes.advance(LENGTH_BYTES);
        Ok(Some(self.bytes.split_to(length).freeze()))
    }
}

/// A client that has so many requests under way on its channel, and expects the same status for all of them.
pub struct Asker<F> {
    pub channel: Channel,
    pub at_once: usize,
    pub expected: u32,
    pub next: F,
}

impl<R, F> Asker<F>
where
    R: AsRef<Frame> + Send + 'static,
    F: FnMut() -> R + Send + 'static,
{
    /// Asks as long as it may; returns the latencies of what counts.
    pub async fn repeat(mut self, period: Period) -> Result<Vec<Duration>> {
        let mut latencies = Vec::new();
        let mut under_way: Vec<(u32, Instant)> = Vec::with_capacity(self.at_once);
        loop {
            while under_way.len() < self.at_once {
                let started = Instant::now();
                if !period.may_begin(started) {
                    break;
                }
                let request = (self.next)();
                under_way.push((self.channel.write(request.as_ref()).await?, started));
            }
            if under_way.is_empty() {
                return Ok(latencies);
            }
            self.channel.flush().await?;
            let mut answer = Some(self.channel.receive().await?);
            while let Some(taken) = answer {
                let (started, ended) = (self.started(&taken, &mut under_way)?, Instant::now());
                if period.counts(started, ended) {
                    latencies.push(ended - started);
                }
                answer = self.channel.incoming.next()?;
            }
        }
    }

    /// When the request of a response began, which is under way no longer.
    fn started(&self, answer: &Answer, under_way: &mut Vec<(u32, Instant)>) -> Result<Instant> {
        let status = answer.head.status();
        if status != self.expected {
            return Err(format!("status {status}: {}", String::from_utf8_lossy(&answer.body)).into());
        }
        let number = answer.head.tokens.required(response::TRANSPORT_REQUEST_ID)?.whole()?;
        let mut numbers = under_way.iter();
        let at = numbers.position(|(asked, _)| i128::from(*asked) == number);
        Ok(under_way.swap_remove(at.ok_or("a response to no request")?).1)
    }
}
