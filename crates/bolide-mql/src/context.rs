//! What a command gives to everything that it evaluates.

pub mod memory;

use std::sync::Arc;

use bolide_model::UnixMillis;
use bson::RawBson;

use crate::collation::Collation;
use crate::error::Result;
use crate::text_search::TextSource;
use crate::vector::VectorIndex;

/// The time, variables and limits of one command.
#[derive(Clone)]
pub struct Context {
    /// Server time at the start of the command: `$$NOW`, `$currentDate`.
    pub now: UnixMillis,
    /// `$$CLUSTER_TIME`, if the deployment has one.
    pub cluster_time: Option<bson::Timestamp>,
    /// The collation of comparisons of strings; `None` compares bytes.
    pub collation: Option<Arc<Collation>>,
    /// The variables of the command's `let`, by name without `$$`.
    pub variables: Arc<[(String, RawBson)]>,
    /// What the collection's text index takes words from, for `$text`; `None` if it has none.
    pub text: Option<Arc<TextSource>>,
    /// The collection's vector indexes, for searches.
    pub vector_indexes: Arc<[VectorIndex]>,
    /// Ends work that lasts too long, or whose client has left.
    pub interrupt: Arc<dyn Interrupt>,
}

/// Ends work that lasts too long.
pub trait Interrupt: Send + Sync {
    /// Called often, with the number of steps (documents or elements) since the last call.
    ///
    /// # Errors
    /// Any error; it ends the command.
    fn check(&self, steps: u64) -> Result<()>;
}

/// Never ends anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uninterrupted;

impl Interrupt for Uninterrupted {
    fn check(&self, _: u64) -> Result<()> {
        Ok(())
    }
}

impl Context {
    /// Returns a context without collation, variables and limits.
    pub fn new(now: UnixMillis) -> Context {
        Context {
            now,
            cluster_time: None,
            collation: None,
            variables: Arc::new([]),
            text: None,
            vector_indexes: Arc::new([]),
            interrupt: Arc::new(Uninterrupted),
        }
    }
}
