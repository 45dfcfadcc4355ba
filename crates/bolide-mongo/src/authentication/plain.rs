//! The mechanism PLAIN: the password itself. Only over TLS.

use std::sync::Arc;

use bolide_mql::Result;

use super::{Credentials, Identity, Principal, SaslStart, failed};

/// Its name.
pub const NAME: &str = "PLAIN";

/// Authenticates by `<authorization id> NUL <user> NUL <password>`.
///
/// # Errors
/// `AuthenticationFailed`.
pub fn authenticate(credentials: &Credentials, start: &SaslStart<'_>) -> Result<Principal> {
    let mut parts = start.payload.splitn(3, |byte| *byte == 0);
    let [authorization, user, password] = [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default);
    let user = std::str::from_utf8(user).map_err(|_| failed())?;
    if !authorization.is_empty() && authorization != user.as_bytes() {
        return Err(failed());
    }
    let access = credentials.by_password(user, password).ok_or_else(failed)?;
    Ok(Principal {
        user: Arc::from(user),
        database: start.database.to_owned(),
        identity: Identity::Key(access),
    })
}
