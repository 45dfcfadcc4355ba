//! The common part of all operations on a container's items: checks before, headers after.
//!
//! Errors get the headers too: .NET and Java take their sessions from those of 404, 409 and 412 (cosmos-rest §9). The response for a missing item
//! names no container, as .NET's suite expects.

use std::sync::Arc;

use bolide_core::{ChargedResult, Container, Cost, Refusal, Response};
use bolide_model::{Error, ErrorKind, Result};
use http::{HeaderMap, StatusCode};

use crate::addressing;
use crate::operation::Operation;
use crate::request::Call;
use crate::session::{self, SessionToken};
use crate::wire::{Reply, headers};

/// Quota of a container, in the format of the service's headers (kilobytes; -1 means unlimited).
pub(super) const RESOURCE_QUOTA: &str =
    "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;";
/// Replaces a container's usage if it was not counted: -1 means unknown, and the sizes are zero.
const USAGE_UNCOUNTED: &str = "documentSize=0;documentsSize=0;documentsCount=-1;collectionSize=0;";

/// Valid indexing directives of a write.
const INDEXING_DIRECTIVES: &[&str] = &["Default", "Include", "Exclude"];
/// Formats of responses that a client may request.
const CONTENT_FORMATS: &[&str] = &["JsonText", "CosmosBinary", "HybridRow"];

/// The container of a request on items, and the client's session token. The handler runs between [`InContainer::enter`] and [`InContainer::finish`],
/// which are not generic over it: there is one copy of them, not one for each operation.
pub(super) struct InContainer {
    pub container: Arc<Container>,
    /// The session token of the request, or why the request is refused.
    session: std::result::Result<SessionToken, Error>,
}

impl InContainer {
    /// Finds the container and checks headers that all operations on items share.
    ///
    /// # Errors
    /// 404 if the container does not exist. Failed checks are returned by [`InContainer::refusal`].
    pub(super) fn enter(call: &Call<'_>) -> Result<InContainer> {
        // For a point read, the service says only that something does not exist. Source: .NET's suite, `CosmosNotFoundTests`.
        let container = match call.operation {
            Operation::ReadItem => addressing::container(call.account(), &call.route),
            _ => addressing::parent_container(call.account(), &call.route),
        }
        .map_err(|error| gone_for_stale_client(call.headers(), error))?;
        let session = check_headers(call, &container);
        Ok(InContainer { container, session })
    }

    /// Why the handler must not run.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.session.as_ref().err().cloned().map(Refusal::from)
    }

    /// Makes the reply from the handler's result.
    pub(super) fn finish(self, call: &Call<'_>, answered: ChargedResult<Reply>) -> Reply {
        let answered = match &self.session {
            Ok(session) if call.operation.is_read() => check_session(session, &answered).and(answered),
            _ => answered,
        };
        let (mut reply, cost) = match answered {
            Ok(Response { value, cost }) => (value, cost),
            Err(Refusal { error, cost }) => {
                let is_of_missing = error.kind == ErrorKind::NotFound;
                let mut reply = Reply::failure(&error.into(), call.activity_id);
                reply.names_container = !is_of_missing;
                (reply, cost)
            }
        };
        if reply.names_container {
            add_container_headers(&mut reply, call, &self.container);
        }
        add_quota_headers(&mut reply);
        add_cost_headers(&mut reply, &cost);
        if reply.status == StatusCode::NOT_FOUND {
            withhold_strange_token(&mut reply, call.headers(), &cost);
        }
        reply
    }
}

fn check_headers(call: &Call<'_>, container: &Container) -> Result<SessionToken> {
    call.state.options.consistency.check(call.headers())?;
    headers::check_choices(call.headers(), &headers::INDEXING_DIRECTIVE, INDEXING_DIRECTIVES)?;
    headers::check_choices(call.headers(), &headers::CONTENT_FORMAT, CONTENT_FORMATS)?;
    check_intended_rid(call.headers(), container)?;
    SessionToken::of(call.headers())
}

