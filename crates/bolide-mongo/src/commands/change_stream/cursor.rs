//! The cursor of a change stream.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_core::{ChangeStream, RequestContext, StreamContent, StreamEvent, StreamScope, Task};
use bolide_mql::aggregation::Pipeline;
use bolide_mql::{Code, Context, Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawDocument, RawDocumentBuf};
use futures_util::future::BoxFuture;

use super::super::data::pipeline::{Input, OpenPipeline};
use super::super::data::tasks;
use super::event::{At, Events};
use super::options::Options;
use super::token::{Kind, Token};
use crate::codes;
use crate::cursors::{Batch, BatchRequest, CursorSource};
use crate::limits;

use crate::state::MongoState;

/// How long `getMore` waits without `maxTimeMS`.
const WAIT: Duration = Duration::from_secs(1);
/// Maximum number of events that are read at once.
const EVENTS: usize = 1_000;

/// What a cursor is made of.
pub struct Parts {
    pub stream: ChangeStream,
    pub scope: StreamScope,
    pub options: Options,
    pub pipeline: Arc<Pipeline>,
    /// Whether there are stages after `$changeStream`.
    pub has_stages: bool,
    pub language: Context,
    /// The time of the event after which the stream is invalid, if it was the last one before.
    pub ends_at_once: Option<At>,
}

/// See the module.
pub struct ChangeStreamCursor {
    state: Arc<MongoState>,
    parts: Parts,
    has_begun: bool,
}

/// Events that were read, before the other stages.
struct Read {
    events: Vec<RawDocumentBuf>,
    /// The tokens of the events, and the one after all of them.
    token: Token,
    /// Whether there is more to read now.
    has_more: bool,
    /// Whether the stream ends with them.
    is_last: bool,
}

impl ChangeStreamCursor {
    pub fn new(state: Arc<MongoState>, parts: Parts) -> ChangeStreamCursor {
        ChangeStreamCursor {
            state,
            parts,
            has_begun: false,
        }
    }

    async fn batch(&mut self, request: &BatchRequest) -> Result<Batch> {
        // The first batch waits for nothing.
        let wait = match std::mem::replace(&mut self.has_begun, true) {
            true => request.max_wait.unwrap_or(WAIT).min(limits::MAX_AWAIT),
            false => Duration::ZERO,
        };
        let until = self.state.monotonic().now() + wait;
        loop {
            // Before reading, so that no change is missed in between.
            let changed = self.parts.stream.changed();
            let batch = self.read_some(request).await?;
            if !batch.documents.is_empty() || batch.is_last || self.is_over(until) {
                return Ok(batch);
            }
            self.wait(changed, until).await?;
        }
    }

