//! Request bodies from the network, within limits of size, time and memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_cosmos::{BodyError, Counted, Received, Refused, RequestBody};
use bolide_model::limits;
use bolide_model::time::Monotonic;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use tokio::sync::Semaphore;

use crate::streams::Stream;
use crate::timeouts::{Pulse, SHORT_PATIENCE};

/// Bytes that are read and thrown away behind a refusal, so that the holder of a key gets to read it and goes on with the connection: .NET
/// reads no answer before it has sent all, and takes a connection that ends meanwhile for a broken one, to try again for two minutes. Their time
/// is bounded too.
const DRAINED_BYTES: usize = 128 * 1024 * 1024;
/// The same for whoever has not shown a key: as much as an honest request could have.
const DRAINED_BYTES_OF_UNKNOWN: usize = limits::ITEM_BYTES + 64 * 1024;
/// Bodies of one kind of sender that are thrown away at a time.
const DRAINS: usize = 64;
/// The whole body may take this many times what each [`STEP_BYTES`] of it may.
const PATIENCE: u32 = 10;
/// The longest time for a body that is taken part by part.
const LONGEST_BODY: Duration = Duration::from_secs(24 * 3600);
/// A body up to this size takes memory as it arrives; a larger one all of it when its first part has come, see [`bolide_core::MemoryBudget`]: a
/// length that is only claimed costs nobody anything.
/// So much of it must arrive at least in the time that a client has for a part of it.
const STEP_BYTES: usize = 64 * 1024;
/// Most time between looks at whether others wait for the memory of a body that does not arrive.
const LOOK: Duration = Duration::from_millis(250);
/// What a connection takes besides while a large body is read from it.
const BUFFER_BYTES: usize = 256 * 1024;

/// One permit for each body that is thrown away at a time. Who has not shown a key has permits apart: holders of keys keep theirs.
#[derive(Debug, Clone)]
pub struct Drains {
    known: Arc<Semaphore>,
    unknown: Arc<Semaphore>,
}

impl Drains {
    /// Nothing is being thrown away.
    pub fn new() -> Drains {
        Drains {
            known: Arc::new(Semaphore::new(DRAINS)),
            unknown: Arc::new(Semaphore::new(DRAINS)),
        }
    }
}

