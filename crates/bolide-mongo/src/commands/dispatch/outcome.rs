//! What is kept of a command when it has ended.

use std::time::{Duration, Instant};

use bolide_core::{AnsweredRequest, Protocol};
use bolide_model::RequestUnits;
use bolide_mql::{Error, Result};
use bson::RawDocument;

use super::{Call, Ended, Request, target};
use crate::client::{Client, RequestStatistics};
use crate::commands::context::{CommandContext, Reply};
use crate::commands::table::Rights;
use crate::operations;
use crate::state::MongoState;

impl Call<'_> {
    /// Keeps what the command consumed, and ends its transaction if it failed.
    pub(super) fn conclude(&self, context: &CommandContext<'_>, begun: Instant, result: &Result<Reply>) {
        if self.command.name != "getLastRequestStatistics" {
            self.client.note_request(RequestStatistics {
                command: self.command.name,
                charge: context.consumed.sum(),
                duration: self.state.monotonic().since(begun),
            });
        }
        if let Some(transaction) = &context.transaction
            && result.as_ref().map_or(true, |reply| reply.aborts_transaction)
        {
            transaction.fail();
        }
    }

    /// Keeps the command with its outcome, for people who look at the server: none of those that only keep a connection up, and none of the admin API.
    pub(super) fn note(&self, begun: Instant, charge: RequestUnits, result: &Result<Reply, Ended>) {
        if self.client.key().is_some() {
            return;
        }
        let code = match result {
            Ok(reply) => first_write_error(&reply.body),
            Err(Ended::Error(error)) => error.code.0,
            Err(Ended::Close) => operations::interrupted().code.0,
        };
        if self.command.rights == Rights::None && code == 0 {
            return;
        }
        let duration = self.state.monotonic().since(begun);
        note(self.state, (self.command.name, &self.namespace), code, charge, duration);
    }
}

/// Keeps a command that is not known, or has no valid database.
pub(super) fn note_unknown(state: &MongoState, client: &Client, request: Request<'_>, error: &Error) {
    if client.key().is_some() {
        return;
    }
    let document = request.message.command();
    let database = request.database.or(document.get_str("$db").ok());
    let target = (target::name(document), database.unwrap_or_default());
    note(state, target, error.code.0, RequestUnits(0.0), Duration::ZERO);
}

fn note(state: &MongoState, (name, namespace): (&str, &str), code: i32, charge: RequestUnits, duration: Duration) {
    state.options.recent_requests.note(&AnsweredRequest {
        protocol: Protocol::Mongo,
        at: state.account.server_time(),
        method: name,
        path: namespace,
        operation: None,
        status: code.unsigned_abs(),
        sub_status: 0,
        charge,
        duration,
    });
}

/// The code of the first statement that failed in a command that did not fail as a whole; 0 without one.
fn first_write_error(reply: &RawDocument) -> i32 {
    let errors = reply.get_array("writeErrors").ok();
    let first = errors.and_then(|errors| errors.into_iter().next()?.ok());
    let code = first.and_then(|first| first.as_document()?.get_i32("code").ok());
    code.unwrap_or(0)
}
