//! Retryable writes: a statement that was sent before is not carried out again; its stored result is returned.
//!
//! Source: mongo.md §7. The results are stored in the same commit as the writes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bolide_core::{DocumentBatch, SessionRecord, Undecided};
use bolide_mql::{Code, Error};
use bson::raw::{CStr, cstr};
use bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use super::super::context::CommandContext;
use crate::fail_points::WRITE_FAILED;
use crate::sessions::SessionId;
use crate::state::MongoState;

/// Maximum size of a result in the record of the session, in bytes: counts. Larger ones, such as those of upserts, have a record of their own, so that the
/// record of the session does not grow with every statement.
const INLINE_BYTES: usize = 32;

/// The field that the record of a committed transaction has.
const COMMITTED: &CStr = cstr!("committed");

/// The retryable write that a command is.
#[derive(Debug, Clone)]
pub struct RetryableWrite {
    session: Vec<u8>,
    number: i64,
    /// `stmtId` of the first statement.
    first_statement: i32,
    /// The server, if its fail points are to be asked.
    faults: Option<Faults>,
}

/// The fail points that concern retryable writes.
#[derive(Clone)]
struct Faults(Arc<MongoState>);

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

/// What the session has stored, as one decision sees and extends it.
#[derive(Debug, Default)]
pub struct StoredResults {
    number: i64,
    /// By the first of the statements that have this result.
    results: BTreeMap<i32, StoredResult>,
    /// Results that are to get records of their own.
    apart: Vec<(i32, RawDocumentBuf)>,
    is_changed: bool,
}

/// The result of one statement, or of several one after another: most statements of a large command have the same.
#[derive(Debug)]
struct StoredResult {
    /// The last of the statements.
    last: i32,
    /// An empty document stands for a result with a record of its own.
    result: RawDocumentBuf,
}

/// Returns the key of what a session has stored in a collection.
pub fn session_key(session: &SessionId) -> Vec<u8> {
    let mut key = session.id.as_bytes().to_vec();
    key.extend_from_slice(session.user.as_deref().unwrap_or_default().as_bytes());
    key
}

/// Returns what a session stores with the commit of a transaction. It ends earlier retryable writes, as a newer one does.
pub fn record_of_commit(session: &SessionId, number: i64) -> SessionRecord {
    SessionRecord {
        session: session_key(session),
        content: record_of_end(number, true),
        refusal: record_of_refusal(number),
    }
}

/// Returns what a session stores so that the transaction with this number is not committed later.
pub fn record_of_refusal(number: i64) -> Vec<u8> {
    record_of_end(number, false)
}

fn record_of_end(number: i64, is_committed: bool) -> Vec<u8> {
    let mut content = StoredResults {
        number,
        ..StoredResults::default()
    }
    .encode();
    content.append(COMMITTED, is_committed);
    content.into_bytes()
}

/// The number of the transaction or retryable write that a session has stored last.
pub fn number_of(stored: &[u8]) -> Option<i64> {
    RawDocument::from_bytes(stored).ok()?.get_i64("number").ok()
}

/// Whether a session has stored the commit of the transaction with this number.
pub fn is_commit(stored: &[u8], number: i64) -> bool {
    let Ok(stored) = RawDocument::from_bytes(stored) else {
        return false;
    };
    stored.get_i64("number").ok() == Some(number) && stored.get_bool(COMMITTED.as_str()).ok() == Some(true)
}

impl RetryableWrite {
    /// Returns the retryable write that the command is; `None` for an ordinary one.
    pub fn of(context: &CommandContext<'_>, first_statement: Option<i64>) -> Option<RetryableWrite> {
        let transaction = context
            .global
            .transaction
            .filter(|transaction| !transaction.is_multi_statement)?;
        let session = context.global.session.as_ref()?;
        Some(RetryableWrite {
            session: session_key(session),
            number: transaction.number,
            first_statement: first_statement.and_then(|id| i32::try_from(id).ok()).unwrap_or(0),
            faults: context
                .state
                .options
                .faults_enabled
                .then(|| Faults(context.state.clone())),
        })
    }

    /// Lets the fail point `onPrimaryTransactionalWrite` count a write that was carried out, or that it kept from that, and close the connection.
    pub fn count<T>(
        &self,
        context: &CommandContext<'_>,
        written: bolide_mql::Result<T>,
        is_carried_out: impl FnOnce(&T) -> bool,
    ) -> bolide_mql::Result<T> {
        let Some(Faults(state)) = &self.faults else {
            return written;
        };
        let is_counted = match &written {
            Ok(written) => is_carried_out(written),
            Err(error) => error.message.ends_with(WRITE_FAILED),
        };
        let fault = if is_counted {
            state.fail_points.write.take()
        } else {
            None
        };
        let Some(fault) = fault else { return written };
        if fault.closes_connection {
            context.close_connection();
        }
        match fault.error_code {
            Some(code) if written.is_err() => Err(Error::new(code, WRITE_FAILED)),
            _ => written,
        }
    }

    /// Returns the id of the `at`-th statement.
    pub fn statement(&self, at: usize) -> i32 {
        self.first_statement
            .saturating_add(i32::try_from(at).unwrap_or(i32::MAX))
    }

