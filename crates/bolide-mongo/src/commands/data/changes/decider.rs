//! The decision on one document, in the worker of its partition.

use std::sync::Arc;

use bolide_core::{
    CollectionDefinition, DocumentBatch, DocumentDraft, DraftOptions, Duplicate, StoredDocument, Undecided,
};
use bolide_model::epk::Epk;
use bolide_mql::filter::{Filter, MatchDetails};
use bolide_mql::update::Update;
use bolide_mql::{Code, Context, Error, Result};
use bson::{RawBson, RawDocumentBuf};

use super::super::find::place_of;
use super::super::retry::{RetryableWrite, StoredResults};
use super::super::validation::{self, Validator};
use super::super::{collections, drafts};
use super::{Action, Changed, Effect, ResultEncoder, Statement};
use crate::namespace::Namespace;

/// What decides on one document in the worker.
pub struct Decider {
    filter: Arc<Filter>,
    language: Context,
    action: Action,
    pub definition: Arc<CollectionDefinition>,
    /// Where all documents that match are; `None` if they may be at several places of a sharded collection.
    pub place: Option<Epk>,
    pub validator: Validator,
    options: DraftOptions,
    pub retry: Option<(RetryableWrite, i32)>,
    /// `None` if the statement is on many documents.
    encode: Option<ResultEncoder>,
}

/// What became of one document.
pub enum Outcome {
    Changed(Changed),
    Duplicate(Duplicate, RawDocumentBuf),
}

/// An error of the language is a value: the changes before it are kept.
pub type Decided<T> = Result<Result<T>, Undecided>;

/// What a change would leave, before it is made.
enum Ready {
    /// The retryable write has made it before; this is its result.
    Before(RawDocumentBuf),
    /// Its result, and what the session is to store with it.
    Now(Option<RawDocumentBuf>, Option<StoredResults>),
}

impl Decider {
    pub fn new(statement: &Statement<'_>, encode: ResultEncoder) -> Result<Decider> {
        let definition = collections::definition(statement.container)?;
        let is_bypassed = match &statement.action {
            Action::Delete => true,
            Action::Update {
                bypasses_validation, ..
            } => *bypasses_validation,
        };
        Ok(Decider {
            filter: statement.filter.clone(),
            language: statement.language.clone(),
            action: statement.action.clone(),
            validator: Validator::of(&definition, is_bypassed)?,
            place: place_of(&definition, &statement.filter, &statement.language),
            definition,
            options: statement.context.state.account.draft_options(),
            retry: statement.retry.clone(),
            encode: (!statement.is_multi).then_some(encode),
        })
    }

    pub fn is_upsert(&self) -> bool {
        matches!(self.action, Action::Update { is_upsert: true, .. })
    }

    /// Changes a live document. Returns `None` if it does not match. `known` is the version that matched before.
    pub fn change_one(
        &self,
        batch: &mut DocumentBatch<'_, '_>,
        now: &StoredDocument,
        known: Option<&StoredDocument>,
    ) -> Decided<Option<Outcome>> {
        let needs_details = match &self.action {
            Action::Update { update, .. } => update.uses_matched_element(),
            Action::Delete => false,
        };
        let is_known = known.is_some_and(|known| known.version() == now.version());
        let matched = match is_known && !needs_details {
            true => Ok(Some(MatchDetails::default())),
            false => self.filter.matches_with(now.document(), &self.language),
        };
        let changed = match (matched, &self.action) {
            (Err(error), _) => return Ok(Err(error)),
            (Ok(None), _) => return Ok(Ok(None)),
            (Ok(Some(_)), Action::Delete) => self.delete(batch, now)?,
            (Ok(Some(matched)), Action::Update { update, .. }) => self.update(batch, now, update, &matched)?,
        };
        Ok(changed.map(Some))
    }

    fn delete(&self, batch: &mut DocumentBatch<'_, '_>, now: &StoredDocument) -> Decided<Outcome> {
        let effect = Effect {
            before: Some(now.document()),
            is_changed: true,
            ..Effect::default()
        };
        let (result, stored) = match self.prepare(batch, &effect)? {
            Ok(Ready::Now(result, stored)) => (result, stored),
            Ok(Ready::Before(result)) => return Ok(Ok(Outcome::Changed(Changed::retried(result)))),
            Err(error) => return Ok(Err(error)),
        };
        batch.delete(now);
        self.store(batch, stored)?;
        Ok(Ok(Outcome::Changed(Changed {
            matched: 1,
            modified: 1,
            result,
            ..Changed::default()
        })))
    }

