//! Updates and deletions of the documents that match a filter.
//!
//! Documents are found as by a query. Each is then decided in the worker of its partition, on the version that is stored at that moment: if it has changed,
//! the filter must match it again; if it has ended or was deleted, it does not match. So two statements never both change what only one of them found.

mod decider;

use std::sync::Arc;

use bolide_core::{Container, DocumentId, Duplicate, StoredDocument, Task};
use bolide_model::epk::Epk;
use bolide_mql::filter::Filter;
use bolide_mql::update::Update;
use bolide_mql::{Code, Context, Error, Result};
use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use super::super::context::CommandContext;
use super::find::Matches;
use super::in_order::{InOrder, Window};
use super::language::Hinted;
use super::order::Order;
use super::retry::RetryableWrite;
use super::writer::DataContext;
use super::{drafts, tasks};
use crate::namespace::Namespace;
use decider::{Decider, Outcome};

/// Maximum number of documents of one commit, and their size in bytes.
const CHUNK_DOCUMENTS: usize = 200;
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// How often an upsert is tried that finds nothing to update and then cannot insert, because others insert and delete the same document.
const UPSERT_TRIES: usize = 5;

/// What a statement does with the documents that match.
#[derive(Clone)]
pub enum Action {
    /// Deletes them.
    Delete,
    /// Updates them.
    Update {
        /// The update.
        update: Arc<Update>,
        /// Whether a document is inserted if none matches.
        is_upsert: bool,
        /// Whether the validator is bypassed.
        bypasses_validation: bool,
    },
}

/// One statement of `update`, `delete` or `findAndModify`.
pub struct Statement<'a> {
    /// The command.
    pub context: &'a CommandContext<'a>,
    /// Its time and transaction.
    pub data: &'a DataContext,
    /// The collection.
    pub container: &'a Arc<Container>,
    /// Its name.
    pub namespace: &'a Namespace,
    /// Which documents.
    pub filter: Arc<Filter>,
    /// Collation and variables.
    pub language: Context,
    /// What is done with them.
    pub action: Action,
    /// Whether all matching documents are changed; otherwise the first.
    pub is_multi: bool,
    /// The order in which the first one is chosen.
    pub order: Order,
    /// The command's hint.
    pub hinted: Hinted,
    /// The retryable write, and the id of the statement in it.
    pub retry: Option<(RetryableWrite, i32)>,
}

/// What a statement did.
#[derive(Debug, Clone, Default)]
pub struct Changed {
    /// Number of documents that matched.
    pub matched: u64,
    /// Number of documents whose bytes changed, or that were deleted.
    pub modified: u64,
    /// The `_id` of the inserted document.
    pub upserted: Option<RawBson>,
    /// The result of a statement on one document that was changed; that of the first time, if it is a retry.
    pub result: Option<RawDocumentBuf>,
    /// Whether the statement was carried out before, by the same retryable write.
    pub is_retried: bool,
}

/// What a statement is about to do to one document.
#[derive(Debug, Clone, Copy, Default)]
pub struct Effect<'a> {
    /// The document before; `None` if it is inserted.
    pub before: Option<&'a RawDocument>,
    /// The document after; `None` if it is deleted.
    pub after: Option<&'a RawDocument>,
    /// Whether the bytes of an existing document change, or it is deleted.
    pub is_changed: bool,
    /// The `_id` of an inserted document.
    pub upserted: Option<&'a RawBson>,
}