/// A body that is still on its way.
pub struct Unread<B = Incoming> {
    body: B,
    pulse: Arc<Pulse>,
    patience: Duration,
    drains: Drains,
    /// Over HTTP/2.
    stream: Option<Arc<Stream>>,
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Unread<B> {
    /// The body of a request on the connection with this pulse; `patience` is for each part of it.
    pub fn new(
        body: B,
        pulse: Arc<Pulse>,
        patience: Duration,
        drains: Drains,
        stream: Option<Arc<Stream>>,
    ) -> Unread<B> {
        Unread {
            body,
            pulse,
            patience,
            drains,
            stream,
        }
    }

    /// Reads on without keeping anything, beside the answer. An answer may be lost when its connection ends with bytes unread, which happens
    /// only when very many are refused at a time: a connection that is read from has a buffer.
    fn drain(self, sender: Refused) {
        // A stream of HTTP/2 ends without its connection.
        if self.stream.is_some() || self.body.is_end_stream() {
            return;
        }
        let Unread {
            mut body,
            pulse,
            patience,
            drains,
            ..
        } = self;
        let (permits, bytes) = match sender {
            Refused::Known => (drains.known, DRAINED_BYTES),
            Refused::Unknown => (drains.unknown, DRAINED_BYTES_OF_UNKNOWN),
        };
        let Ok(permit) = permits.try_acquire_owned() else {
            return;
        };
        tokio::spawn(async move {
            let clock = pulse.clock().monotonic();
            let deadline = clock.now() + patience;
            let _permit = permit;
            let mut drained = 0;
            while drained <= bytes {
                match next(&mut body, clock, deadline).await {
                    Ok(Some(part)) => drained += part.len(),
                    Ok(None) => return pulse.drained(),
                    Err(_) => return,
                }
            }
        });
    }
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> RequestBody for Unread<B> {
    fn declared_bytes(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    async fn read(mut self, limit: usize, memory: Counted<'_>) -> Result<Received, BodyError> {
        self.pulse.admit();
        if self.body.is_end_stream() {
            return Ok(Received::default());
        }
        let declared = self.declared_bytes().and_then(|bytes| usize::try_from(bytes).ok());
        // Who does not say how long it is may send as much as is allowed.
        let most = declared.map_or(limit, |bytes| bytes.min(limit));
        let is_large = declared.is_some() && most > STEP_BYTES;
        let (mut share, mut is_expected) = (None, false);
        self.await_client();
        let mut pace = Pace::begin(self.patience, self.clock());
        let mut collected = Collected::default();
        while let Some(part) = pace.next(&mut self.body, memory).await? {
            let bytes = collected.bytes() + part.len();
            if bytes > limit {
                self.drain(Refused::Known);
                return Err(BodyError::TooLarge { bytes, limit });
            }
            let taken = if is_expected {
                Ok(())
            } else if bytes <= STEP_BYTES && !is_large {
                let step = if collected.is_empty() { 1 } else { STEP_BYTES };
                memory.grow(&mut share, bytes.next_multiple_of(step)).await
            } else {
                is_expected = true;
                self.work();
                let turn = self.stream.as_ref().map(|stream| stream.try_wait());
                let may_wait = turn.as_ref().is_none_or(Option::is_some);
                let taken = memory.expect(&mut share, BUFFER_BYTES + most, may_wait).await;
                drop(turn);
                self.await_client();
                pace.wait_ended();
                taken
            };
            if let Err(error) = taken {
                self.drain(Refused::Known);
                return Err(error);
            }
            if pace.arrived(bytes)
                && let Some(stream) = &self.stream
            {
                stream.progress();
            }
            collected.add(part, if is_expected { most } else { 0 });
        }
        self.work();
        let bytes = collected.finish();
        if let Some(share) = &mut share {
            share.shrink_to(BUFFER_BYTES + bytes.len());
        }
        Ok(Received { bytes, share })
    }

    fn parts(self, memory: Counted<'_>) -> impl futures_util::Stream<Item = Result<Bytes, BodyError>> + Send {
        self.pulse.admit();
        let arriving = Arriving {
            pace: Pace::of_parts(self.patience, self.clock()),
            bytes: 0,
            taken_at: self.clock().now(),
            unread: (!self.body.is_end_stream()).then_some(self),
        };
        stream::try_unfold(arriving, move |mut arriving| async move {
            let part = arriving.next(memory).await?;
            Ok(part.map(|part| (part, arriving)))
        })
    }

    fn dismiss(self, sender: Refused) -> bool {
        let is_answered = match (sender, &self.stream) {
            (Refused::Unknown, Some(stream)) => stream.refuse(),
            _ => true,
        };
        self.drain(sender);
        is_answered
    }
}

/// A body that is taken part by part. What nobody took is thrown away.
struct Arriving<B: Body<Data = Bytes> + Send + Unpin + 'static> {
    /// `None` once it has ended.
    unread: Option<Unread<B>>,
    pace: Pace,
    bytes: usize,
    /// Since when whoever took the last part has been at work on it.
    taken_at: Instant,
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Arriving<B> {
    async fn next(&mut self, memory: Counted<'_>) -> Result<Option<Bytes>, BodyError> {
        let Some(unread) = &mut self.unread else {
            return Ok(None);
        };
        unread.await_client();
        self.pace.skip(unread.clock().since(self.taken_at));
        let part = self.pace.next(&mut unread.body, memory).await?;
        unread.work();
        self.taken_at = unread.clock().now();
        match &part {
            Some(part) => {
                self.bytes += part.len();
                if self.pace.arrived(self.bytes)
                    && let Some(stream) = &unread.stream
                {
                    stream.progress();
                }
            }
            None => self.unread = None,
        }
        Ok(part)
    }
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Drop for Arriving<B> {
    fn drop(&mut self) {
        if let Some(unread) = self.unread.take() {
            unread.drain(Refused::Known);
        }
    }
}

impl<B> Unread<B> {
    fn clock(&self) -> &Monotonic {
        self.pulse.clock().monotonic()
    }

    /// More of it is waited for.
    fn await_client(&self) {
        match &self.stream {
            Some(stream) => stream.await_client(),
            None => self.pulse.wait_for_body(),
        }
    }

    /// The server is at work for it.
    fn work(&self) {
        match &self.stream {
            Some(stream) => stream.work(),
            None => self.pulse.begin(),
        }
    }
}

/// How fast a body must arrive.
///
/// Each [`STEP_BYTES`] have their time, not each part: whoever sends a byte now and then would hold what has come for as long as the whole body
/// may take. While others wait for memory, the time is shorter.
struct Pace {
    clock: Monotonic,
    patience: Duration,
    end: Instant,
    next_step: usize,
    step_began: Instant,
}

impl Pace {
    fn begin(patience: Duration, clock: &Monotonic) -> Pace {
        let now = clock.now();
        Pace {
            clock: clock.clone(),
            patience,
            end: now + patience * PATIENCE,
            next_step: STEP_BYTES,
            step_began: now,
        }
    }

    /// Of a body that may be as long as it likes.
    fn of_parts(patience: Duration, clock: &Monotonic) -> Pace {
        let pace = Pace::begin(patience, clock);
        Pace {
            end: pace.step_began + LONGEST_BODY,
            ..pace
        }
    }

    /// So many bytes have arrived. Whether they end a step.
    fn arrived(&mut self, bytes: usize) -> bool {
        let is_step = bytes >= self.next_step;
        if is_step {
            self.next_step = bytes + STEP_BYTES;
            self.step_began = self.clock.now();
        }
        is_step
    }

    /// The body was not read for so long.
    fn skip(&mut self, time: Duration) {
        self.step_began += time;
    }

    /// The body was not read meanwhile.
    fn wait_ended(&mut self) {
        self.step_began = self.clock.now();
    }

    /// The next part of a body.
    async fn next<B: Body<Data = Bytes> + Unpin>(
        &self,
        body: &mut B,
        memory: Counted<'_>,
    ) -> Result<Option<Bytes>, BodyError> {
        loop {
            let deadline = self.end.min(self.step_began + self.patience);
            let look = deadline.min(self.clock.now() + LOOK);
            match next(body, &self.clock, look).await {
                Err(BodyError::TooSlow) if self.clock.now() < deadline && !self.is_in_the_way(memory) => {}
                done => return done,
            }
        }
    }

    /// Whether it is too slow for a time in which others wait for memory.
    fn is_in_the_way(&self, memory: Counted<'_>) -> bool {
        memory.is_short() && self.clock.since(self.step_began) >= self.patience.min(SHORT_PATIENCE)
    }
}

async fn next<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    clock: &Monotonic,
    deadline: Instant,
) -> Result<Option<Bytes>, BodyError> {
    loop {
        let frame = clock.timeout_at(deadline, body.frame()).await;
        let frame = frame.ok_or(BodyError::TooSlow)?;
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(BodyError::Broken),
            // Trailers mean nothing here.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Parts of a body. Most bodies come in one part, which is not copied.
#[derive(Default)]
struct Collected {
    first: Bytes,
    all: BytesMut,
}

impl Collected {
    fn bytes(&self) -> usize {
        self.first.len().max(self.all.len())
    }

    fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Adds a part; `most` is how long all of them can get, for which there is memory.
    fn add(&mut self, part: Bytes, most: usize) {
        if self.is_empty() {
            self.first = part;
            return;
        }
        if self.all.is_empty() {
            self.all.reserve(most);
            self.all.extend_from_slice(&self.first);
            self.first = Bytes::new();
        }
        self.all.extend_from_slice(&part);
    }

    fn finish(self) -> Bytes {
        if self.all.is_empty() {
            self.first
        } else {
            self.all.freeze()
        }
    }
}

#[cfg(test)]
mod tests;