    fn update(
        &self,
        batch: &mut DocumentBatch<'_, '_>,
        now: &StoredDocument,
        update: &Update,
        matched: &MatchDetails,
    ) -> Decided<Outcome> {
        let (draft, is_changed) = match self.draft(now, update, matched) {
            Ok(draft) => draft,
            Err(error) => return Ok(Err(error)),
        };
        let effect = Effect {
            before: Some(now.document()),
            after: Some(draft.document()),
            is_changed,
            ..Effect::default()
        };
        let (result, stored) = match self.prepare(batch, &effect)? {
            Ok(Ready::Now(result, stored)) => (result, stored),
            Ok(Ready::Before(result)) => return Ok(Ok(Outcome::Changed(Changed::retried(result)))),
            Err(error) => return Ok(Err(error)),
        };
        // A document that does not change is written all the same: its countdown begins again (TTL-289).
        if let Err(duplicate) = batch.replace(now, &draft)? {
            return Ok(Ok(Outcome::Duplicate(duplicate, draft.document().to_owned())));
        }
        self.store(batch, stored)?;
        Ok(Ok(Outcome::Changed(Changed {
            matched: 1,
            modified: u64::from(is_changed),
            result,
            ..Changed::default()
        })))
    }

    /// Makes the new version of a document, and tells whether it differs.
    fn draft(&self, now: &StoredDocument, update: &Update, matched: &MatchDetails) -> Result<(DocumentDraft, bool)> {
        let updated = update.apply(now.document(), matched, &self.language)?;
        if updated.changed && !self.validator.accepts(&updated.document, &self.language)? {
            let was_valid = self.validator.accepts(now.document(), &self.language)?;
            if was_valid || !self.validator.is_moderate {
                return Err(validation::failure(&updated.document));
            }
        }
        if self.definition.shard_key.is_some() {
            let place = self.definition.place_of(&updated.document);
            if place.ok() != Some(now.place()) {
                return Err(self.shard_key_changed());
            }
        }
        let draft = DocumentDraft::new(updated.document, &self.definition, self.options)?;
        Ok((draft.updated(updated.delta), updated.changed))
    }

    /// The error of a write that would move a document to another place.
    pub fn shard_key_changed(&self) -> Error {
        let path = self.definition.shard_key.as_ref().map(|shard_key| shard_key.path());
        let path = path.unwrap_or_default();
        let text = format!("Performing an update on the path '{path}' would modify the immutable field '{path}'");
        Error::new(Code::IMMUTABLE_FIELD, text)
    }

    /// Inserts the document of an upsert.
    pub fn insert(
        &self,
        batch: &mut DocumentBatch<'_, '_>,
        draft: &DocumentDraft,
        id: &Option<RawBson>,
    ) -> Decided<Outcome> {
        let effect = Effect {
            after: Some(draft.document()),
            upserted: id.as_ref(),
            ..Effect::default()
        };
        let (result, stored) = match self.prepare(batch, &effect)? {
            Ok(Ready::Now(result, stored)) => (result, stored),
            Ok(Ready::Before(result)) => return Ok(Ok(Outcome::Changed(Changed::retried(result)))),
            Err(error) => return Ok(Err(error)),
        };
        if let Err(duplicate) = batch.insert(draft)? {
            return Ok(Ok(Outcome::Duplicate(duplicate, draft.document().to_owned())));
        }
        self.store(batch, stored)?;
        Ok(Ok(Outcome::Changed(Changed {
            upserted: id.clone(),
            result,
            ..Changed::default()
        })))
    }

    /// Makes the result of a change that is about to be made, so that nothing can fail after it. The same statement may have been sent twice, and the
    /// other one carried out since this one looked.
    fn prepare(&self, batch: &mut DocumentBatch<'_, '_>, effect: &Effect<'_>) -> Decided<Ready> {
        let mut stored = None;
        if let Some((retry, statement)) = &self.retry {
            let loaded = match retry.load(batch)? {
                Ok(loaded) => loaded,
                Err(error) => return Ok(Err(error)),
            };
            match retry.result(batch, &loaded, *statement)? {
                Ok(None) => {}
                Ok(Some(result)) => return Ok(Ok(Ready::Before(result))),
                Err(error) => return Ok(Err(error)),
            }
            stored = Some((loaded, *statement));
        }
        let result = match self.encode.as_ref().map(|encode| encode(effect)).transpose() {
            Ok(result) => result,
            Err(error) => return Ok(Err(error)),
        };
        let stored = stored.map(|(mut stored, statement)| {
            stored.note(statement, result.clone().unwrap_or_default());
            stored
        });
        Ok(Ok(Ready::Now(result, stored)))
    }

    fn store(&self, batch: &mut DocumentBatch<'_, '_>, stored: Option<StoredResults>) -> Result<(), Undecided> {
        match (&self.retry, stored) {
            (Some((retry, _)), Some(stored)) => retry.store(batch, &stored),
            _ => Ok(()),
        }
    }

    /// Turns a taken key into an error.
    pub fn named(&self, namespace: &Namespace, outcome: Option<Outcome>) -> Result<Option<Changed>> {
        match outcome {
            None => Ok(None),
            Some(Outcome::Changed(changed)) => Ok(Some(changed)),
            Some(Outcome::Duplicate(duplicate, document)) => {
                Err(drafts::duplicate(&self.definition, namespace, &document, &duplicate))
            }
        }
    }
}
