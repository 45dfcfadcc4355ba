//! What all operations on a container's items have in common: checks before, headers after.
//!
//! Refusals get the headers too: .NET and Java keep their sessions by those of 404, 409 and 412 (cosmos-rest §9). An item that is not there
//! names no container, as .NET's suite has it.

use std::sync::Arc;

use bolide_core::{ChargedResult, Container, Cost, Refusal, Response};
use bolide_model::{Error, ErrorKind, Result};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::addressing;
use crate::operation::Operation;
use crate::request::Call;
use crate::session::{self, SessionToken};
use crate::status::Failure;
use crate::wire::{Reply, headers};

/// Quota of a container, in the units of the service's headers (kilobytes; -1 is without limit).
pub(super) const RESOURCE_QUOTA: &str =
    "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;";
/// What stands for a container's usage where nobody asked for it to be counted: -1 is no count, and the sizes are none.
const USAGE_UNCOUNTED: &str = "documentSize=0;documentsSize=0;documentsCount=-1;collectionSize=0;";

/// What a write may ask of the index.
const INDEXING_DIRECTIVES: &[&str] = &["Default", "Include", "Exclude"];
/// Forms of answers that a client may ask for.
const CONTENT_FORMATS: &[&str] = &["JsonText", "CosmosBinary", "HybridRow"];

/// Runs an operation inside a container by its handler.
pub(super) async fn run<H>(call: &Call<'_>, handler: H) -> Result<Reply, Failure>
where
    H: AsyncFn(&Call<'_>, &Arc<Container>) -> ChargedResult<Reply>,
{
    // Of a point read, the service says no more than that something is not there. Source: .NET's suite, `CosmosNotFoundTests`.
    let container = match call.operation {
        Operation::ReadItem => addressing::container(call.account(), &call.route),
        _ => addressing::parent_container(call.account(), &call.route),
    }
    .map_err(|error| gone_for_stale_client(call.headers(), error))?;
    let answered = checked(call, &container, handler).await;
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
        add_container_headers(&mut reply, call, &container);
    }
    add_quota_headers(&mut reply);
    add_cost_headers(&mut reply, &cost);
    if reply.status == StatusCode::NOT_FOUND {
        withhold_strange_token(&mut reply, call.headers(), &cost);
    }
    Ok(reply)
}

async fn checked<H>(call: &Call<'_>, container: &Arc<Container>, handler: H) -> ChargedResult<Reply>
where
    H: AsyncFn(&Call<'_>, &Arc<Container>) -> ChargedResult<Reply>,
{
    call.state.options.consistency.check(call.headers())?;
    headers::check_choices(call.headers(), &headers::INDEXING_DIRECTIVE, INDEXING_DIRECTIVES)?;
    headers::check_choices(call.headers(), &headers::CONTENT_FORMAT, CONTENT_FORMATS)?;
    check_intended_rid(call.headers(), container)?;
    let session = SessionToken::of(call.headers())?;
    let answered = handler(call, container).await;
    if call.operation.is_read() {
        check_session(&session, &answered)?;
    }
    answered
}

/// A client that names the resource id it knows the container by has a container that was deleted: it is told so as of any resource. The
/// sub-status for a missing parent would have it look for the container again. Source: the Java SDK's suite.
fn gone_for_stale_client(sent: &HeaderMap, error: Error) -> Error {
    match error.kind {
        ErrorKind::OwnerNotFound if sent.contains_key(&headers::INTENDED_RID) => Error {
            kind: ErrorKind::NotFound,
            ..error
        },
        _ => error,
    }
}

/// An answer with its value turned into another.
pub(super) fn map<T, U>(answer: Response<T>, f: impl FnOnce(T) -> U) -> Response<U> {
    Response {
        value: f(answer.value),
        cost: answer.cost,
    }
}

/// Tells clients that know a container of this name that it is another one now (cosmos-rest §3.5).
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
        Ok(answer) => &answer.cost,
        Err(refusal) => &refusal.cost,
    };
    session.check(&cost.touched).map_err(|error| Refusal {
        error,
        cost: cost.clone(),
    })
}

/// Names the container of an answer.
pub(super) fn add_container_headers(reply: &mut Reply, call: &Call<'_>, container: &Container) {
    let paths = call.state.content_paths.of(container);
    reply.header(&headers::ALT_CONTENT_PATH, paths.alternative);
    reply.header(&headers::CONTENT_PATH, paths.rid);
}

/// What a container may hold, and a stand-in for what it holds, since clients expect the header on every answer.
///
/// The figures themselves are those of reading the container with `x-ms-documentdb-populatequotainfo`. To the second (TTL-253) they take a
/// turn of each range's worker, which no point read should wait for; older ones would count what has expired. And a token for one
/// partition key must not learn how much the others hold.
pub(super) fn add_quota_headers(reply: &mut Reply) {
    reply.fixed(&headers::RESOURCE_QUOTA, RESOURCE_QUOTA);
    reply.fixed(&headers::RESOURCE_USAGE, USAGE_UNCOUNTED);
}

fn add_cost_headers(reply: &mut Reply, cost: &Cost) {
    if cost.charge.0 > 0.0 {
        reply.charge = cost.charge;
    }
    if let Some(position) = session::range_of_answer(&cost.touched) {
        reply.text(&headers::SESSION_TOKEN, session::token(position));
        let newest = HeaderValue::from(position.lsn.0);
        for name in [&headers::LSN, &headers::LLSN, &headers::GLOBAL_COMMITTED_LSN] {
            reply.header(name, newest.clone());
        }
        reply.fixed(&headers::READ_REGIONS, "0");
        reply.fixed(&headers::WRITE_QUORUM, "1");
        reply.fixed(&headers::REPLICA_SET_SIZE, "1");
    }
    if let [position] = cost.touched[..] {
        // Right or absent: Java and .NET refresh their caches on any other value (cosmos-rest §10).
        reply.number(&headers::PARTITION_KEY_RANGE_ID, u64::from(position.range));
    }
}

/// Takes the session token out of a 404 from a range that the client, which knows others, knows nothing of.
///
/// That something is not there gives the client nothing that it would have to see again. The JavaScript SDK's session test reads under a key
/// that its item does not have, and expects to know its item's range only.
fn withhold_strange_token(reply: &mut Reply, sent: &HeaderMap, cost: &Cost) {
    let Ok(session) = SessionToken::of(sent) else { return };
    if session::range_of_answer(&cost.touched).is_some_and(|position| session.is_of_others_than(position.range)) {
        reply.headers.remove(&headers::SESSION_TOKEN);
    }
}
