//! The payload of a frame, as the body of its request.

use std::sync::Arc;

use bolide_cosmos::{BodyError, Counted, Received, Refused, RequestBody};
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use tokio::sync::{mpsc, oneshot};

use crate::streams::Stream;
use crate::timeouts::Activity;

/// A payload up to this size reserves memory as it arrives, a larger one when its first part has come.
const STEP_BYTES: usize = 64 * 1024;
/// A part of a payload.
pub type Part = Result<Bytes, BodyError>;

/// The payload of a frame, of a request that may not be admitted.
pub struct Payload {
    pub content: Content,
    pub activity: Arc<Activity>,
    pub stream: Arc<Stream>,
}

/// Where a payload is.
pub enum Content {
    /// All of it was read.
    Here(Bytes),
    /// It has not been read yet. Dropped: nobody wants it.
    Coming {
        bytes: usize,
        /// Asks the connection for its parts.
        ask: oneshot::Sender<mpsc::Sender<Part>>,
    },
}

impl Content {
    fn bytes(&self) -> usize {
        match self {
            Content::Here(all) => all.len(),
            Content::Coming { bytes, .. } => *bytes,
        }
    }
}

impl RequestBody for Payload {
    fn declared_bytes(&self) -> Option<u64> {
        u64::try_from(self.content.bytes()).ok()
    }

    async fn read(self, limit: usize, memory: Counted<'_>) -> Result<Received, BodyError> {
        self.activity.admit();
        let declared = self.content.bytes();
        if declared == 0 {
            return Ok(Received::default());
        }
        if declared > limit {
            return Err(BodyError::TooLarge { bytes: declared, limit });
        }
        let ask = match self.content {
            Content::Coming { ask, .. } => ask,
            Content::Here(bytes) => {
                let mut share = None;
                memory.grow(&mut share, declared).await?;
                return Ok(Received { bytes, share });
            }
        };
        let (give, mut given) = mpsc::channel(1);
        ask.send(give).map_err(|_| BodyError::Broken)?;
        let mut share = None;
        let mut all = BytesMut::new();
        while all.len() < declared {
            let part = given.recv().await.ok_or(BodyError::Broken)??;
            if all.is_empty() {
                match declared > STEP_BYTES {
                    true => memory.expect(&mut share, declared, true).await?,
                    false => memory.grow(&mut share, declared).await?,
                }
                all.reserve(declared);
            }
            all.extend_from_slice(&part);
        }
        Ok(Received {
            bytes: all.freeze(),
            share,
        })
    }

    fn parts(self, _: Counted<'_>) -> impl futures_util::Stream<Item = Result<Bytes, BodyError>> + Send {
        // Nothing that a frame can ask for is read part by part.
        stream::iter([Err(BodyError::Broken)])
    }

    fn dismiss(self, sender: Refused) -> bool {
        if sender == Refused::Known {
            // How much is read and dropped depends on it.
            self.activity.admit();
        }
        // A connection that has shown a key may have other requests under way.
        let is_answered = self.activity.is_admitted() || self.stream.refuse();
        if !is_answered {
            // Too many wait to be refused, on all connections. A single request cannot be reset.
            self.stream.end_connection();
        }
        is_answered
    }
}
