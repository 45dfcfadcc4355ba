//! `insert`.

use std::sync::Arc;

use bolide_core::{Container, DocumentDraft, Duplicate};
use bolide_mql::{Result, document};
use bson::{RawDocument, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::retry::RetryableWrite;
use super::data::statements::{Statements, count};
use super::data::writer::DataContext;
use super::data::{collections, drafts, validation};
use crate::namespace::Namespace;

/// Maximum number of documents of one commit, and their size in bytes, so that other writers do not wait for long.
const CHUNK_DOCUMENTS: usize = 1_000;
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// `{insert, documents, ordered?, bypassDocumentValidation?}` → `{n, writeErrors?}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let documents = arguments.documents("documents")?;
    let documents = arguments.required("documents", documents)?;
    context.state.metrics.operations.insert.add_all(documents.len());
    let is_ordered = arguments.strict_boolean("ordered")?.unwrap_or(true);
    let bypasses_validation = arguments.boolean("bypassDocumentValidation")?.unwrap_or(false);
    let keeps_timestamps = arguments.boolean("bypassEmptyTsReplacement")?.unwrap_or(false);
    let retry = RetryableWrite::of(context, arguments.first_statement()?);
    arguments.finish()?;
    let container = collections::find_or_create(context, &namespace).await?;
    let data = DataContext::begin(context).await?;
    let mut insert = Insert {
        context,
        data,
        container,
        namespace,
        retry,
        is_ordered,
        bypasses_validation,
        keeps_timestamps,
        inserted: 0,
        statements: Statements::default(),
    };
    insert.all(&documents).await?;
    insert.statements.reply(rawdoc! {"n": count(insert.inserted)})
}

struct Insert<'a> {
    context: &'a CommandContext<'a>,
    data: DataContext,
    container: Arc<Container>,
    namespace: Namespace,
    retry: Option<RetryableWrite>,
    is_ordered: bool,
    bypasses_validation: bool,
    keeps_timestamps: bool,
    inserted: u64,
    statements: Statements,
}

/// What became of a document.
enum Inserted {
    Now,
    /// By the same retryable write before.
    Before(i32),
    Duplicate(Duplicate),
}

/// Whether a document was inserted now.
fn is_any_new(results: &Result<Vec<Inserted>>) -> bool {
    let is_new = |result: &Inserted| matches!(result, Inserted::Now);
    results.as_ref().is_ok_and(|results| results.iter().any(is_new))
}

impl Insert<'_> {
    async fn all(&mut self, documents: &[&RawDocument]) -> Result<()> {
        let language = self.context.language(&self.data.request);
        let definition = collections::definition(&self.container)?;
        let validator = validation::Validator::of(&definition, self.bypasses_validation)?;
        let mut chunk: Vec<(usize, DocumentDraft)> = Vec::new();
        let mut bytes = 0;
        for (at, document) in documents.iter().enumerate() {
            let draft = document::prepare_insert(document, &language, self.keeps_timestamps)
                .and_then(|document| validator.check(&document, &language).map(|()| document))
                .and_then(|document| drafts::draft(self.context, &definition, document));
            match draft {
                Ok(draft) => {
                    // A commit is about one place.
                    let is_elsewhere = chunk.last().is_some_and(|(_, last)| last.place() != draft.place());
                    if is_elsewhere {
                        self.chunk(std::mem::take(&mut chunk)).await?;
                        bytes = 0;
                        if self.is_ordered && self.statements.have_failed() {
                            return Ok(());
                        }
                    }
                    bytes += draft.document().as_bytes().len();
                    chunk.push((at, draft));
                }
                Err(error) => {
                    if self.is_ordered {
                        // Documents before this one are inserted first, and one of them may fail before it.
                        self.chunk(std::mem::take(&mut chunk)).await?;
                        if !self.statements.have_failed() {
                            self.statements.fail(at, error);
                        }
                        return Ok(());
                    }
                    self.statements.fail(at, error);
                }
            }
            if chunk.len() >= CHUNK_DOCUMENTS || bytes >= CHUNK_BYTES {
                self.chunk(std::mem::take(&mut chunk)).await?;
                bytes = 0;
                if self.is_ordered && self.statements.have_failed() {
                    return Ok(());
                }
            }
        }
        self.chunk(chunk).await
    }

    /// Inserts some documents of one place in one commit. Those that fail do not keep the others from being inserted, except for those after them if the command
    /// is ordered.
    async fn chunk(&mut self, chunk: Vec<(usize, DocumentDraft)>) -> Result<()> {
        let Some((_, first)) = chunk.first() else {
            return Ok(());
        };
        let place = first.place().clone();
        let chunk = Arc::new(chunk);
        let (documents, retry, is_ordered) = (chunk.clone(), self.retry.clone(), self.is_ordered);
        let written = self.data.write(self.context, (&self.container, place), move |batch| {
            let mut stored = match retry.as_ref().map(|retry| retry.load(batch)).transpose()? {
                Some(Err(error)) => return Ok(Err(error)),
                stored => stored.and_then(Result::ok),
            };
            batch.foresee_all(documents.iter().map(|(_, draft)| draft))?;
            let mut results = Vec::with_capacity(documents.len());
            for (at, draft) in documents.iter() {
                let statement = retry.as_ref().map(|retry| retry.statement(*at));
                if let (Some(stored), Some(statement)) = (&stored, statement)
                    && stored.of(statement).is_some()
                {
                    results.push(Inserted::Before(statement));
                    continue;
                }
                match batch.insert(draft)? {
                    Ok(()) => {
                        if let (Some(stored), Some(statement)) = (&mut stored, statement) {
                            stored.note(statement, rawdoc! {"n": 1});
                        }
                        results.push(Inserted::Now);
                    }
                    Err(duplicate) => {
                        results.push(Inserted::Duplicate(duplicate));
                        if is_ordered {
                            break;
                        }
                    }
                }
            }
            if let (Some(retry), Some(stored)) = (&retry, &stored) {
                retry.store(batch, stored)?;
            }
            Ok(Ok(results))
        });
        let written = written.await;
        let written = match &self.retry {
            Some(retry) => retry.count(self.context, written, is_any_new),
            None => written,
        };
        match written {
            Ok(results) => self.note(&chunk, results?),
            // The reason holds for each of them, but only the first is told if the others are not tried.
            Err(error) if self.context.transaction.is_none() => {
                let told = if self.is_ordered { 1 } else { chunk.len() };
                for (at, _) in chunk.iter().take(told) {
                    self.statements.fail(*at, error.clone());
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn note(&mut self, chunk: &[(usize, DocumentDraft)], results: Vec<Inserted>) -> Result<()> {
        let definition = collections::definition(&self.container)?;
        for ((at, draft), result) in chunk.iter().zip(results) {
            match result {
                Inserted::Now => self.inserted += 1,
                Inserted::Before(statement) => {
                    self.inserted += 1;
                    self.statements.retried(statement);
                }
                Inserted::Duplicate(duplicate) => {
                    let error = drafts::duplicate(&definition, &self.namespace, draft.document(), &duplicate);
                    self.statements.fail(*at, error);
                }
            }
        }
        Ok(())
    }
}
