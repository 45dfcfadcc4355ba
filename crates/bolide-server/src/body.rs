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
use crate::timeouts::{Activity, SHORT_TIMEOUT};

/// Bytes that are read and dropped after a refusal, so that a client with a key can read the refusal and keep its connection: .NET reads no response
/// before it has sent everything, and if the connection ends before that, it retries for two minutes. The time is limited too.
pub const DRAINED_BYTES: usize = 128 * 1024 * 1024;
/// The same for a client that has not shown a key: the size of the largest valid request.
pub const DRAINED_BYTES_OF_UNKNOWN: usize = limits::ITEM_BYTES + 64 * 1024;
/// Number of bodies per kind of sender that are dropped at the same time.
const DRAINS: usize = 64;
/// The timeout of a whole body, as a multiple of the timeout of each [`STEP_BYTES`].
const TIMEOUT_FACTOR: u32 = 10;
/// The longest time for a body that is read part by part.
const MAX_BODY_TIME: Duration = Duration::from_secs(24 * 3600);
/// A body up to this size reserves memory as it arrives. A larger one reserves all of it when its first part has come, see
/// [`bolide_core::MemoryBudget`]: a declared length alone reserves nothing.
/// At least this many bytes must arrive within the timeout of a part.
const STEP_BYTES: usize = 64 * 1024;
/// The longest time between checks whether others wait for the memory of a body that does not arrive.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Additional memory of a connection while a large body is read from it.
const BUFFER_BYTES: usize = 256 * 1024;

/// One permit for each body that is dropped at the same time. Clients without a key have separate permits, so that they cannot use up those of
/// clients with a key.
#[derive(Debug, Clone)]
pub struct Drains {
    known: Arc<Semaphore>,
    unknown: Arc<Semaphore>,
}

impl Drains {
    /// All permits are free.
    pub fn new() -> Drains {
        Drains {
            known: Arc::new(Semaphore::new(DRAINS)),
            unknown: Arc::new(Semaphore::new(DRAINS)),
        }
    }
}

