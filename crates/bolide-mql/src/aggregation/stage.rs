//! What every stage is.

use std::fmt::Debug;
use std::sync::Arc;

use super::document::Document;
use super::namespace::Namespace;
use super::source::{BoxSource, Collections, Source};
use crate::collation::Collation;
use crate::context::Context;
use crate::error::Result;
use crate::filter::Filter;
use crate::projection::check_bytes;
use crate::sort::Sort;

/// A stage, parsed. It holds no state of a run.
pub(super) trait Stage: Debug + Send + Sync {
    /// Connects the stage to its input.
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource>;

    /// The filter of `$match`.
    fn filter(&self) -> Option<&Filter> {
        None
    }

    /// The order of `$sort`.
    fn sort(&self) -> Option<&Sort> {
        None
    }

    /// Returns `$sort` with the number of documents that the stages after it will take.
    fn with_limit(&self, _limit: u64) -> Option<Arc<dyn Stage>> {
        None
    }

    /// The number of `$limit`.
    fn limit(&self) -> Option<u64> {
        None
    }

    /// The number of `$skip`.
    fn skip(&self) -> Option<u64> {
        None
    }

    /// Adds the collections that the stage reads.
    fn namespaces(&self, _read: &mut Vec<Namespace>) {}
}

/// What all stages of a run share.
pub(super) struct Run {
    /// Time, variables, limits.
    pub(super) context: Context,
    /// The collections.
    pub(super) collections: Arc<dyn Collections>,
}

impl Run {
    /// Returns the collation of comparisons.
    pub(super) fn collation(&self) -> Option<&Collation> {
        self.context.collation.as_deref()
    }
}

/// Connects stages one after the other. Every document between them is a step of work, and bounded in size.
pub(super) fn connect(stages: &[Arc<dyn Stage>], input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
    let mut source: BoxSource = checked(input, run);
    for stage in stages {
        source = checked(Arc::clone(stage).open(source, run)?, run);
    }
    Ok(source)
}

fn checked(input: BoxSource, run: &Arc<Run>) -> BoxSource {
    Box::new(Checked {
        input,
        run: Arc::clone(run),
    })
}

struct Checked {
    input: BoxSource,
    run: Arc<Run>,
}

impl Source for Checked {
    fn next(&mut self) -> Result<Option<Document>> {
        self.run.context.interrupt.check(1)?;
        let document = self.input.next()?;
        if let Some(document) = &document {
            // Stages may exchange more than a client may be given: $unwind can take it apart again.
            check_bytes(document.bytes.as_bytes().len())?;
        }
        Ok(document)
    }
}

/// A stage that takes its whole input before it gives its first document.
pub(super) struct Blocking<F> {
    state: State<F>,
}

enum State<F> {
    Waiting(F),
    Giving(Box<dyn Iterator<Item = Document> + Send>),
}

/// What a blocking stage gives, in order.
pub(super) type Output = Box<dyn Iterator<Item = Document> + Send>;

impl<F: FnOnce() -> Result<Output> + Send + 'static> Blocking<F> {
    /// Returns a source that calls `collect` when its first document is asked for.
    pub(super) fn source(collect: F) -> BoxSource {
        Box::new(Blocking {
            state: State::Waiting(collect),
        })
    }
}

impl<F: FnOnce() -> Result<Output> + Send> Source for Blocking<F> {
    fn next(&mut self) -> Result<Option<Document>> {
        loop {
            match &mut self.state {
                State::Giving(output) => return Ok(output.next()),
                State::Waiting(_) => {
                    let nothing: Output = Box::new(std::iter::empty());
                    if let State::Waiting(collect) = std::mem::replace(&mut self.state, State::Giving(nothing)) {
                        self.state = State::Giving(collect()?);
                    }
                }
            }
        }
    }
}

/// A stage that makes at most one document of each.
pub(super) struct Each<F> {
    input: BoxSource,
    change: F,
}

impl<F: FnMut(Document) -> Result<Option<Document>> + Send + 'static> Each<F> {
    /// Returns a source of the changed documents; `None` leaves one out.
    pub(super) fn source(input: BoxSource, change: F) -> BoxSource {
        Box::new(Each { input, change })
    }
}

impl<F: FnMut(Document) -> Result<Option<Document>> + Send> Source for Each<F> {
    fn next(&mut self) -> Result<Option<Document>> {
        while let Some(document) = self.input.next()? {
            if let Some(changed) = (self.change)(document)? {
                return Ok(Some(changed));
            }
        }
        Ok(None)
    }
}