/// Makes the result of a statement on one document, which retries return, too. If it fails, nothing is changed.
pub type ResultEncoder = Arc<dyn Fn(&Effect<'_>) -> Result<RawDocumentBuf> + Send + Sync>;

impl Changed {
    fn retried(result: RawDocumentBuf) -> Changed {
        Changed {
            result: Some(result),
            is_retried: true,
            ..Changed::default()
        }
    }

    /// Whether a document was written now.
    fn is_new(&self) -> bool {
        !self.is_retried && (self.matched > 0 || self.upserted.is_some())
    }

    /// Whether there was a document to change.
    fn has_matched(&self) -> bool {
        self.matched > 0 || self.is_retried
    }
}

/// Documents, in their order, that are tried before all are sorted again. Each may be as large as documents can be.
const CANDIDATES: Window = Window {
    documents: 10,
    bytes: 11 * 17 * 1024 * 1024,
};

impl Statement<'_> {
    /// Carries the statement out. `encode` makes the stored result of a retryable write.
    ///
    /// # Errors
    /// Of the language; `DuplicateKey`; `DocumentValidationFailure`; of the storage. What was changed before the error stays changed.
    pub async fn run(self, encode: ResultEncoder) -> Result<Changed> {
        let (context, retry) = (self.context, self.retry.clone());
        let changed = self.carry_out(encode).await;
        match retry {
            Some((retry, _)) => retry.count(context, changed, Changed::is_new),
            None => changed,
        }
    }

    async fn carry_out(self, encode: ResultEncoder) -> Result<Changed> {
        let decider = Arc::new(Decider::new(&self, encode)?);
        self.check_shard_key(&decider)?;
        if let Some(stored) = self.stored_result(&decider).await? {
            return Ok(stored);
        }
        for _ in 0..UPSERT_TRIES {
            let changed = match self.is_multi {
                true => self.change_all(&decider).await?,
                false => self.change_first(&decider).await?,
            };
            if changed.has_matched() || !decider.is_upsert() {
                return Ok(changed);
            }
            match self.upsert(&decider).await? {
                Ok(upserted) => return Ok(upserted),
                // Others have inserted it since; then it can be updated, unless the key is that of a document which does not match.
                Err(duplicate) if !self.may_match(&duplicate) => return Err(duplicate),
                Err(_) => {}
            }
        }
        self.upsert(&decider).await?
    }

    /// Checks that the filter names the shard key of a sharded collection where it must: an upsert has one place, and so has the record of a retryable
    /// write.
    fn check_shard_key(&self, decider: &Decider) -> Result<()> {
        let Some(shard_key) = &decider.definition.shard_key else {
            return Ok(());
        };
        if decider.place.is_some() || (decider.retry.is_none() && !decider.is_upsert()) {
            return Ok(());
        }
        let text = format!(
            "The filter of an upsert or a retryable write must name the shard key '{}'.",
            shard_key.path()
        );
        Err(Error::new(Code::SHARD_KEY_NOT_FOUND, text))
    }

    /// Where the statement's documents are, and the record of its retryable write.
    fn target(&self, decider: &Decider) -> (&Arc<Container>, Epk) {
        (self.container, decider.place.clone().unwrap_or_default())
    }

    /// Returns the result of a retryable write that was carried out before.
    async fn stored_result(&self, decider: &Arc<Decider>) -> Result<Option<Changed>> {
        if decider.retry.is_none() {
            return Ok(None);
        }
        let target = self.target(decider);
        let decider = decider.clone();
        let read = self.data.write(self.context, target, move |batch| {
            let Some((retry, statement)) = &decider.retry else {
                return Ok(Ok(None));
            };
            match retry.load(batch)? {
                Ok(stored) => retry.result(batch, &stored, *statement),
                Err(error) => Ok(Err(error)),
            }
        });
        Ok(read.await??.map(Changed::retried))
    }

    /// Whether a document with a taken key may match the filter, so that the upsert is to be tried again.
    fn may_match(&self, error: &Error) -> bool {
        error.code == Code::DUPLICATE_KEY && self.data.transaction.is_none()
    }

    async fn change_first(&self, decider: &Arc<Decider>) -> Result<Changed> {
        if let Some(id) = self.only_id()? {
            let deciding = decider.clone();
            let written = self.data.write(self.context, self.target(decider), move |batch| {
                match batch.find(&id)? {
                    Some(found) => deciding.change_one(batch, &found, None),
                    None => Ok(Ok(None)),
                }
            });
            return Ok(decider.named(self.namespace, written.await??)?.unwrap_or_default());
        }
        if !self.order.is_natural() {
            return self.change_least(decider).await;
        }
        let mut matches = Some(self.matches()?);
        while let Some(source) = matches.take() {
            let (source, found) = self.find_some(source, 1).await?;
            let Some(found) = found.into_iter().next() else { break };
            if let Some(changed) = self.change_found(decider, found).await? {
                return Ok(changed);
            }
            matches = Some(source);
        }
        Ok(Changed::default())
    }

    /// Changes the first document in the order of the statement. If it no longer matches, the next one is tried.
    async fn change_least(&self, decider: &Arc<Decider>) -> Result<Changed> {
        let documents = InOrder::new(self.matches()?, (self.order.clone(), &self.hinted), None, Some(1));
        let mut documents = Some(documents.in_windows(CANDIDATES));
        while let Some(source) = documents.take() {
            let (source, found) = self.find_least(source).await?;
            let Some(found) = found else { break };
            if let Some(changed) = self.change_found(decider, found).await? {
                return Ok(changed);
            }
            documents = Some(source);
        }
        Ok(Changed::default())
    }

    /// Changes a document that matched, if it still does.
    async fn change_found(&self, decider: &Arc<Decider>, found: StoredDocument) -> Result<Option<Changed>> {
        let deciding = decider.clone();
        let target = (self.container, found.place());
        let written = self
            .data
            .write(self.context, target, move |batch| match batch.again(&found)? {
                Some(now) => deciding.change_one(batch, &now, Some(&found)),
                None => Ok(Ok(None)),
            });
        decider.named(self.namespace, written.await??)
    }

    async fn change_all(&self, decider: &Arc<Decider>) -> Result<Changed> {
        let (mut changed, mut matches) = (Changed::default(), Some(self.matches()?));
        while let Some(source) = matches.take() {
            let (source, found) = self.find_some(source, CHUNK_DOCUMENTS).await?;
            if found.is_empty() {
                break;
            }
            for at_one_place in in_places(found) {
                self.change_some(decider, at_one_place, &mut changed).await?;
            }
            matches = Some(source);
        }
        Ok(changed)
    }

    /// Changes documents of one place in one commit, those that still match.
    async fn change_some(
        &self,
        decider: &Arc<Decider>,
        found: Vec<StoredDocument>,
        changed: &mut Changed,
    ) -> Result<()> {
        let Some(place) = found.first().map(StoredDocument::place) else {
            return Ok(());
        };
        let deciding = decider.clone();
        let written = self.data.write(self.context, (self.container, place), move |batch| {
            let mut done = Changed::default();
            for known in &found {
                let Some(now) = batch.again(known)? else { continue };
                match deciding.change_one(batch, &now, Some(known))? {
                    Ok(Some(Outcome::Changed(one))) => {
                        done.matched += one.matched;
                        done.modified += one.modified;
                    }
                    Ok(Some(Outcome::Duplicate(duplicate, document))) => {
                        return Ok((done, Some(Failure::Duplicate(duplicate, document))));
                    }
                    Ok(None) => {}
                    Err(error) => return Ok((done, Some(Failure::Error(error)))),
                }
            }
            Ok((done, None))
        });
        let (done, failure) = written.await?;
        changed.matched += done.matched;
        changed.modified += done.modified;
        match failure {
            None => Ok(()),
            Some(Failure::Error(error)) => Err(error),
            Some(Failure::Duplicate(duplicate, document)) => Err(drafts::duplicate(
                &decider.definition,
                self.namespace,
                &document,
                &duplicate,
            )),
        }
    }

    async fn upsert(&self, decider: &Arc<Decider>) -> Result<Result<Changed>> {
        let Action::Update { update, .. } = &self.action else {
            return Ok(Ok(Changed::default()));
        };
        let document = update.upsert(&self.filter, &self.language)?;
        decider.validator.check(&document, &self.language)?;
        let draft = drafts::draft(self.context, &decider.definition, document)?;
        if decider.place.as_ref() != Some(draft.place()) {
            return Err(decider.shard_key_changed());
        }
        let id = draft.document().get("_id").ok().flatten().map(RawBson::from);
        let deciding = decider.clone();
        let written = self.data.write(self.context, self.target(decider), move |batch| {
            deciding.insert(batch, &draft, &id)
        });
        match written.await?? {
            Outcome::Changed(changed) => Ok(Ok(changed)),
            Outcome::Duplicate(duplicate, document) => Ok(Err(drafts::duplicate(
                &decider.definition,
                self.namespace,
                &document,
                &duplicate,
            ))),
        }
    }

    fn matches(&self) -> Result<Matches> {
        let mut matches = Matches::new(self.container.clone(), self.filter.clone(), &self.language)?;
        match self.order.scan_direction() {
            Some(direction) => matches.scan(direction),
            None => matches.follow(&self.hinted),
        }
        Ok(matches)
    }

    /// Returns the `_id` that the filter names, if it names exactly one.
    fn only_id(&self) -> Result<Option<DocumentId>> {
        Ok(self.matches()?.only_id())
    }

    /// Finds the next documents that match, at most `max`.
    async fn find_some(&self, mut matches: Matches, max: usize) -> Result<(Matches, Vec<StoredDocument>)> {
        let (scope, mut language) = (self.data.scope(), self.language.clone());
        tasks::run(self.context.state, move |task: &Task| {
            language.interrupt = tasks::interrupt(task, language.interrupt.clone());
            let (mut found, mut bytes) = (Vec::new(), 0);
            while found.len() < max && bytes < CHUNK_BYTES {
                let Some(document) = task.wait(matches.next(&scope, &language))? else {
                    break;
                };
                bytes += document.document().as_bytes().len();
                found.push(document);
            }
            Ok((matches, found))
        })
        .await
    }

    /// Finds the next document in the order of the statement.
    async fn find_least(&self, mut documents: InOrder) -> Result<(InOrder, Option<StoredDocument>)> {
        let (scope, mut language) = (self.data.scope(), self.language.clone());
        tasks::run(self.context.state, move |task: &Task| {
            language.interrupt = tasks::interrupt(task, language.interrupt.clone());
            documents.want(Some(1));
            let found = task.wait(documents.next(&scope, &language))?;
            // Others may change the collection before the next one is looked for.
            documents.resume();
            Ok((documents, found))
        })
        .await
    }
}

/// Groups documents that are at the same place one after another.
fn in_places(found: Vec<StoredDocument>) -> Vec<Vec<StoredDocument>> {
    let mut places: Vec<Vec<StoredDocument>> = Vec::new();
    for document in found {
        match places.last_mut() {
            Some(last) if last.first().is_some_and(|first| first.place() == document.place()) => last.push(document),
            _ => places.push(vec![document]),
        }
    }
    places
}

/// Why a statement on many documents ended.
enum Failure {
    Error(Error),
    Duplicate(Duplicate, RawDocumentBuf),
}

/// Reads a document that a retryable write has stored as its result: the number in a field, 0 if it is missing.
pub fn stored_count(stored: &RawDocument, field: &str) -> u64 {
    match stored.get(field).ok().flatten() {
        Some(RawBsonRef::Int32(count)) => u64::try_from(count).unwrap_or_default(),
        Some(RawBsonRef::Int64(count)) => u64::try_from(count).unwrap_or_default(),
        _ => 0,
    }
}
