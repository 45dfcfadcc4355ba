//! Direct mode: where clients of .NET and Java send their requests for items, and whether they are taken there.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use bolide_model::account_key::AccountKey;
use bolide_rntbd::context::ContextRequest;
use bolide_rntbd::frame::{Head, LENGTH_BYTES, head_rest};
use rustls::RootCertStore;
use serde_json::Value;

use super::account;
use super::report::Report;
use crate::endpoint::Target;
use crate::tls_client::handshake;

const TOPIC: &str = "direct mode";
/// The longest answer to the first frame.
const ANSWER_BYTES: usize = 4096;
/// What is left to set in clients.
const CERTIFICATE: &str = "its certificate is left to be trusted: `bolide trust`, Java: `bolide trust --keystore` or \
                           -DCOSMOS.EMULATOR_SERVER_CERTIFICATE_VALIDATION_DISABLED=true, .NET: also `DisableServerCertificateValidation=True` in the \
                           connection string";
const GATEWAY_MODE: &str = "set .NET and Java clients to gateway mode (ConnectionMode.Gateway, .gatewayMode())";

/// Checks what these SDKs do by default.
pub fn check(report: &mut Report, target: &Target, key: &AccountKey) {
    let answer = account::get(
        target,
        "//addresses/?$resolveFor=dbs&$filter=protocol%20eq%20rntbd",
        "dbs",
        key,
    );
    let Some(answer) = answer.filter(|answer| answer.status == 200) else {
        return report.note(TOPIC, format!("not served, as with --no-direct: {GATEWAY_MODE}"));
    };
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let url = body["Addresss"][0]["physcialUri"].as_str().unwrap_or_default();
    let authority = url.strip_prefix("rntbd://").and_then(|rest| rest.split('/').next());
    let told = authority.and_then(|authority| Target::parse(TOPIC, &format!("https://{authority}")).ok());
    let Some(told) = told else {
        return report.warn(
            TOPIC,
            format!("clients are told to use `{url}`, which is no address"),
            GATEWAY_MODE,
        );
    };
    let place = told.authority();
    match told.connect().and_then(|stream| negotiate(stream, &told.host)) {
        Ok(()) => report.ok(TOPIC, format!("served at {place}; {CERTIFICATE}")),
        Err(error) => report.warn(
            TOPIC,
            format!("clients are told to use {place}, where nobody takes frames ({error})"),
            format!(
                "publish this port, or start the server with --advertise-host or --public-endpoint; or {GATEWAY_MODE}"
            ),
        ),
    }
}

/// Sends the first frame of a connection, and reads the answer.
fn negotiate(stream: TcpStream, host: &str) -> io::Result<()> {
    let mut stream = handshake(stream, host, RootCertStore::empty())?.stream;
    let context = ContextRequest {
        activity_id: [0; 16],
        protocol_version: 1,
        client_version: "2020-07-15".to_owned(),
        user_agent: "bolide doctor".to_owned(),
    };
    let context = context
        .write()
        .ok_or_else(|| io::Error::other("the frame is too long"))?;
    stream.write_all(&context)?;
    stream.flush()?;
    let mut length = [0; LENGTH_BYTES];
    stream.read_exact(&mut length)?;
    let mut head = vec![0; head_rest(length, ANSWER_BYTES).map_err(io::Error::other)?];
    stream.read_exact(&mut head)?;
    match Head::read(head.into()).map_err(io::Error::other)?.status() {
        200 => Ok(()),
        status => Err(io::Error::other(format!("status {status}"))),
    }
}
