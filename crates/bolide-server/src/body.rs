//! Request bodies from the network, within limits of size, time and memory.

use std::sync::Arc;
use std::time::Duration;

use bolide_cosmos::{BodyError, Counted, Received, Refused, RequestBody};
use bolide_model::limits;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::patience::Pulse;
use crate::streams::Stream;

/// Bytes that are read and thrown away behind a refusal, so that the holder of a key gets to read it and goes on with the connection.
const DRAINED_BYTES: usize = 16 * 1024 * 1024;
/// The same for whoever has not shown a key: as much as an honest request could have.
const DRAINED_BYTES_OF_UNKNOWN: usize = limits::ITEM_BYTES + 64 * 1024;
/// Bodies of one kind of sender that are thrown away at a time.
const DRAINS: usize = 64;
/// The whole body may take this many times what each [`STEP_BYTES`] of it may.
const PATIENCE: u32 = 10;
/// Memory for a body is taken in steps of so many bytes, as it arrives: a length that is only claimed costs nobody anything.
const STEP_BYTES: usize = 64 * 1024;
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
pub struct Unread {
    body: Incoming,
    pulse: Arc<Pulse>,
    patience: Duration,
    drains: Drains,
    /// Over HTTP/2.
    stream: Option<Arc<Stream>>,
}

impl Unread {
    /// The body of a request on the connection with this pulse; `patience` is for each part of it.
    pub fn new(
        body: Incoming,
        pulse: Arc<Pulse>,
        patience: Duration,
        drains: Drains,
        stream: Option<Arc<Stream>>,
    ) -> Unread {
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
            let deadline = Instant::now() + patience;
            let _permit = permit;
            let mut drained = 0;
            while drained <= bytes {
                match next(&mut body, deadline).await {
                    Ok(Some(part)) => drained += part.len(),
                    Ok(None) => return pulse.drained(),
                    Err(_) => return,
                }
            }
        });
    }
}

impl RequestBody for Unread {
    fn declared_bytes(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    async fn read(mut self, limit: usize, memory: Counted<'_>) -> Result<Received, BodyError> {
        self.pulse.admit();
        if self.body.is_end_stream() {
            return Ok(Received::default());
        }
        match &self.stream {
            Some(stream) => stream.await_client(),
            None => self.pulse.wait_for_body(),
        }
        let end = Instant::now() + self.patience * PATIENCE;
        let mut collected = Collected::default();
        let mut share = None;
        // Not for each part: whoever sends a byte now and then would hold what has come for as long as the whole body may take.
        let (mut next_step, mut step_end) = (STEP_BYTES, Instant::now() + self.patience);
        while let Some(part) = next(&mut self.body, end.min(step_end)).await? {
            let bytes = collected.bytes() + part.len();
            if bytes >= next_step {
                (next_step, step_end) = (bytes + STEP_BYTES, Instant::now() + self.patience);
            }
            if bytes > limit {
                self.drain(Refused::Known);
                return Err(BodyError::TooLarge { bytes, limit });
            }
            let step = if collected.is_empty() { 1 } else { STEP_BYTES };
            let buffered = if bytes > STEP_BYTES { BUFFER_BYTES } else { 0 };
            if let Err(error) = memory.grow(&mut share, buffered + bytes.next_multiple_of(step)).await {
                self.drain(Refused::Known);
                return Err(error);
            }
            collected.add(part);
        }
        match &self.stream {
            Some(stream) => stream.work(),
            None => self.pulse.begin(),
        }
        Ok(Received {
            bytes: collected.finish(),
            share,
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

async fn next(body: &mut Incoming, deadline: Instant) -> Result<Option<Bytes>, BodyError> {
    loop {
        let frame = timeout_at(deadline, body.frame())
            .await
            .map_err(|_| BodyError::TooSlow)?;
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

    fn add(&mut self, part: Bytes) {
        if self.is_empty() {
            self.first = part;
            return;
        }
        if self.all.is_empty() {
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
mod tests {
    use super::*;

    #[test]
    fn parts_come_together_in_their_order() {
        let mut collected = Collected::default();
        for part in ["abc", "", "def", "ghi"] {
            collected.add(Bytes::from_static(part.as_bytes()));
        }
        assert_eq!(collected.bytes(), 9);
        assert_eq!(collected.finish(), "abcdefghi");
    }

    #[test]
    fn a_single_part_is_not_copied() {
        let part = Bytes::from_static(b"abc");
        let mut collected = Collected::default();
        collected.add(part.clone());
        assert_eq!(collected.finish().as_ptr(), part.as_ptr());
    }
}
