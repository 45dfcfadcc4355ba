//! The account: the clocks, the key, and the endpoint with which SDKs go on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_model::account_key::AccountKey;
use bolide_model::time::wall_clock;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::direct;
use super::report::Report;
use super::server::{self, Server};
use crate::endpoint::{self, HttpAnswer, Target};

/// Signatures are refused if the clocks differ by more than this.
const MAX_SKEW_SECONDS: i64 = 15 * 60;
/// A difference that is worth a warning.
const SKEW_SECONDS: i64 = 60;

/// The date of a request and of an answer (RFC 9110 §5.6.7).
const HTTP_DATE: &[BorrowedFormatItem<'_>] =
    format_description!("[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT");

/// Checks what SDKs do first: they read the account, signed.
pub fn check(report: &mut Report, target: &Target, server: &Server, key: &AccountKey) {
    check_clocks(report, server.date.as_deref(), now());
    match get(target, "/", "", key) {
        None => report.fail(
            "key",
            "the server ended the connection of a signed request",
            "look into its log",
        ),
        Some(answer) => judge(report, target, &answer, key),
    }
}

fn judge(report: &mut Report, target: &Target, answer: &HttpAnswer, key: &AccountKey) {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let message = body["message"].as_str().unwrap_or_default();
    let message = message.lines().next().unwrap_or_default();
    match answer.status {
        200 => {
            let which = if key.is_well_known() {
                "the emulator's well-known key"
            } else {
                "the key"
            };
            report.ok("key", format!("{which} signs requests that the server accepts"));
            check_advertised(report, target, &body);
            direct::check(report, target, key);
        }
        401 if key.is_well_known() => report.fail(
            "key",
            "the server does not accept the emulator's well-known key",
            "pass the key it was started with, here as --key-file FILE and in clients",
        ),
        401 => report.fail(
            "key",
            "the server does not accept this key",
            "compare it with the one the server was started with (--key-file, BOLIDE_KEY), without blanks or line ends",
        ),
        403 => report.fail(
            "key",
            format!("the signature is refused ({message})"),
            "set both clocks, for example with NTP",
        ),
        status => report.fail(
            "key",
            format!("the account cannot be read ({status} {message})"),
            "look into the server's log",
        ),
    }
}

/// Compares the server's clock with this machine's: signatures have a date.
fn check_clocks(report: &mut Report, date: Option<&str>, now: OffsetDateTime) {
    let date = date.and_then(|date| time::PrimitiveDateTime::parse(date, HTTP_DATE).ok());
    let Some(date) = date else { return };
    let seconds = (date.assume_utc() - now).whole_seconds();
    let text = format!("the server's clock differs from this machine's by {seconds} seconds");
    match seconds.abs() {
        0..=SKEW_SECONDS => report.ok("clocks", "the server's clock and this machine's agree"),
        off => report.problem(
            off > MAX_SKEW_SECONDS,
            "clocks",
            text,
            "signatures are refused from 900 seconds on; set both clocks, for example with NTP",
        ),
    }
}

/// Checks that SDKs reach the endpoint that the account names: they send everything there.
fn check_advertised(report: &mut Report, target: &Target, account: &Value) {
    let Some(url) = account["writableLocations"][0]["databaseAccountEndpoint"].as_str() else {
        return;
    };
    let Ok(advertised) = Target::parse("the server's endpoint", url.trim_end_matches('/')) else {
        report.fail(
            "endpoint",
            format!("SDKs are told to go on with `{url}`, which is no endpoint"),
            "correct --public-endpoint",
        );
        return;
    };
    if (&advertised.host, advertised.port) == (&target.host, target.port) {
        report.ok("endpoint", "SDKs go on with the same endpoint");
        return;
    }
    let is_reached = advertised
        .addresses()
        .is_ok_and(|all| all.into_iter().any(|one| endpoint::connect(one).is_ok()));
    if is_reached {
        report.ok("endpoint", format!("SDKs go on with {url}, which answers"));
    } else {
        report.fail(
            "endpoint",
            format!("SDKs are told to go on with {url}, and nobody answers there"),
            "start the server with --public-endpoint and the URL of clients, or let the proxy keep the Host header",
        );
    }
}

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(wall_clock().0 / 1000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// A signed request for a resource of this type, without a link. `None`: no answer of HTTP.
pub(super) fn get(target: &Target, path: &str, resource_type: &str, key: &AccountKey) -> Option<HttpAnswer> {
    let date = now().format(HTTP_DATE).ok()?;
    let headers = [
        ("authorization", authorization(key, resource_type, &date)),
        ("x-ms-date", date),
        ("x-ms-version", "2020-07-15".to_owned()),
    ];
    HttpAnswer::parse(&server::get(target, path, &headers).ok()?)
}

/// The signature of a `GET` of a type of resource, without a link, at a date. Source: cosmos-rest §1.2.
fn authorization(key: &AccountKey, resource_type: &str, date: &str) -> String {
    let payload = format!("get\n{resource_type}\n\n{}\n\n", date.to_ascii_lowercase());
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key.bytes()), payload.as_bytes());
    let token = format!("type=master&ver=1.0&sig={}", STANDARD.encode(signature));
    utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests;
