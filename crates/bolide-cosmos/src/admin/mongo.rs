//! `dbs/{db}/mongo`: a command of MongoDB as Extended JSON, for the data explorer and for scripts without a driver.

use bolide_model::{Error, ErrorKind, Result};
use http::StatusCode;
use serde_json::json;

use super::{Admin, segments_of};
use crate::mongo_commands::CommandFailure;
use crate::wire::{Reply, percent};

/// Runs a command. The route itself needs a key for reading; the command needs the rights of its row in the table of commands.
pub(super) async fn run(admin: &Admin<'_>) -> Result<Reply> {
    let commands = admin.state.options.mongo.as_ref();
    let commands = commands.ok_or_else(|| {
        let message = "this server has no front end for MongoDB: it runs with --no-mongo";
        Error::new(ErrorKind::WrongMode, message)
    })?;
    let access = admin.access.ok_or_else(|| Error::internal("the sender is not known"))?;
    let segment = segments_of(admin.path).get(1).copied().unwrap_or_default();
    let database = percent::decode(segment);
    let database = database.ok_or_else(|| Error::bad_request("the name of the database is not UTF-8"))?;
    let reply = commands.run(database.into_owned(), admin.body.clone(), access).await?;
    let mut answer = match reply.failure {
        None => Reply::json(StatusCode::OK, reply.body),
        Some(failure) => refusal(&failure),
    };
    answer.charge = reply.charge;
    Ok(answer)
}

/// A refusal in the form of this API, with the number of the command's error.
fn refusal(failure: &CommandFailure) -> Reply {
    let body = json!({"code": failure.name, "message": failure.message, "mongoCode": failure.code});
    Reply::value(status_of(failure.code), &body)
}

/// The status for an error of a command.
fn status_of(code: i32) -> StatusCode {
    match code {
        // InternalError.
        1 => StatusCode::INTERNAL_SERVER_ERROR,
        // Unauthorized.
        13 => StatusCode::FORBIDDEN,
        // NamespaceNotFound, IndexNotFound, CursorNotFound.
        26 | 27 | 43 => StatusCode::NOT_FOUND,
        // NamespaceExists, DuplicateKey.
        48 | 11000 => StatusCode::CONFLICT,
        // MaxTimeMSExpired.
        50 => StatusCode::REQUEST_TIMEOUT,
        // Over the provisioned throughput.
        16500 => StatusCode::TOO_MANY_REQUESTS,
        // ShutdownInProgress, NotWritablePrimary, InterruptedAtShutdown, InterruptedDueToReplStateChange.
        91 | 10107 | 11600 | 11602 => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    }
}
