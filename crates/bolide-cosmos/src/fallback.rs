//! Responses of a server that cannot call its [`CosmosService`](crate::CosmosService).

use std::time::Duration;

use http::{Request, Response, StatusCode};

use crate::common_headers::new_activity_id;
use crate::listener::Purpose;
use crate::status::{self, Failure};
use crate::wire::{Payload, Reply, headers};
use crate::{admin, health};

/// When to try again while the account is being replaced, or there are too many requests.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// While the store is being recovered: health checks return "starting", everything else is unavailable.
pub fn starting<B>(request: &Request<B>, purpose: Purpose) -> Response<Payload> {
    if purpose == Purpose::Health {
        let checked = health::answer(request.method(), request.uri().path(), &admin::starting(), false);
        return checked.map_or_else(|refused| failure(&refused), Reply::into_response);
    }
    if request.uri().path() == "/_bolide/health" {
        return Reply::value(status::UNAVAILABLE.http, &admin::starting()).into_response();
    }
    failure(&Failure::new(
        status::UNAVAILABLE,
        "the server is starting; the store is being recovered",
    ))
}

/// While the account's content is being replaced by a snapshot, and that takes unusually long. `reason`: why it will not end by itself.
pub fn replacing(reason: Option<&str>) -> Response<Payload> {
    let message = reason.unwrap_or("the account is being replaced by a snapshot");
    let mut refusal = Failure::new(status::UNAVAILABLE, message);
    refusal.retry_after = Some(RETRY_AFTER);
    failure(&refusal)
}

/// In direct mode, while the store is being recovered or the account replaced: clients take it for a replica that has moved, and come again for half a minute.
pub fn not_here() -> Response<Payload> {
    failure(&Failure::new(
        status::GONE,
        "the server is starting, or its account is being replaced",
    ))
}

/// Other servers of the store have as many connections as they may.
pub fn too_many_servers() -> Response<Payload> {
    failure(&Failure::new(
        status::UNAVAILABLE,
        "other servers have too many connections to this one",
    ))
}

/// There are as many requests under way as there may be. This one was not carried out.
pub fn too_many_requests() -> Response<Payload> {
    let mut refusal = Failure::new(status::TOO_MANY_REQUESTS, "too many requests are under way");
    refusal.retry_after = Some(RETRY_AFTER);
    failure(&refusal)
}

/// After a panic.
pub fn panicked() -> Response<Payload> {
    failure(&Failure::new(
        status::INTERNAL,
        "the request ran into a bug of the server; its log has the details",
    ))
}

/// The head of the request was invalid, and the listener has chosen a status.
pub fn unreadable(status: StatusCode) -> Response<Payload> {
    let (status, message) = match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => (
            status::HEADERS_TOO_LARGE,
            "the request's line and headers are larger than this server reads at all, more than 100 headers, or with a \
             length that no body has",
        ),
        StatusCode::URI_TOO_LONG => (status::URI_TOO_LONG, "the request's path is too long"),
        _ => (
            status::BAD_REQUEST,
            "the request's line or one of its headers is not as HTTP/1.1 has it",
        ),
    };
    failure(&Failure::new(status, message))
}

fn failure(failure: &Failure) -> Response<Payload> {
    let activity_id = new_activity_id();
    let mut reply = Reply::failure(failure, activity_id.to_str().unwrap_or_default());
    reply.header(&headers::ACTIVITY_ID, activity_id);
    reply.into_response()
}

#[cfg(test)]
mod tests;