    /// Reads what the session has stored.
    ///
    /// # Errors
    /// [`Undecided`]; as a value: `TransactionTooOld` if the session has sent a write with a higher number since.
    pub fn load(&self, batch: &mut DocumentBatch<'_, '_>) -> Result<Result<StoredResults, Error>, Undecided> {
        let stored = batch.session(&self.session)?;
        let stored = stored.as_deref().and_then(StoredResults::decode).unwrap_or_default();
        Ok(match stored.number.cmp(&self.number) {
            std::cmp::Ordering::Greater => Err(Error::new(
                Code::TRANSACTION_TOO_OLD,
                format!(
                    "Retryable write with txnNumber {} is prohibited on session because a newer retryable write with txnNumber {} has already started on this session.",
                    self.number, stored.number
                ),
            )),
            std::cmp::Ordering::Equal => Ok(stored),
            std::cmp::Ordering::Less => Ok(StoredResults {
                number: self.number,
                ..StoredResults::default()
            }),
        })
    }

    /// Returns the result of a statement that was carried out before; `None` if it was not.
    ///
    /// # Errors
    /// [`Undecided`]; as a value: `IncompleteTransactionHistory` if the result is forgotten.
    pub fn result(
        &self,
        batch: &mut DocumentBatch<'_, '_>,
        stored: &StoredResults,
        statement: i32,
    ) -> Result<bolide_mql::Result<Option<RawDocumentBuf>>, Undecided> {
        let Some(result) = stored.of(statement) else {
            return Ok(Ok(None));
        };
        if !result.is_empty() {
            return Ok(Ok(Some(result.to_owned())));
        }
        let record = batch.session(&self.record_of(statement))?;
        let result = record.and_then(|record| RawDocumentBuf::from_bytes(record.to_vec()).ok());
        Ok(result.map(Some).ok_or_else(|| {
            let text = format!("the result of statement {statement} is not known any more");
            Error::new(Code::INCOMPLETE_TRANSACTION_HISTORY, text)
        }))
    }

    /// The key of the record of one statement.
    fn record_of(&self, statement: i32) -> Vec<u8> {
        let (number, statement) = (self.number.to_be_bytes(), statement.to_be_bytes());
        [&self.session[..], &[0], &number, &statement].concat()
    }

    /// Stores the results of the statements that were carried out.
    ///
    /// # Errors
    /// [`Undecided`], also if a fail point keeps the write from being carried out.
    pub fn store(&self, batch: &mut DocumentBatch<'_, '_>, results: &StoredResults) -> Result<(), Undecided> {
        let fault = self
            .faults
            .as_ref()
            .and_then(|faults| faults.0.fail_points.write.next());
        if results.is_changed && fault.is_some_and(|fault| fault.error_code.is_some()) {
            return Err(bolide_model::Error::internal(WRITE_FAILED).into());
        }
        for (statement, result) in &results.apart {
            batch.set_session(&self.record_of(*statement), result.as_bytes())?;
        }
        if results.is_changed {
            batch.set_session(&self.session, results.encode().as_bytes())?;
        }
        Ok(())
    }
}

impl StoredResults {
    /// Returns the result of a statement that was carried out before; empty if it has a record of its own.
    pub fn of(&self, statement: i32) -> Option<&RawDocument> {
        let (_, stored) = self.results.range(..=statement).next_back()?;
        (statement <= stored.last).then_some(&*stored.result)
    }

    /// Notes the result of a statement.
    pub fn note(&mut self, statement: i32, result: RawDocumentBuf) {
        self.is_changed = true;
        let result = if result.as_bytes().len() <= INLINE_BYTES {
            result
        } else {
            self.apart.push((statement, result));
            RawDocumentBuf::new()
        };
        if let Some((_, before)) = self.results.range_mut(..statement).next_back()
            && before.last.checked_add(1) == Some(statement)
            && before.result == result
        {
            before.last = statement;
            return;
        }
        let last = statement;
        self.results.insert(statement, StoredResult { last, result });
    }

    fn encode(&self) -> RawDocumentBuf {
        let mut results = RawArrayBuf::new();
        for (first, stored) in &self.results {
            results.push(rawdoc! {"first": *first, "last": stored.last, "result": stored.result.clone()});
        }
        let mut document = rawdoc! {"number": self.number};
        document.append(cstr!("results"), results);
        document
    }

    fn decode(bytes: &[u8]) -> Option<StoredResults> {
        let document = RawDocument::from_bytes(bytes).ok()?;
        let mut decoded = StoredResults {
            number: document.get_i64("number").ok()?,
            ..StoredResults::default()
        };
        for stored in document.get_array("results").ok()? {
            let stored = stored.ok()?;
            let stored = stored.as_document()?;
            let result = stored.get_document("result").ok()?.to_owned();
            let last = stored.get_i32("last").ok()?;
            decoded
                .results
                .insert(stored.get_i32("first").ok()?, StoredResult { last, result });
        }
        Some(decoded)
    }
}

#[cfg(test)]
mod tests;
