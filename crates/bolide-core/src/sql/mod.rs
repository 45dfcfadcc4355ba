//! The query language as the core uses it: its errors, its memory, what it may know of a container.

mod memory;
mod schema;

use std::hash::{BuildHasher, RandomState};

use bolide_model::{Error, ErrorKind};
pub(crate) use bolide_query::Condition;
use bolide_query::{Interrupt, Parameters, QueryError};
use serde_json::Value;

use crate::response::Refusal;
pub(crate) use memory::QueryMemory;
pub(crate) use schema::of as schema_of;

/// The error for what the query language refuses.
pub(crate) fn query_error(error: QueryError) -> Error {
    let kind = match &error {
        QueryError::Compile(_) | QueryError::Refused(_) => ErrorKind::QuerySyntax { body: error.body() },
        QueryError::TooLarge { .. }
        | QueryError::ValueTooLarge { .. }
        | QueryError::TooManyRows { .. }
        | QueryError::Interrupted(Interrupt::DeadlineExceeded | Interrupt::TooMuchWork)
        | QueryError::BadContinuation(_) => ErrorKind::BadRequest,
        // The request is gone, or the server stops.
        QueryError::Interrupted(Interrupt::Cancelled) => ErrorKind::Unavailable,
        QueryError::OutOfMemory => ErrorKind::Throttled {
            retry_after: crate::memory::RETRY_AFTER,
        },
        QueryError::BadItem(_) => ErrorKind::Corrupt,
    };
    Error::new(kind, error.message())
}

pub(crate) fn parameters(values: &[(String, Value)]) -> Parameters {
    values.iter().fold(Parameters::none(), |parameters, (name, value)| {
        parameters.with(name.clone(), value)
    })
}

/// The seed of `RAND()` for one page.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().hash_one("query")
}

impl From<QueryError> for Refusal {
    fn from(error: QueryError) -> Refusal {
        query_error(error).into()
    }
}
