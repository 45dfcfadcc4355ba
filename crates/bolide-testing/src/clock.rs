//! The clock of a server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::admin::Admin;
use crate::error::Error;

/// Reads and moves the clock of a server.
///
/// It counts milliseconds and stands still until it is moved. Everything in the server follows it: expiry, `_ts`, TTL indexes.
#[derive(Debug, Clone)]
pub struct Clock {
    admin: Admin,
}

impl Clock {
    pub(crate) fn new(admin: Admin) -> Clock {
        Clock { admin }
    }

    /// The time of the server.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub fn now(&self) -> Result<SystemTime, Error> {
        instant(&self.admin.get("clock")?)
    }

    /// Moves the clock forward by whole milliseconds, a part of one is left out, and returns the new time.
    ///
    /// # Errors
    /// [`Error::Request`], with status 409 if the server runs on the system's clock.
    pub fn advance(&self, by: Duration) -> Result<SystemTime, Error> {
        instant(&self.admin.put("clock", &json!({"advanceMs": milliseconds(by)}))?)
    }

    /// Moves the clock to an instant, forward or back, and returns the new time.
    ///
    /// When it is moved back, time stands still for everything that is stored until it has caught up. An instant before 1970 is refused by the
    /// server.
    ///
    /// # Errors
    /// [`Error::Request`], with status 409 if the server runs on the system's clock.
    pub fn set(&self, to: SystemTime) -> Result<SystemTime, Error> {
        instant(&self.admin.put("clock", &json!({"setMs": epoch_ms(to)}))?)
    }
}

/// Epoch milliseconds of an instant.
fn epoch_ms(instant: SystemTime) -> i64 {
    match instant.duration_since(UNIX_EPOCH) {
        Ok(since) => milliseconds(since),
        Err(before) => -milliseconds(before.duration()),
    }
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn instant(answer: &Value) -> Result<SystemTime, Error> {
    let time = answer["nowMs"]
        .as_u64()
        .and_then(|ms| UNIX_EPOCH.checked_add(Duration::from_millis(ms)));
    time.ok_or_else(|| Error::Request {
        status: None,
        message: format!("the server's clock answers without a time. answer=`{answer}`"),
    })
}

#[cfg(test)]
mod tests;
