//! The replies of write commands: counts, and the errors of single statements.

use bolide_mql::{Code, Error};
use bson::raw::cstr;
use bson::{RawArrayBuf, RawDocumentBuf};

use super::super::context::Reply;

/// The codes of a server that takes no writes: while the last rows of its store are copied, and after the store has moved.
const NOT_WRITABLE: [Code; 2] = [Code::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE, Code::NOT_WRITABLE_PRIMARY];

/// The results of the statements of a write command.
#[derive(Debug, Default)]
pub struct Statements {
    errors: Vec<(usize, Error)>,
    retried: Vec<i32>,
}

impl Statements {
    /// Notes that a statement failed.
    pub fn fail(&mut self, index: usize, error: Error) {
        self.errors.push((index, error));
    }

    /// Notes that a statement was carried out before, by the same retryable write.
    pub fn retried(&mut self, statement: i32) {
        self.retried.push(statement);
    }

    /// Whether a statement failed.
    pub fn have_failed(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Adds `writeErrors` and `retriedStmtIds` to a reply.
    ///
    /// # Errors
    /// That the server takes no writes now: as in MongoDB it is the error of the whole command, because drivers send the command again only then.
    pub fn reply(self, mut body: RawDocumentBuf) -> Result<Reply, Error> {
        if let Some((_, error)) = self.errors.iter().find(|(_, error)| NOT_WRITABLE.contains(&error.code)) {
            return Err(error.clone());
        }
        if !self.errors.is_empty() {
            let mut errors = RawArrayBuf::new();
            for (index, error) in &self.errors {
                errors.push(write_error(*index, error));
            }
            body.append(cstr!("writeErrors"), errors);
        }
        if !self.retried.is_empty() {
            let mut retried = RawArrayBuf::new();
            for statement in self.retried {
                retried.push(statement);
            }
            body.append(cstr!("retriedStmtIds"), retried);
        }
        Ok(Reply {
            aborts_transaction: !self.errors.is_empty(),
            ..Reply::from(body)
        })
    }
}

/// Returns an element of `writeErrors`.
fn write_error(index: usize, error: &Error) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    document.append(cstr!("index"), i32::try_from(index).unwrap_or(i32::MAX));
    document.append(cstr!("code"), error.code.0);
    document.append(cstr!("errmsg"), error.message.as_str());
    for field in error.details.iter().flat_map(|details| details.iter()).flatten() {
        document.append(field.0, field.1);
    }
    document
}

/// Returns a count as an int32, as clients expect it, or as an int64 if it does not fit.
pub fn count(count: u64) -> bson::RawBson {
    match i32::try_from(count) {
        Ok(count) => bson::RawBson::Int32(count),
        Err(_) => bson::RawBson::Int64(i64::try_from(count).unwrap_or(i64::MAX)),
    }
}
