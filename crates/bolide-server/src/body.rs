//! Reading request bodies within limits of size and time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant, timeout_at};

/// Bytes over the limit that are read and thrown away, so that the client gets to read the answer.
const DRAINED_BYTES: usize = 16 * 1024 * 1024;
/// The whole body may take this many times what each part of it may.
const PATIENCE: u32 = 10;

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    /// It did not arrive in time.
    TooSlow,
    /// The connection broke, or its framing did.
    Broken,
}

/// Reads a body. One longer than `limit` comes back cut to one byte more; the rest is not kept.
///
/// # Errors
/// See [`BodyError`].
pub async fn read(mut body: Incoming, limit: usize, patience: Duration) -> Result<Bytes, BodyError> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let end = Instant::now() + patience * PATIENCE;
    let mut collected = Collected::default();
    while let Some(frame) = next(&mut body, end.min(Instant::now() + patience)).await? {
        collected.add(frame, limit + 1);
        if collected.seen > limit.saturating_add(DRAINED_BYTES) {
            break;
        }
    }
    Ok(collected.finish())
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
    seen: usize,
}

impl Collected {
    fn add(&mut self, part: Bytes, limit: usize) {
        let kept = limit.saturating_sub(self.seen).min(part.len());
        if self.seen == 0 {
            self.first = part.slice(..kept);
        } else if kept > 0 {
            if self.all.is_empty() {
                self.all.extend_from_slice(&self.first);
            }
            self.all.extend_from_slice(&part[..kept]);
        }
        self.seen += part.len();
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
    fn parts_come_together_up_to_the_limit() {
        let mut collected = Collected::default();
        for part in ["abc", "def", "ghi"] {
            collected.add(Bytes::from_static(part.as_bytes()), 5);
        }
        assert_eq!(collected.seen, 9);
        assert_eq!(collected.finish(), "abcde");
    }

    #[test]
    fn a_single_part_is_not_copied() {
        let part = Bytes::from_static(b"abc");
        let mut collected = Collected::default();
        collected.add(part.clone(), 5);
        assert_eq!(collected.finish().as_ptr(), part.as_ptr());
    }
}
