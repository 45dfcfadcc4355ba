//! Consistency levels: that of the account, and those that requests may ask for.
//!
//! Every level is implemented as the strongest: one node serves all reads from committed data. A level only changes what clients are told, and so
//! what they do: with Session they send session tokens, with weaker levels they do not. Source: cosmos-rest §9.

use bolide_model::{Error, Result, error};
use http::HeaderMap;

use crate::wire::headers;

/// A level, in order of strength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ConsistencyLevel {
    /// Reads may be older than what was read before.
    Eventual,
    /// Reads are never out of order.
    ConsistentPrefix,
    /// A session reads its own writes.
    #[default]
    Session,
    /// Reads lag by a bound at most.
    BoundedStaleness,
    /// Reads see all writes.
    Strong,
}

impl ConsistencyLevel {
    const ALL: [ConsistencyLevel; 5] = [
        ConsistencyLevel::Eventual,
        ConsistencyLevel::ConsistentPrefix,
        ConsistencyLevel::Session,
        ConsistencyLevel::BoundedStaleness,
        ConsistencyLevel::Strong,
    ];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            ConsistencyLevel::Eventual => "Eventual",
            ConsistencyLevel::ConsistentPrefix => "ConsistentPrefix",
            ConsistencyLevel::Session => "Session",
            ConsistencyLevel::BoundedStaleness => "BoundedStaleness",
            ConsistencyLevel::Strong => "Strong",
        }
    }

    /// The level of this name, without regard to case.
    ///
    /// # Errors
    /// The valid names, if the name is unknown.
    pub fn parse(name: &str) -> Result<ConsistencyLevel, String> {
        let found = ConsistencyLevel::ALL
            .into_iter()
            .find(|level| level.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names = ConsistencyLevel::ALL.map(ConsistencyLevel::name).join(", ");
            format!("expected one of {names}")
        })
    }

    /// Refuses a request for a stronger level than the account's.
    ///
    /// # Errors
    /// `BadRequest`, also for an unknown level.
    pub(crate) fn check(self, headers: &HeaderMap) -> Result<()> {
        let Some(name) = headers::non_empty(headers, &headers::CONSISTENCY_LEVEL)? else {
            return Ok(());
        };
        let asked = ConsistencyLevel::parse(name).map_err(|expected| {
            let name = error::excerpt(name);
            Error::bad_request(format!("unknown consistency level: {expected}. value=`{name}`"))
        })?;
        // Clients in direct mode derive the level from a strategy, which may go beyond the account's level; any read here is as fresh as it asks for.
        if asked <= self || headers::non_empty(headers, &headers::READ_CONSISTENCY_STRATEGY)?.is_some() {
            return Ok(());
        }
        Err(Error::bad_request(format!(
            "ConsistencyLevel {} specified in the request is invalid when service is configured with consistency level {}. Ensure the \
             request consistency level is not stronger than the service consistency level.",
            asked.name(),
            self.name()
        )))
    }
}

#[cfg(test)]
mod tests;
