//! The steps: each turns its arguments into requests and what comes back into an answer.

mod admin;
mod containers;
mod feeds;
mod items;
mod scripts;

pub use containers::create_database;

use serde_json::Value;

use super::expect::{Answer, Kept};
use super::scenario::Action;
use super::session::Session;
use super::wire::Response;
use crate::Result;

/// Carries a step out.
///
/// # Errors
/// If there is no answer to judge: a broken connection, a time-out, a body that is not JSON, a label that keeps nothing.
pub fn run(session: &mut Session, action: &Action) -> Result<Answer> {
    match action {
        Action::Clock(clock) => session.set_clock(clock),
        Action::Restart(restart) => session.restart(restart),
        Action::Fault(fault) => admin::fault(session, fault),
        Action::ContainerCreate(definition) => containers::create(session, definition),
        Action::ContainerReplace(definition) => containers::replace(session, definition),
        Action::ContainerRead(container) => containers::read(session, container),
        Action::ContainerDelete(container) => containers::delete(session, container),
        Action::Usage(of) => containers::usage(session, of),
        Action::ItemCreate(create) => items::create(session, create),
        Action::ItemUpsert(upsert) => items::upsert(session, upsert),
        Action::ItemReplace(replace) => items::replace(session, replace),
        Action::ItemPatch(patch) => items::patch(session, patch),
        Action::ItemRead(read) => items::read(session, read),
        Action::ItemDelete(delete) => items::delete(session, delete),
        Action::Query(query) => feeds::query(session, query),
        Action::ReadFeed(of) => feeds::read_feed(session, of),
        Action::ReadMany(read) => feeds::read_many(session, read),
        Action::ChangeFeed(feed) => feeds::change_feed(session, feed),
        Action::Batch(batch) => scripts::batch(session, batch),
        Action::StoredProcedure(procedure) => scripts::stored_procedure(session, procedure),
        Action::Purge(purge) => admin::purge(session, purge),
        Action::Stats(of) => admin::stats(session, of),
        Action::Verify(of) => admin::verify(session, of),
        Action::Load(load) => admin::load(session, load),
        Action::Import(import) => admin::import(session, import),
    }
}

/// The answer every step has in common: the status, what labels keep, and the server's words if it refused.
fn answer(response: &Response) -> Answer {
    let kept = Kept {
        etag: response.header("etag").map(str::to_owned),
        charge: response
            .header("x-ms-request-charge")
            .and_then(|charge| charge.parse().ok()),
        continuation: None,
    };
    let message = if response.succeeded() { None } else { response.message() };
    Answer {
        kept,
        message,
        ..Answer::of_status(response.status())
    }
}

/// An answer with the resource that came back as its `body`.
fn resource(response: &Response) -> Result<Answer> {
    Ok(answer(response).with("body", response.json()?))
}

/// An answer with every member of the JSON that came back as a field of its own.
fn figures(response: &Response) -> Result<Answer> {
    let mut answer = answer(response);
    if let (true, Value::Object(members)) = (response.succeeded(), response.json()?) {
        answer.fields.extend(members);
    }
    Ok(answer)
}
