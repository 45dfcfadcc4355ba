//! The steps: each turns its arguments into requests, and the responses into a result.

mod admin;
mod containers;
mod feeds;
mod items;
mod mongo;
mod scripts;

pub use containers::create_database;

use serde_json::Value;

use super::expect::{SavedValues, StepResult};
use super::scenario::Action;
use super::session::Session;
use super::wire::Response;
use crate::Result;

/// Carries a step out.
///
/// # Errors
/// If there is no result: a broken connection, a timeout, a body that is not JSON, a label without values.
pub fn run(session: &mut Session, action: &Action) -> Result<StepResult> {
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
        Action::Mongo(command) => mongo::run(session, command),
    }
}

/// The common part of all results: the status, the saved values, and the server's message if it refused.
fn answer(response: &Response) -> StepResult {
    let kept = SavedValues {
        etag: response.header("etag").map(str::to_owned),
        charge: response
            .header("x-ms-request-charge")
            .and_then(|charge| charge.parse().ok()),
        ..SavedValues::default()
    };
    let message = if response.succeeded() { None } else { response.message() };
    StepResult {
        kept,
        message,
        ..StepResult::of_status(response.status())
    }
}

/// A result with the returned resource as its `body`.
fn resource(response: &Response) -> Result<StepResult> {
    Ok(answer(response).with("body", response.json()?))
}

/// A result with every member of the returned JSON as a field.
fn figures(response: &Response) -> Result<StepResult> {
    let mut answer = answer(response);
    if let (true, Value::Object(members)) = (response.succeeded(), response.json()?) {
        answer.fields.extend(members);
    }
    Ok(answer)
}