/// A body that has not been read yet.
pub struct Unread<B = Incoming> {
    body: B,
    activity: Arc<Activity>,
    timeout: Duration,
    drains: Arc<Drains>,
    /// Set for HTTP/2.
    stream: Option<Arc<Stream>>,
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Unread<B> {
    /// The body of a request on the connection of this `activity`; the timeout is for each part of it.
    pub fn new(
        body: B,
        activity: Arc<Activity>,
        timeout: Duration,
        drains: Arc<Drains>,
        stream: Option<Arc<Stream>>,
    ) -> Unread<B> {
        Unread {
            body,
            activity,
            timeout,
            drains,
            stream,
        }
    }

    /// Continues to read without keeping anything, while the response is sent. A response may be lost if its connection ends with unread bytes. This
    /// happens only if very many are refused at the same time: a connection that is read from has a buffer.
    fn drain(self, sender: Refused) {
        // A stream of HTTP/2 ends without ending its connection.
        if self.stream.is_some() || self.body.is_end_stream() {
            return;
        }
        let Unread {
            mut body,
            activity,
            timeout,
            drains,
            ..
        } = self;
        let (permits, bytes) = match sender {
            Refused::Known => (&drains.known, DRAINED_BYTES),
            Refused::Unknown => (&drains.unknown, DRAINED_BYTES_OF_UNKNOWN),
        };
        let Ok(permit) = permits.clone().try_acquire_owned() else {
            return;
        };
        tokio::spawn(async move {
            let clock = activity.clock().monotonic();
            let deadline = clock.now() + timeout;
            let _permit = permit;
            let mut drained = 0;
            while drained <= bytes {
                match next(&mut body, clock, deadline).await {
                    Ok(Some(part)) => drained += part.len(),
                    Ok(None) => return activity.drained(),
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
        self.activity.admit();
        if self.body.is_end_stream() {
            return Ok(Received::default());
        }
        let declared = self.declared_bytes().and_then(|bytes| usize::try_from(bytes).ok());
        // Without a declared length the body may be as long as the limit.
        let max_bytes = declared.map_or(limit, |bytes| bytes.min(limit));
        let is_large = declared.is_some() && max_bytes > STEP_BYTES;
        let (mut share, mut is_expected) = (None, false);
        self.await_client();
        let mut timeouts = BodyTimeouts::begin(self.timeout, self.clock());
        let mut collected = Collected::default();
        while let Some(part) = timeouts.next(&mut self.body, || memory.is_short()).await? {
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
                let permit = self.stream.as_ref().map(|stream| stream.try_wait());
                let may_wait = permit.as_ref().is_none_or(Option::is_some);
                let taken = memory.expect(&mut share, BUFFER_BYTES + max_bytes, may_wait).await;
                drop(permit);
                self.await_client();
                timeouts.wait_ended();
                taken
            };
            if let Err(error) = taken {
                self.drain(Refused::Known);
                return Err(error);
            }
            if timeouts.arrived(bytes)
                && let Some(stream) = &self.stream
            {
                stream.progress();
            }
            collected.add(part, if is_expected { max_bytes } else { 0 });
        }
        self.work();
        let bytes = collected.finish();
        if let Some(share) = &mut share {
            share.shrink_to(BUFFER_BYTES + bytes.len());
        }
        Ok(Received { bytes, share })
    }

    fn parts(self, memory: Counted<'_>) -> impl futures_util::Stream<Item = Result<Bytes, BodyError>> + Send {
        self.activity.admit();
        let arriving = Arriving {
            timeouts: BodyTimeouts::of_parts(self.timeout, self.clock()),
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

/// A body that is read part by part. Parts that nobody takes are dropped.
struct Arriving<B: Body<Data = Bytes> + Send + Unpin + 'static> {
    /// `None` after the end of the body.
    unread: Option<Unread<B>>,
    timeouts: BodyTimeouts,
    bytes: usize,
    /// When the caller took the last part and began to process it.
    taken_at: Instant,
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Arriving<B> {
    async fn next(&mut self, memory: Counted<'_>) -> Result<Option<Bytes>, BodyError> {
        let Some(unread) = &mut self.unread else {
            return Ok(None);
        };
        unread.await_client();
        self.timeouts.skip(unread.clock().since(self.taken_at));
        let part = self.timeouts.next(&mut unread.body, || memory.is_short()).await?;
        unread.work();
        self.taken_at = unread.clock().now();
        match &part {
            Some(part) => {
                self.bytes += part.len();
                if self.timeouts.arrived(self.bytes)
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
        self.activity.clock().monotonic()
    }

    /// Marks that the client must send more.
    fn await_client(&self) {
        match &self.stream {
            Some(stream) => stream.await_client(),
            None => self.activity.wait_for_body(),
        }
    }

    /// Marks that the server is processing.
    fn work(&self) {
        match &self.stream {
            Some(stream) => stream.work(),
            None => self.activity.begin(),
        }
    }
}

/// The timeouts of a body.
///
/// The timeout applies to each [`STEP_BYTES`], not to each part: otherwise a client that sends a byte now and then could occupy memory until the
/// timeout of the whole body. While others wait for memory, timeouts are shorter.
pub struct BodyTimeouts {
    clock: Monotonic,
    timeout: Duration,
    end: Instant,
    next_step: usize,
    step_began: Instant,
}

impl BodyTimeouts {
    /// Those of a body whose parts have this timeout, from now on.
    pub fn begin(timeout: Duration, clock: &Monotonic) -> BodyTimeouts {
        let now = clock.now();
        BodyTimeouts {
            clock: clock.clone(),
            timeout,
            end: now + timeout * TIMEOUT_FACTOR,
            next_step: STEP_BYTES,
            step_began: now,
        }
    }

    /// Timeouts for a body of any length.
    fn of_parts(timeout: Duration, clock: &Monotonic) -> BodyTimeouts {
        let timeouts = BodyTimeouts::begin(timeout, clock);
        BodyTimeouts {
            end: timeouts.step_began + MAX_BODY_TIME,
            ..timeouts
        }
    }

    /// Notes how many bytes have arrived in all. Returns whether they complete a step.
    pub fn arrived(&mut self, bytes: usize) -> bool {
        let is_step = bytes >= self.next_step;
        if is_step {
            self.next_step = bytes + STEP_BYTES;
            self.step_began = self.clock.now();
        }
        is_step
    }

    /// Leaves out a time in which the body was not read.
    fn skip(&mut self, time: Duration) {
        self.step_began += time;
    }

    /// The body was not read meanwhile.
    pub fn wait_ended(&mut self) {
        self.step_began = self.clock.now();
    }

    /// The next part of a body; `is_short`: whether others wait for memory.
    pub async fn next<B: Body<Data = Bytes> + Unpin>(
        &self,
        body: &mut B,
        is_short: impl Fn() -> bool,
    ) -> Result<Option<Bytes>, BodyError> {
        loop {
            let deadline = self.end.min(self.step_began + self.timeout);
            let look = deadline.min(self.clock.now() + CHECK_INTERVAL);
            match next(body, &self.clock, look).await {
                Err(BodyError::TooSlow) if self.clock.now() < deadline && !(is_short() && self.is_too_slow()) => {}
                done => return done,
            }
        }
    }

    /// Whether it is too slow for a time in which others wait for memory.
    fn is_too_slow(&self) -> bool {
        self.clock.since(self.step_began) >= self.timeout.min(SHORT_TIMEOUT)
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
            // Trailers are ignored.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Parts of a body. Most bodies arrive in one part, which is not copied.
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

    /// Adds a part; `max_bytes` is the maximum total, for which memory is reserved.
    fn add(&mut self, part: Bytes, max_bytes: usize) {
        if self.is_empty() {
            self.first = part;
            return;
        }
        if self.all.is_empty() {
            self.all.reserve(max_bytes);
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
