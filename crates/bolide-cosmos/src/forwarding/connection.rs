//! The sender's end of a connection to another server: many writes are under way on it, and those that come at the same time are sent together.

use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::Monotonic;
use bytes::{Bytes, BytesMut};
use http::Response;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{Notify, oneshot};

use super::frame::{self, Malformed, Sent};
use super::{PeerStream, SendError, UNDER_WAY};

/// How long a connection is kept that is not used.
pub(super) const IDLE: Duration = Duration::from_secs(10);

/// See the module. It ends when it is dropped and has the responses to what was sent.
pub(super) struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// There is something to write, or the connection is to end.
    changed: Notify,
    clock: Monotonic,
    timeout: Duration,
}

struct State {
    phase: Phase,
    /// Frames that are to be written.
    out: BytesMut,
    /// The number of the last write that has been handed to the stream.
    written: u64,
    /// The number of the last write.
    last: u64,
    /// Writes without a response, also those whose clients have gone.
    pending: HashMap<u64, oneshot::Sender<Result<Response<Bytes>, SendError>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Nothing more is sent; there are still responses to come.
    Ending,
    Ended,
}

impl Connection {
    /// A connection over `stream`, until it ends. Each response is waited for so long.
    pub fn over(stream: PeerStream, clock: Monotonic, timeout: Duration) -> Connection {
        let state = State {
            phase: Phase::Open,
            out: BytesMut::new(),
            written: 0,
            last: 0,
            pending: HashMap::new(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Notify::new(),
            clock,
            timeout,
        });
        tokio::spawn(shared.clone().run(stream));
        Connection { shared }
    }

    /// Whether more can be sent.
    pub fn is_open(&self) -> bool {
        self.shared.state.lock().phase == Phase::Open
    }

    /// Sends a request, and waits for its response.
    pub async fn send(&self, sent: Sent<'_>) -> Result<Response<Bytes>, SendError> {
        let response = self.shared.state.lock().add(sent)?;
        self.shared.changed.notify_one();
        let clock = &self.shared.clock;
        let answered = clock.timeout_at(clock.now() + self.shared.timeout, response).await;
        let answered = answered.ok_or_else(|| SendError::NoResponse("no response in time".to_owned()))?;
        answered.unwrap_or_else(|_| Err(SendError::NoResponse("the connection has ended".to_owned())))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.end_after_responses();
    }
}

impl State {
    /// Adds a request to what is to be written.
    fn add(&mut self, sent: Sent<'_>) -> Result<oneshot::Receiver<Result<Response<Bytes>, SendError>>, SendError> {
        let refused = |why: &str| Err(SendError::NotSent(why.to_owned()));
        if self.phase != Phase::Open {
            return refused("the connection ends");
        }
        if self.pending.len() >= UNDER_WAY {
            return refused("many writes are under way");
        }
        let number = self.last + 1;
        if frame::put_request(&mut self.out, number, sent).is_err() {
            return refused("it is too large");
        }
        self.last = number;
        let (reply, response) = oneshot::channel();
        self.pending.insert(number, reply);
        Ok(response)
    }
}

impl Shared {
    async fn run(self: Arc<Self>, stream: PeerStream) {
        let (reading, writing) = tokio::io::split(stream);
        let mut reads = pin!(self.read(reading));
        let mut writes = pin!(self.write(writing));
        let ended = tokio::select! {
            ended = &mut reads => ended,
            written = &mut writes => match written {
                // There are still responses to come.
                Ok(()) => reads.await,
                Err(error) => Err(error),
            },
        };
        self.end(&ended.map_or_else(|error| error.to_string(), |()| "the other side has ended it".to_owned()));
    }

    /// Writes what is to be written, until the connection is to end.
    async fn write(&self, mut stream: WriteHalf<PeerStream>) -> io::Result<()> {
        let mut frames = BytesMut::new();
        loop {
            self.changed.notified().await;
            // Other requests that have arrived by now go with the same write.
            tokio::task::yield_now().await;
            let phase = {
                let mut state = self.state.lock();
                std::mem::swap(&mut frames, &mut state.out);
                state.written = state.last;
                state.phase
            };
            stream.write_all(&frames).await?;
            super::reuse(&mut frames);
            if phase != Phase::Open {
                return stream.shutdown().await;
            }
        }
    }

    /// Reads responses, until the other side ends the connection.
    async fn read(&self, mut stream: ReadHalf<PeerStream>) -> io::Result<()> {
        let mut arrived = BytesMut::with_capacity(4096);
        let mut last = self.clock.now();
        // One timer for all reads.
        let mut tick = pin!(self.clock.sleep(IDLE));
        loop {
            tokio::select! {
                biased;
                read = stream.read_buf(&mut arrived) => match read? {
                    0 => return Ok(()),
                    _ => {
                        last = self.clock.now();
                        self.take_responses(&mut arrived)
                            .map_err(|Malformed| io::Error::other("it sends what is no response"))?;
                    }
                },
                () = &mut tick => {
                    self.look_for_use(self.clock.since(last))?;
                    tick.set(self.clock.sleep(IDLE));
                }
            }
        }
    }

    /// Ends a connection on which nothing has arrived for so long, if it is not used or the other side hangs.
    fn look_for_use(&self, quiet: Duration) -> io::Result<()> {
        let (is_used, phase) = {
            let state = self.state.lock();
            (!state.pending.is_empty(), state.phase)
        };
        if quiet < IDLE {
            return Ok(());
        }
        // Something has been under way since the last time that this was looked for, or the connection would have ended then.
        if is_used && quiet < self.timeout + 2 * IDLE {
            return Ok(());
        }
        if phase != Phase::Open || is_used {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.end_after_responses();
        Ok(())
    }

    fn take_responses(&self, arrived: &mut BytesMut) -> Result<(), Malformed> {
        while let Some((number, rest)) = frame::take(arrived)? {
            if number == frame::STOPS {
                self.end_after_responses();
                continue;
            }
            let response = match rest.is_empty() {
                true => Err(SendError::Unsendable),
                false => Ok(frame::response(rest)?),
            };
            let reply = self.state.lock().pending.remove(&number).ok_or(Malformed)?;
            // Its client may have gone.
            let _ = reply.send(response);
        }
        Ok(())
    }

    /// Sends nothing more after what was given so far.
    fn end_after_responses(&self) {
        let mut state = self.state.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Ending;
            self.changed.notify_one();
        }
    }

    /// Nothing more can come.
    fn end(&self, why: &str) {
        let mut state = self.state.lock();
        state.phase = Phase::Ended;
        state.out = BytesMut::new();
        let written = state.written;
        for (number, reply) in state.pending.drain() {
            let why = why.to_owned();
            // Its client may have gone.
            let _ = reply.send(Err(match number > written {
                true => SendError::NotSent(why),
                false => SendError::NoResponse(why),
            }));
        }
    }
}