/// If a client names a resource id of a container that was deleted, the response is that of any missing resource. With the sub-status for a missing
/// parent the client would look for the container again. Source: the Java SDK's suite.
fn gone_for_stale_client(sent: &HeaderMap, error: Error) -> Error {
    match error.kind {
        ErrorKind::OwnerNotFound if sent.contains_key(&headers::INTENDED_RID) => Error {
            kind: ErrorKind::NotFound,
            ..error
        },
        _ => error,
    }
}

/// A response with its value converted.
pub(super) fn map<T, U>(response: Response<T>, f: impl FnOnce(T) -> U) -> Response<U> {
    Response {
        value: f(response.value),
        cost: response.cost,
    }
}

/// Tells clients that know another container of this name that it was replaced (cosmos-rest §3.5).
fn check_intended_rid(headers: &HeaderMap, container: &Container) -> Result<()> {
    let Some(intended) = headers::non_empty(headers, &headers::INTENDED_RID)? else {
        return Ok(());
    };
    let rid = container.rid().to_string();
    if intended == rid {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::ContainerRecreated,
        format!(
            "the container was deleted and created again since the client read it. intended=`{intended}` rid=`{rid}`"
        ),
    ))
}

fn check_session(session: &SessionToken, answered: &ChargedResult<Reply>) -> Result<(), Refusal> {
    let cost = match answered {
        Ok(response) => &response.cost,
        Err(refusal) => &refusal.cost,
    };
    session.check(&cost.touched).map_err(|error| Refusal {
        error,
        cost: cost.clone(),
    })
}

/// Adds the headers that name the container.
pub(super) fn add_container_headers(reply: &mut Reply, call: &Call<'_>, container: &Container) {
    let paths = call.state.content_paths.of(container);
    reply.header(&headers::ALT_CONTENT_PATH, paths.alternative);
    reply.header(&headers::CONTENT_PATH, paths.rid);
}

/// The quota of a container, and a placeholder for its usage, because clients expect the header in every response.
///
/// The real values are returned when the container is read with `x-ms-documentdb-populatequotainfo`. Exact values (TTL-253) need the worker of each
/// range, for which no point read should wait; older ones would count expired items. And a token for one partition key must not disclose the size of
/// others.
pub(super) fn add_quota_headers(reply: &mut Reply) {
    reply.fixed(&headers::RESOURCE_QUOTA, RESOURCE_QUOTA);
    reply.fixed(&headers::RESOURCE_USAGE, USAGE_UNCOUNTED);
}

fn add_cost_headers(reply: &mut Reply, cost: &Cost) {
    if cost.charge.0 > 0.0 {
        reply.charge = cost.charge;
    }
    if let Some(position) = session::range_of_answer(&cost.touched) {
        reply.ascii(&headers::SESSION_TOKEN, &session::token(position));
        for name in [&headers::LSN, &headers::LLSN, &headers::GLOBAL_COMMITTED_LSN] {
            reply.number(name, position.lsn.0);
        }
        reply.fixed(&headers::READ_REGIONS, "0");
        reply.fixed(&headers::WRITE_QUORUM, "1");
        reply.fixed(&headers::REPLICA_SET_SIZE, "1");
    }
    if let [position] = cost.touched[..] {
        // Either right or absent: Java and .NET refresh their caches on any other value (cosmos-rest §10).
        match position.range {
            // Of most containers it is the only one.
            0 => reply.fixed(&headers::PARTITION_KEY_RANGE_ID, "0"),
            range => reply.number(&headers::PARTITION_KEY_RANGE_ID, u64::from(range)),
        }
    }
}

/// Removes the session token from a 404 of a range that the client does not know, if it knows others.
///
/// A missing item gives the client nothing that it would have to see again. The JavaScript SDK's session test reads with a key that its item does not
/// have, and expects to know only its item's range.
fn withhold_strange_token(reply: &mut Reply, sent: &HeaderMap, cost: &Cost) {
    let Ok(session) = SessionToken::of(sent) else { return };
    if session::range_of_answer(&cost.touched).is_some_and(|position| session.is_of_other_ranges(position.range)) {
        reply.headers.remove(&headers::SESSION_TOKEN);
    }
}
