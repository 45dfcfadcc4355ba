use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bolide_core::MemoryBudget;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::{self, BoxStream};
use http::Version;
use hyper::body::{Frame, SizeHint};
use tokio::time::sleep;

use super::*;
use crate::clock::ServerClock;
use crate::streams::{OpenStreams, Streams};

/// A connection on tokio's clock, which is paused.
fn activity() -> Arc<Activity> {
    Activity::new(&ServerClock::new(Monotonic::system()))
}

const MIB: usize = 1024 * 1024;
const REQUEST: Duration = Duration::from_secs(20);

/// A body that arrives in parts of 16 KiB, one per millisecond.
struct Sent {
    parts: BoxStream<'static, Bytes>,
    declared: Option<u64>,
}

impl Sent {
    fn new(bytes: usize) -> Sent {
        let lengths = (0..bytes)
            .step_by(16 * 1024)
            .map(move |from| (bytes - from).min(16 * 1024));
        let parts = stream::iter(lengths).then(|length| async move {
            sleep(Duration::from_millis(1)).await;
            Bytes::from(vec![7; length])
        });
        Sent {
            parts: parts.boxed(),
            declared: Some(bytes as u64),
        }
    }

    /// A body whose last byte does not arrive.
    fn without_end(bytes: usize) -> Sent {
        let sent = Sent::new(bytes - 1);
        Sent {
            parts: sent.parts.chain(stream::pending()).boxed(),
            declared: Some(bytes as u64),
        }
    }

    fn of_unknown_length(bytes: usize) -> Sent {
        Sent {
            declared: None,
            ..Sent::new(bytes)
        }
    }

    async fn read(self, memory: &MemoryBudget) -> Result<Received, BodyError> {
        self.read_on(None, memory).await
    }

    async fn read_on(self, stream: Option<Arc<Stream>>, memory: &MemoryBudget) -> Result<Received, BodyError> {
        let counted = Counted::new(memory, Version::HTTP_11);
        let body = Unread::new(self, activity(), REQUEST, Arc::new(Drains::new()), stream);
        body.read(limits::ITEM_BYTES, counted).await
    }

    /// Reads it, and then needs three times its memory.
    async fn work(self, memory: &MemoryBudget) -> Result<usize, BodyError> {
        let mut received = self.read(memory).await?;
        let bytes = received.bytes.len();
        let counted = Counted::new(memory, Version::HTTP_11);
        counted.grow_to_final(&mut received.share, 3 * bytes).await?;
        sleep(Duration::from_millis(1)).await;
        Ok(bytes)
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.parts.poll_next_unpin(cx);
        part.map(|part| part.map(|part| Ok(Frame::data(part))))
    }

    fn size_hint(&self) -> SizeHint {
        self.declared.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[tokio::test(start_paused = true)]
async fn large_bodies_do_not_wait_for_each_other() {
    // Three at a time, and the memory to process one.
    let memory = MemoryBudget::new(10 * MIB);
    let bodies = (0..30).map(|_| Sent::new(MIB).work(&memory));
    for read in join_all(bodies).await {
        assert_eq!(read, Ok(MIB));
    }
    assert_eq!(memory.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn large_bodies_of_unknown_length_do_not_wait_for_each_other() {
    // One at a time: there is memory for the largest allowed. The first parts of a few others may wait.
    let memory = MemoryBudget::new(6 * MIB);
    let bodies = (0..5).map(|_| Sent::of_unknown_length(MIB).work(&memory));
    for read in join_all(bodies).await {
        assert_eq!(read, Ok(MIB));
    }
    assert_eq!(memory.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_loses_its_memory_to_waiting_requests() {
    let memory = MemoryBudget::new(4 * MIB);
    let began = Monotonic::system().now();
    let endless = async {
        let read = Sent::without_end(MIB).read(&memory).await;
        (read.err(), Monotonic::system().since(began))
    };
    let waiting = async {
        sleep(Duration::from_millis(500)).await;
        Sent::new(MIB).work(&memory).await
    };
    let ((error, lasted), read) = tokio::join!(endless, waiting);
    assert_eq!((error, read), (Some(BodyError::TooSlow), Ok(MIB)));
    assert!(lasted < SHORT_TIMEOUT + 2 * CHECK_INTERVAL, "{lasted:?}");

    // While nobody waits, it has the usual timeout.
    let began = Monotonic::system().now();
    let read = Sent::without_end(MIB).read(&memory).await;
    assert_eq!(read.err(), Some(BodyError::TooSlow));
    assert!(Monotonic::system().since(began) >= REQUEST);
}

#[tokio::test(start_paused = true)]
async fn one_body_of_an_http2_connection_waits_for_memory() {
    let memory = MemoryBudget::new(4 * MIB);
    let all = memory.try_take(memory.longest_share()).expect("all but what is kept");
    let streams = Streams::new(activity(), OpenStreams::new(100));
    let began = Monotonic::system().now();
    let read = async || {
        let read = Sent::new(MIB).read_on(streams.open(), &memory).await;
        (
            read.map(|received| received.bytes.len()),
            Monotonic::system().since(began),
        )
    };
    let give_back = async {
        sleep(Duration::from_secs(1)).await;
        drop(all);
    };
    let (one, other, ()) = tokio::join!(read(), read(), give_back);
    let (refused, waited) = if one.0.is_err() { (one, other) } else { (other, one) };
    assert!(matches!(refused.0, Err(BodyError::NoMemory(_))), "{refused:?}");
    assert!(refused.1 < Duration::from_secs(1), "{refused:?}");
    assert_eq!(waited.0, Ok(MIB));
}

#[test]
fn parts_come_together_in_their_order() {
    let mut collected = Collected::default();
    for part in ["abc", "", "def", "ghi"] {
        collected.add(Bytes::from_static(part.as_bytes()), 0);
    }
    assert_eq!(collected.bytes(), 9);
    assert_eq!(collected.finish(), "abcdefghi");
}

#[test]
fn a_single_part_is_not_copied() {
    let part = Bytes::from_static(b"abc");
    let mut collected = Collected::default();
    collected.add(part.clone(), 0);
    assert_eq!(collected.finish().as_ptr(), part.as_ptr());
}
