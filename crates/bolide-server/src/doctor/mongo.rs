//! The port for MongoDB's drivers: whether it answers `hello`.

use std::io::{self, Read as _, Write as _};

use bolide_mongo::message;
use bson::{RawDocumentBuf, rawdoc};

use super::report::Report;
use crate::endpoint::Target;

const TOPIC: &str = "mongodb";
/// The head of a reply: its header, flags, and the kind of its section.
const HEAD_BYTES: usize = 21;
/// Maximum length of a reply to `hello`.
const REPLY_BYTES: usize = 64 * 1024;

/// Checks the port on the endpoint's host.
pub fn check(report: &mut Report, target: &Target, port: u16) {
    let at = Target { port, ..target.clone() };
    let place = at.authority();
    if at.connect().is_err() {
        report.warn(
            TOPIC,
            format!("nobody answers at {place}"),
            "right with --no-mongo; otherwise give the server's port as --mongo-port here and in clients",
        );
        return;
    }
    match hello(&at) {
        Ok(reply) => {
            let set = reply.get_str("setName").unwrap_or_default();
            report.ok(TOPIC, format!("{place} answers hello (replicaSet={set})"));
        }
        Err(error) => report.fail(
            TOPIC,
            format!("another program has {place} ({error})"),
            "start the server with another --mongo-port, and use it in clients",
        ),
    }
}

fn hello(at: &Target) -> io::Result<RawDocumentBuf> {
    let mut stream = at.connect()?;
    stream.write_all(&message::op_msg(1, 0, 0, &rawdoc! {"hello": 1, "$db": "admin"}))?;
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let rest = usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_sub(HEAD_BYTES));
    let rest = rest.filter(|rest| *rest <= REPLY_BYTES);
    let mut body = vec![0; rest.ok_or_else(|| io::Error::other("what it answers is no reply"))?];
    stream.read_exact(&mut body)?;
    let reply = RawDocumentBuf::from_bytes(body).map_err(io::Error::other)?;
    match reply.get_bool("isWritablePrimary") {
        Ok(_) => Ok(reply),
        Err(_) => Err(io::Error::other("its reply is not that to hello")),
    }
}
