//! The receiver's end of a connection from another server: carries out the requests that arrive, side by side.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::Monotonic;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::{Request, Response, Version};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::frame::{self, Malformed};
use super::{FromPeer, UNDER_WAY, connection};
use crate::wire::Payload;

/// How long a connection is kept on which nothing arrives, and how long its sender may take to take responses. Longer than its sender keeps it.
const IDLE: Duration = Duration::from_secs(6 * connection::IDLE.as_secs());

/// Carries out the requests that arrive on a connection from another server, until it ends. When `stop` is ready its sender is told to send no more.
pub async fn receive<S, H, F>(stream: S, clock: Monotonic, stop: impl Future<Output = ()> + Send, handle: H)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
    H: Fn(Request<Bytes>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Payload>> + Send + 'static,
{
    let (reading, writing) = tokio::io::split(stream);
    let receiver = Receiver {
        responses: Arc::default(),
        permits: Arc::new(Semaphore::new(UNDER_WAY)),
        clock,
        handle: Arc::new(handle),
    };
    let ended = {
        let mut writes = pin!(receiver.write(writing));
        let reads = async {
            receiver.read(reading, stop).await?;
            // All have been answered, and the answers written.
            let _ = receiver.permits.acquire_many(UNDER_WAY as u32).await;
            Ok(())
        };
        tokio::select! {
            ended = reads => ended,
            ended = &mut writes => ended,
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection from another server has ended");
    }
}

struct Receiver<H> {
    responses: Arc<Responses>,
    /// One for each request until its response is written.
    permits: Arc<Semaphore>,
    clock: Monotonic,
    handle: Arc<H>,
}

/// Responses that are to be written.
#[derive(Default)]
struct Responses {
    out: Mutex<(BytesMut, Vec<OwnedSemaphorePermit>)>,
    changed: Notify,
}

impl<H, F> Receiver<H>
where
    H: Fn(Request<Bytes>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Payload>> + Send + 'static,
{
    async fn read<S: AsyncRead>(
        &self,
        mut stream: ReadHalf<S>,
        stop: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let mut stop = pin!(stop.fuse());
        let mut is_stopping = false;
        let mut arrived = BytesMut::with_capacity(4096);
        let mut last = self.clock.now();
        // One timer for all reads.
        let mut tick = pin!(self.clock.sleep(IDLE));
        loop {
            while let Some((number, rest)) = frame::take(&mut arrived).map_err(broken)? {
                let request = frame::request(rest).map_err(broken)?;
                let permit = self.permits.clone().acquire_owned().await;
                let permit = permit.map_err(io::Error::other)?;
                self.carry_out(number, request, permit);
            }
            tokio::select! {
                biased;
                () = &mut stop, if !is_stopping => {
                    is_stopping = true;
                    frame::put_number(&mut self.responses.out.lock().0, frame::STOPS);
                    self.responses.changed.notify_one();
                }
                read = stream.read_buf(&mut arrived) => match read? {
                    0 => return Ok(()),
                    _ => last = self.clock.now(),
                },
                () = &mut tick => {
                    let is_used = self.permits.available_permits() < UNDER_WAY;
                    if !is_used && self.clock.since(last) >= IDLE {
                        return Ok(());
                    }
                    tick.set(self.clock.sleep(IDLE));
                }
            }
        }
    }

    fn carry_out(&self, number: u64, mut request: Request<Bytes>, permit: OwnedSemaphorePermit) {
        // Many share a connection, as over HTTP/2: their memory is counted.
        *request.version_mut() = Version::HTTP_2;
        request.extensions_mut().insert(FromPeer);
        let handled = (self.handle)(request);
        let responses = self.responses.clone();
        tokio::spawn(async move { responses.add(number, handled.await, permit) });
    }

    async fn write<S: AsyncWrite>(&self, mut stream: WriteHalf<S>) -> io::Result<()> {
        let mut frames = BytesMut::new();
        loop {
            self.responses.changed.notified().await;
            // Other responses that are ready by now go with the same write.
            tokio::task::yield_now().await;
            let answered = {
                let mut out = self.responses.out.lock();
                std::mem::swap(&mut frames, &mut out.0);
                std::mem::take(&mut out.1)
            };
            let writing = async {
                stream.write_all(&frames).await?;
                stream.flush().await
            };
            let written = self.clock.timeout_at(self.clock.now() + IDLE, writing).await;
            written.ok_or_else(|| io::Error::from(io::ErrorKind::TimedOut))??;
            super::reuse(&mut frames);
            drop(answered);
        }
    }
}

impl Responses {
    fn add(&self, number: u64, response: Response<Payload>, permit: OwnedSemaphorePermit) {
        let mut out = self.out.lock();
        if put_response(&mut out.0, number, response).is_err() {
            frame::put_number(&mut out.0, number);
        }
        out.1.push(permit);
        drop(out);
        self.changed.notify_one();
    }
}

/// Only reads have a response that is made while it is sent, and they are not forwarded.
fn put_response(to: &mut BytesMut, number: u64, response: Response<Payload>) -> Result<(), Malformed> {
    let (head, payload) = response.into_parts();
    match payload {
        Payload::Whole(body) => frame::put_response(to, number, &Response::from_parts(head, body)),
        Payload::Pages(_) => Err(Malformed),
    }
}

fn broken(_: Malformed) -> io::Error {
    io::Error::other("it sends what is no request")
}
