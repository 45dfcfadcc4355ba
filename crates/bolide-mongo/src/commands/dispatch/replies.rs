//! What every reply has besides the command's own results: times, errors with their labels, errors of write concerns.

use bolide_mql::{Code, Error};
use bson::raw::cstr;
use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

use super::super::context::{CommandContext, Reply};
use super::super::table::Rights;
use super::CompleteReply;
use super::labels::Labels;
use crate::state::MongoState;

/// Codes that tell a client that the server is not the primary any more.
const NOT_PRIMARY: [i32; 6] = [189, 10058, 10107, 11602, 13435, 13436];
/// Codes that tell a client that the server stops.
const SHUTDOWN: [i32; 2] = [91, 11600];

/// Adds what a client must know although its write succeeded. A client that asked for no acknowledgement gets none.
pub fn add_write_concern_error(
    context: &CommandContext<'_>,
    fault: Option<RawDocumentBuf>,
    labels: &Labels,
    reply: &mut Reply,
) {
    let concern = &context.global.write_concern;
    let is_write_command = context.command.rights == Rights::Write;
    if is_write_command && concern.is_unacknowledged() {
        reply.body = RawDocumentBuf::new();
        return;
    }
    let is_write = is_write_command || reply.has_written;
    let error = fault.or_else(|| concern.error().filter(|_| is_write));
    if let Some(error) = error {
        let code = Code(error.get_i32("code").unwrap_or_default());
        append_labels(&mut reply.body, &labels.of_write_concern(code));
        reply.body.append(cstr!("writeConcernError"), error);
        append_topology_version(context.state, &mut reply.body, code);
    }
}

/// The document of an error.
pub fn error_document(state: &MongoState, error: &Error, labels: &Labels) -> RawDocumentBuf {
    let mut document = rawdoc! {
        "ok": 0.0,
        "errmsg": error.message.as_str(),
        "code": error.code.0,
        "codeName": error.code.shown_name(),
    };
    let details = error.details.as_deref();
    for (key, value) in details.into_iter().flat_map(|details| details.iter()).flatten() {
        document.append(key, value);
    }
    append_labels(&mut document, &labels.of(error.code));
    append_topology_version(state, &mut document, error.code);
    document
}

/// Lets the client know whether it has seen a change of the server's state already. The end of a server is a change only once it has begun: before that the
/// code comes from a fail point, and the client must believe it.
fn append_topology_version(state: &MongoState, document: &mut RawDocumentBuf, code: Code) {
    if NOT_PRIMARY.contains(&code.0) || SHUTDOWN.contains(&code.0) && state.is_stopping() {
        document.append(cstr!("topologyVersion"), state.topology_version().to_document());
    }
}

fn append_labels(document: &mut RawDocumentBuf, labels: &[&str]) {
    if labels.is_empty() {
        return;
    }
    let mut array = RawArrayBuf::new();
    for label in labels {
        array.push(*label);
    }
    document.append(cstr!("errorLabels"), array);
}

/// Adds the times that a member of a replica set reports.
pub async fn with_times(state: &MongoState, mut reply: CompleteReply) -> CompleteReply {
    let time = state.operation_time(state.account.shown_time().await);
    let signature = bson::Binary {
        subtype: bson::spec::BinarySubtype::Generic,
        bytes: vec![0; 20],
    };
    let cluster_time = rawdoc! {
        "clusterTime": time,
        "signature": { "hash": signature, "keyId": 0_i64 },
    };
    reply.body.append(cstr!("$clusterTime"), cluster_time);
    reply.body.append(cstr!("operationTime"), time);
    reply
}
