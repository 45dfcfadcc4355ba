//! Where documents come from.

use bson::raw::{RawArrayBuf, RawBson};

use super::document::{Document, Lifetime};
use super::namespace::Namespace;
use crate::error::Result;
use crate::filter::Filter;

/// Documents, one after the other.
pub trait Source: Send {
    /// Returns the next document; `None` at the end, and from then on.
    ///
    /// # Errors
    /// Any error; it ends the command.
    fn next(&mut self) -> Result<Option<Document>>;
}

/// A source of its own.
pub type BoxSource = Box<dyn Source>;

/// The collections that stages read, given by the caller.
pub trait Collections: Send + Sync {
    /// Opens a collection at the time and snapshot of the command; a missing one is empty.
    ///
    /// `filter` helps to read less: documents that it does not match may be left out, none must be. Its `$expr` may name variables of the
    /// stage, so a caller uses what the filter says about `_id` and the like, not the filter as a whole.
    ///
    /// # Errors
    /// Any error; it ends the command.
    fn open(&self, namespace: &Namespace, filter: Option<&Filter>) -> Result<BoxSource>;

    /// As [`Collections::open`], if an index finds the documents; `None` if the collection would be scanned, or has so few documents that reading all of them
    /// is less work than `lookups` such reads together.
    ///
    /// # Errors
    /// Any error; it ends the command.
    fn open_by_index(&self, namespace: &Namespace, filter: &Filter, lookups: u64) -> Result<Option<BoxSource>> {
        let _ = (namespace, filter, lookups);
        Ok(None)
    }

    /// Opens what a stage at the start of a sub-pipeline reads, such as `$collStats`.
    ///
    /// # Errors
    /// Any error, such as that the stage is not possible there; it ends the command.
    fn open_stage(&self, namespace: &Namespace, stage: &SourceStage) -> Result<BoxSource>;

    /// Returns the definition, if the name is that of a view.
    ///
    /// # Errors
    /// Any error; it ends the command.
    fn view(&self, namespace: &Namespace) -> Result<Option<View>> {
        let _ = namespace;
        Ok(None)
    }

    /// Returns false if a stored document has ended its life since it was read. Stages ask it for documents that they have kept.
    fn is_live(&self, lifetime: &Lifetime) -> bool {
        let _ = lifetime;
        true
    }
}

/// A view: a pipeline over a collection or another view.
#[derive(Debug, Clone)]
pub struct View {
    /// What it reads.
    pub source: Namespace,
    /// Its stages.
    pub pipeline: RawArrayBuf,
}

/// A stage at the start of a pipeline whose documents the caller supplies.
#[derive(Debug, Clone)]
pub struct SourceStage {
    /// Its name, such as `$changeStream`, `$collStats`, `$currentOp`.
    pub name: &'static str,
    /// Its specification, unchecked but for its type.
    pub spec: RawBson,
}

/// Documents that are there already.
pub struct Documents<I>(I);

impl<I: Iterator<Item = Document> + Send> Documents<I> {
    /// Returns a source of them.
    pub fn new(documents: impl IntoIterator<IntoIter = I>) -> Documents<I> {
        Documents(documents.into_iter())
    }
}

impl<I: Iterator<Item = Document> + Send> Source for Documents<I> {
    fn next(&mut self) -> Result<Option<Document>> {
        Ok(self.0.next())
    }
}
