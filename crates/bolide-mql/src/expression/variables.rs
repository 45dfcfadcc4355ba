//! Variables of the system, and the rules for names of variables.

use bson::{DateTime, Timestamp};

use crate::context::Context;
use crate::error::{Code, Error, Result};

/// `$$NOW`: one instant for a command, from the clock of expiry.
pub(super) fn now(context: &Context) -> DateTime {
    DateTime::from_millis(context.now.0)
}

/// `$$CLUSTER_TIME`.
///
/// # Errors
/// 51144: the deployment has none.
pub(super) fn cluster_time(context: &Context) -> Result<Timestamp> {
    let missing = || Error::new(51144, "Builtin variable '$$CLUSTER_TIME' is not available");
    context.cluster_time.ok_or_else(missing)
}

/// Checks the name of a variable that is read.
///
/// # Errors
/// `FailedToParse`: it is empty or has characters that no name may have.
pub(super) fn check_name_for_read(name: &str) -> Result<()> {
    check(name, |first| first.is_ascii_alphabetic())
}

/// Checks the name of a variable that `$let`, `$map` and the like define: it begins with a small letter, or is `CURRENT`.
///
/// # Errors
/// `FailedToParse`: it is empty, begins with another character, or has characters that no name may have.
pub fn check_name_for_write(name: &str) -> Result<()> {
    if name == "CURRENT" {
        return Ok(());
    }
    check(name, |first| first.is_ascii_lowercase())
}

fn check(name: &str, is_first: fn(char) -> bool) -> Result<()> {
    let failed = |problem: String| Err(Error::new(Code::FAILED_TO_PARSE, problem));
    let Some(first) = name.chars().next() else {
        return failed("empty variable names are not allowed".to_owned());
    };
    if first.is_ascii() && !is_first(first) {
        return failed(format!(
            "'{name}' starts with an invalid character for a user variable name"
        ));
    }
    let is_allowed = |other: &char| !other.is_ascii() || other.is_ascii_alphanumeric() || *other == '_';
    match name.chars().find(|other| !is_allowed(other)) {
        Some(other) => failed(format!(
            "'{name}' contains an invalid character for a variable name: '{other}'"
        )),
        None => Ok(()),
    }
}
