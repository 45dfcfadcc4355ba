//! Clients that leave, or that stop taking what they get.

use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::READ_BYTES;

/// Sends bytes until a deadline. `None`: the client is gone, is too slow, or has taken nothing for the time of `stall`: a reply that nobody takes must
/// not hold its memory for as long as a slow client may need for it.
pub async fn write_all<S: AsyncWrite + Unpin>(
    stream: &mut S,
    mut bytes: &[u8],
    monotonic: &Monotonic,
    deadline: Instant,
    stall: Duration,
) -> Option<()> {
    let until = || deadline.min(monotonic.now() + stall);
    while !bytes.is_empty() {
        let written = monotonic.timeout_at(until(), stream.write(bytes)).await?.ok()?;
        bytes = bytes.get(written..).filter(|_| written > 0)?;
    }
    monotonic.timeout_at(until(), stream.flush()).await?.ok()
}

/// Resolves when the client has closed the connection. What it sends meanwhile is kept.
pub async fn gone<S: AsyncRead + Unpin>(stream: &mut S, buffer: &mut BytesMut) {
    if buffer.is_empty() {
        buffer.reserve(READ_BYTES);
        if let Ok(0) | Err(_) = stream.read_buf(buffer).await {
            return;
        }
    }
    std::future::pending::<()>().await;
}
