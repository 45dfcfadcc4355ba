//! `/_bolide/clock`: shows the clock, and moves a virtual one.

use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Admin, ok};
use crate::wire::Reply;

/// The last millisecond of the year 9999.
const LAST_MILLIS: i64 = 253_402_300_799_999;

pub(super) async fn show(admin: &Admin<'_>) -> Result<Reply> {
    let now = admin.state.account.shown_time().await;
    let mode = if admin.state.options.clock.is_virtual() {
        "virtual"
    } else {
        "system"
    };
    Ok(ok(&json!({"mode": mode, "nowMs": now.0, "now": rfc3339(now)})))
}

/// Moves the clock, and shows it.
pub(super) async fn set(admin: &Admin<'_>) -> Result<Reply> {
    let clock = &admin.state.options.clock;
    if !clock.is_virtual() {
        let message = "the clock can only be moved when the server was started with --virtual-clock";
        return Err(Error::new(ErrorKind::WrongMode, message));
    }
    let members = admin.members()?;
    match (milliseconds(&members, "setMs")?, milliseconds(&members, "advanceMs")?) {
        (Some(to), None) => clock.set(instant(Some(to))?),
        (None, Some(by)) => {
            // Checked before the clock is moved; no other request moves it meanwhile.
            instant(clock.now().0.checked_add(by))?;
            clock.advance(by)
        }
        _ => return Err(Error::bad_request("the body must have either `setMs` or `advanceMs`")),
    };
    admin.state.account.wake_change_streams();
    show(admin).await
}

fn milliseconds(members: &Map<String, Value>, name: &str) -> Result<Option<i64>> {
    let Some(value) = members.get(name) else {
        return Ok(None);
    };
    value
        .as_i64()
        .map(Some)
        .ok_or_else(|| Error::bad_request(format!("`{name}` must be a whole number of milliseconds")))
}

/// A valid instant: from 1970 to the end of the year 9999, as dates are written.
fn instant(at: Option<i64>) -> Result<UnixMillis> {
    let at = at.filter(|at| (0..=LAST_MILLIS).contains(at)).map(UnixMillis);
    at.ok_or_else(|| Error::bad_request("the clock can only be moved to a time from 1970 to 9999"))
}

/// The instant in RFC 3339; `null` outside the years that the format supports.
fn rfc3339(at: UnixMillis) -> Option<String> {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.0) * 1_000_000).ok()?;
    at.format(&Rfc3339).ok()
}

#[cfg(test)]
mod tests;
