//! Admission: checks of a request's head before its body is read and the core is called.

use bolide_model::account_key::Access;
use http::HeaderMap;
use http::request::Parts;

use crate::auth;
use crate::operation::Operation;
use crate::request::Sender;
use crate::request_body::Refused;
use crate::routes::{PathKind, Route};
use crate::state::State;
use crate::status::{self, FORBIDDEN, Failure};
use crate::wire::headers;

/// Maximum bytes of all headers together. Session and continuation tokens are much shorter.
const HEADER_BYTES: usize = 64 * 1024;
/// Longest path: more than the longest ids need, with all their bytes percent-encoded.
const PATH_BYTES: usize = 16 * 1024;
/// The first API version with partitioned containers.
const FIRST_VERSION: &str = "2015-12-16";

/// An admitted request: its operation, its route, and its sender.
pub(crate) struct Admitted<'p> {
    pub route: Route<'p>,
    pub operation: Operation,
    pub sender: Sender,
}

/// Admits a request by its head. `whole` is its path with its query, see [`item_path_with_query`]: a signature that is not for the path may be for that.
///
/// # Errors
/// The failure, and whether the sender has shown a key: without a key, nothing about existing resources is disclosed.
pub(crate) fn admit<'p>(
    state: &State,
    head: &Parts,
    route: Route<'p>,
    whole: Option<&'p str>,
) -> Result<Admitted<'p>, (Refused, Failure)> {
    let unknown = |failure| (Refused::Unknown, failure);
    let (route, sender) = match identify(state, head, &route) {
        Ok(sender) => (route, sender),
        Err(failure) => {
            let with_query = whole.and_then(Route::parse).ok_or_else(|| unknown(failure.clone()))?;
            let sender = identify(state, head, &with_query).map_err(|_| unknown(failure))?;
            (with_query, sender)
        }
    };
    let operation = allow(state, &sender, head, &route).map_err(|failure| (Refused::Known, failure))?;
    Ok(Admitted {
        route,
        operation,
        sender,
    })
}

/// The path of an item with the text after `?`, if any: the JavaScript SDK sends an item's id with an unescaped `?`, and signs it as it is.
pub(crate) fn item_path_with_query(head: &Parts, route: &Route<'_>) -> Option<String> {
    let query = head.uri.query().filter(|_| route.kind == PathKind::Item)?;
    Some(format!("{}?{query}", head.uri.path()))
}

fn identify(state: &State, head: &Parts, route: &Route<'_>) -> Result<Sender, Failure> {
    check_header_size(&head.headers)?;
    check_path_size(head.uri.path())?;
    check_version(&head.headers)?;
    let is_database = |name: &str| state.account.database_by_name(name).is_ok();
    auth::authenticate(&state.keys, head, route, is_database)
}

fn allow(state: &State, sender: &Sender, head: &Parts, route: &Route<'_>) -> Result<Operation, Failure> {
    let operation = Operation::of(route, &head.method, &head.headers)?;
    match sender {
        Sender::Key(Access::Full) => {}
        Sender::Key(Access::ReadOnly) if operation.is_read() => {}
        Sender::Key(Access::ReadOnly) => {
            let message = format!("a read-only key cannot authorize {}", operation.name());
            return Err(Failure::new(FORBIDDEN, message));
        }
        Sender::Token(grant) => grant.check(&state.account, operation, route, &head.headers)?,
    }
    Ok(operation)
}

fn check_path_size(path: &str) -> Result<(), Failure> {
    if path.len() <= PATH_BYTES {
        return Ok(());
    }
    let message = format!("the path is too long. bytes={} limit={PATH_BYTES}", path.len());
    Err(Failure::new(status::URI_TOO_LONG, message))
}

fn check_header_size(headers: &HeaderMap) -> Result<(), Failure> {
    let size: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if size <= HEADER_BYTES {
        return Ok(());
    }
    let message = format!("the request's headers are too large. bytes={size} limit={HEADER_BYTES}");
    Err(Failure::new(status::HEADERS_TOO_LARGE, message))
}

/// Refuses an unknown API version (cosmos-rest §0.3). Without a version, as from people with curl, the usual one is assumed.
fn check_version(headers: &HeaderMap) -> Result<(), Failure> {
    let Some(version) = headers::non_empty(headers, &headers::VERSION)? else {
        return Ok(());
    };
    let is_date = version.len() == 10
        && version.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if is_date && version >= FIRST_VERSION {
        return Ok(());
    }
    Err(Failure::bad_request(format!(
        "header `{}` must be a date from {FIRST_VERSION} on. value=`{version}`",
        headers::VERSION
    )))
}

#[cfg(test)]
mod tests;