    /// Waits until something changes, a document ends, or the time is over.
    async fn wait(&self, changed: impl Future<Output = ()>, until: Instant) -> Result<()> {
        let ending = self.parts.stream.next_ending();
        let ending = ending.and_then(|at| self.state.account.time_until(at));
        let monotonic = self.state.monotonic();
        let ends = async move {
            match ending {
                // Server time has whole milliseconds.
                Some(time) => monotonic.sleep(time + Duration::from_millis(1)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed => Ok(()),
            () = ends => Ok(()),
            () = self.state.monotonic().sleep_until(until) => Ok(()),
            () = self.state.stopped() => Err(self.state.ending()),
        }
    }

    fn is_over(&self, until: Instant) -> bool {
        self.state.monotonic().now() >= until
    }

    /// Reads until there are documents for a batch, or nothing more to read.
    async fn read_some(&mut self, request: &BatchRequest) -> Result<Batch> {
        let max_documents = request.max_documents.unwrap_or(EVENTS).min(EVENTS);
        let mut batch = Batch::default();
        let mut bytes = 0;
        loop {
            request.interrupt.check(1)?;
            let room = max_documents.saturating_sub(batch.documents.len());
            let read = self
                .read(request, room, request.max_bytes.saturating_sub(bytes))
                .await?;
            batch.resume_token = Some(read.token.to_document());
            batch.is_last = read.is_last;
            let documents = match self.parts.has_stages {
                true => self.run_stages(request, read.events).await?,
                false => read.events,
            };
            bytes += documents
                .iter()
                .map(|document| document.as_bytes().len())
                .sum::<usize>();
            batch.documents.extend(documents);
            let is_full = batch.documents.len() >= max_documents || bytes >= request.max_bytes;
            if is_full || batch.is_last || !read.has_more {
                return Ok(batch);
            }
        }
    }

    /// Reads the next events, at most `max`.
    async fn read(&mut self, request: &BatchRequest, max: usize, max_bytes: usize) -> Result<Read> {
        let now = self.state.account.shown_time().await;
        let parts = &mut self.parts;
        let position = parts.stream.position();
        if let Some(at) = parts.ends_at_once {
            let token = Token::new(position, Kind::Invalidation);
            return Ok(Read {
                events: vec![events(&self.state, parts, request.now).invalidation(token, at)],
                token,
                has_more: false,
                is_last: true,
            });
        }
        // An event may become two, and is larger than what is stored of it.
        let batch = parts.stream.next(now, max, max_bytes / 2).await;
        let batch = batch.map_err(|error| codes::error(&error))?;
        let made = events(&self.state, parts, request.now);
        let mut read = Read {
            events: Vec::with_capacity(batch.events.len()),
            token: Token::new(batch.position, Kind::Plain),
            has_more: batch.has_more,
            is_last: false,
        };
        for event in &batch.events {
            if add(&made, &mut read, event).await? {
                break;
            }
        }
        Ok(read)
    }

    /// Runs the other stages.
    async fn run_stages(&self, request: &BatchRequest, events: Vec<RawDocumentBuf>) -> Result<Vec<RawDocumentBuf>> {
        if events.is_empty() {
            return Ok(events);
        }
        let tokens: HashSet<Vec<u8>> = events.iter().filter_map(|event| token_of(event)).collect();
        let (state, pipeline) = (self.state.clone(), self.parts.pipeline.clone());
        let (language, interrupt) = (self.parts.language.clone(), request.interrupt.clone());
        let scope = Arc::new(self.state.account.read_scope(&request.now));
        let documents = tasks::run(&self.state, move |task: &Task| {
            let mut open = OpenPipeline::open(state, &pipeline, Input::Documents(events), language)?;
            open.enter(task, scope, interrupt);
            let mut documents = Vec::new();
            while let Some(document) = open.pull()? {
                documents.push(document.bytes);
            }
            open.leave();
            Ok(documents)
        });
        let documents = documents.await?;
        for document in &documents {
            if !token_of(document).is_some_and(|token| tokens.contains(&token)) {
                return Err(token_changed());
            }
        }
        Ok(documents)
    }
}

fn events<'a>(state: &'a Arc<MongoState>, parts: &'a Parts, now: RequestContext) -> Events<'a> {
    Events {
        state,
        scope: &parts.scope,
        options: &parts.options,
        now,
    }
}

/// Adds an event. Returns whether the stream ends with it.
async fn add(made: &Events<'_>, read: &mut Read, event: &StreamEvent) -> Result<bool> {
    match &event.content {
        StreamContent::Document(change) => {
            let token = Token::new(event.position, Kind::Plain);
            let document = made.of_document(token, (event.time, event.happened), change).await?;
            if document.as_bytes().len() > limits::DOCUMENT_BYTES + 16 * 1024 {
                let text = format!("an event is too large. bytes={}", document.as_bytes().len());
                return Err(Error::new(Code::BSON_OBJECT_TOO_LARGE, text));
            }
            read.events.push(document);
            Ok(false)
        }
        StreamContent::Catalog(change) => {
            let is_last = made.invalidates(change);
            let kind = if is_last { Kind::BeforeInvalidation } else { Kind::Plain };
            let token = Token::new(event.position, kind);
            read.events.extend(made.of_catalog(token, change)?);
            if is_last {
                read.token = Token::new(event.position, Kind::Invalidation);
                read.events
                    .push(made.invalidation(read.token, (event.time, event.happened)));
                (read.is_last, read.has_more) = (true, false);
            }
            Ok(is_last)
        }
    }
}

/// Returns the bytes of an event's resume token.
fn token_of(event: &RawDocument) -> Option<Vec<u8>> {
    match event.get("_id") {
        Ok(Some(RawBsonRef::Document(token))) => Some(token.as_bytes().to_vec()),
        _ => None,
    }
}

fn token_changed() -> Error {
    let text = "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. Modifying the _id field of an event makes it impossible to resume the stream from that point. Only transformations that retain the unmodified _id field are allowed.";
    Error::new(Code::CHANGE_STREAM_FATAL_ERROR, text)
}

impl CursorSource for ChangeStreamCursor {
    fn next_batch<'a>(&'a mut self, request: &'a BatchRequest) -> BoxFuture<'a, Result<Batch>> {
        Box::pin(self.batch(request))
    }
}
