//! Resource tokens: a permission, sealed by the account, for whoever holds it (cosmos-rest §§2.3, 12.1).
//!
//! ```text
//!   type=resource&ver=1.0&sig=<signature>;<grant>;
//! ```
//!
//! Both parts are base64url without padding; the grant is JSON, the signature an HMAC-SHA256 by the primary key. A token says all there is
//! to know, so it holds until it expires, even if its permission is changed or deleted meanwhile, as the service has it.
//! A new account key ends all of them.
//!
//! Server time decides what has expired, a virtual clock's too: a token's time is data, like an item's.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bolide_core::{Account, PermissionMode};
use bolide_model::partition_key::PartitionKey;
use bolide_model::{Error, Result};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::addressing;
use crate::auth::malformed;
use crate::keys::{Access, Keys};
use crate::operation::Operation;
use crate::routes::Route;
use crate::status::{FORBIDDEN, Failure, UNAUTHORIZED};
use crate::wire::{headers, percent, scope};

/// Stands before what is signed, so that no signature of a request is one of a token.
const DOMAIN: &[u8] = b"bolide resource token\n";

/// What a token opens, and until when.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grant {
    pub mode: PermissionMode,
    /// Link of a container, or of something in it.
    pub resource: String,
    /// Only the items of this key, or below it in a hierarchy.
    pub partition_key: Option<PartitionKey>,
    /// The first second of server time in which it opens nothing.
    pub expires: i64,
}

/// The place that a link names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    database: String,
    container: String,
    /// What follows the container, for example `docs` and an id.
    below: Vec<String>,
}

impl Grant {
    /// The token, as an answer shows it.
    pub(crate) fn seal(&self, keys: &Keys) -> String {
        let grant = json!({
            "mode": self.mode.as_str(),
            "resource": self.resource,
            "key": self.partition_key.as_ref().map(PartitionKey::to_header_json),
            "expires": self.expires,
        });
        let grant = URL_SAFE_NO_PAD.encode(grant.to_string());
        let signature = keys.sign(&[DOMAIN, grant.as_bytes()]);
        let signature = URL_SAFE_NO_PAD.encode(signature.as_ref());
        format!("type=resource&ver=1.0&sig={signature};{grant};")
    }

    /// Reads what stands behind `sig=`.
    ///
    /// # Errors
    /// 401 for what is malformed, and what no key of this account has sealed.
    pub(crate) fn open(keys: &Keys, sealed: &str) -> Result<Grant, Failure> {
        let mut parts = sealed.split(';');
        let (Some(signature), Some(grant)) = (parts.next(), parts.next()) else {
            return Err(malformed("a resource token has two parts, each followed by `;`"));
        };
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| malformed("the signature of the resource token is not base64url"))?;
        if keys.signer(&[DOMAIN, grant.as_bytes()], &signature) != Some(Access::Full) {
            return Err(Failure::new(
                UNAUTHORIZED,
                "The input authorization token can't serve the request: the resource token was not issued by this account, or with \
                 a key that it no longer has.",
            ));
        }
        Grant::decode(grant).ok_or_else(|| malformed("the resource token is of another version of this server"))
    }

    fn decode(grant: &str) -> Option<Grant> {
        let grant: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(grant).ok()?).ok()?;
        let partition_key = match grant.get("key")? {
            Value::Null => None,
            key => Some(PartitionKey::from_header(key.as_str()?).ok()?),
        };
        Some(Grant {
            mode: PermissionMode::parse(grant.get("mode")?.as_str()?)?,
            resource: grant.get("resource")?.as_str()?.to_owned(),
            partition_key,
            expires: grant.get("expires")?.as_i64()?,
        })
    }

    /// Checks that the grant opens a request.
    ///
    /// # Errors
    /// 403, with the reason.
    pub(crate) fn check(
        &self,
        account: &Account,
        operation: Operation,
        route: &Route<'_>,
        headers: &HeaderMap,
    ) -> Result<(), Failure> {
        if account.server_time().seconds().0 >= self.expires {
            return Err(forbidden(
                "The authorization token is not valid at the current time: the resource token has expired.",
            ));
        }
        // Every client begins with the account.
        if operation == Operation::ReadAccount {
            return Ok(());
        }
        let scope = Scope::of_link(&self.resource)?;
        if !scope.is_of_container(account, route) {
            return Err(self.elsewhere(operation));
        }
        // What clients have to know of a container to do anything in it.
        if matches!(operation, Operation::ReadContainer | Operation::ListPartitionKeyRanges) {
            return Ok(());
        }
        let below = below_container(route);
        if below.is_empty() || !below.starts_with(&scope.below) {
            return Err(self.elsewhere(operation));
        }
        if self.mode == PermissionMode::Read && !operation.is_read() {
            return Err(forbidden(&format!(
                "a permission to read cannot authorize {}",
                operation.name()
            )));
        }
        self.check_partition_key(operation, headers)
    }

    fn check_partition_key(&self, operation: Operation, headers: &HeaderMap) -> Result<(), Failure> {
        // A plan tells nothing of what the container holds.
        let (Some(granted), false) = (&self.partition_key, operation == Operation::QueryPlan) else {
            return Ok(());
        };
        match scope::partition_key(headers)? {
            Some(key) if key.0.starts_with(&granted.0) => Ok(()),
            Some(_) => Err(forbidden("the permission is for another partition key")),
            None => Err(forbidden(&format!(
                "the permission is for one partition key, which the request has to name in header `{}`",
                headers::PARTITION_KEY
            ))),
        }
    }

    fn elsewhere(&self, operation: Operation) -> Failure {
        forbidden(&format!(
            "the permission cannot authorize {} here. resource=`{}`",
            operation.name(),
            self.resource
        ))
    }
}

fn forbidden(why: &str) -> Failure {
    Failure::new(FORBIDDEN, why)
}

impl Scope {
    /// Reads a link.
    ///
    /// # Errors
    /// `BadRequest` where it names neither a container nor something in it.
    pub(crate) fn of_link(link: &str) -> Result<Scope> {
        let segments: Vec<&str> = link.trim_matches('/').split('/').collect();
        match segments[..] {
            ["dbs", database, "colls", container, ref below @ ..] if below.len() != 1 => Ok(Scope {
                database: database.to_owned(),
                container: container.to_owned(),
                below: below.iter().map(|segment| (*segment).to_owned()).collect(),
            }),
            _ => Err(Error::bad_request(format!(
                "`resource` of a permission must be the link of a container, or of an item or script in one. value=`{link}`"
            ))),
        }
    }

    /// Whether a request is about the container of this place. Either may name it by ids or resource ids.
    fn is_of_container(&self, account: &Account, route: &Route<'_>) -> bool {
        if route.container.is_empty() {
            return false;
        }
        let granted = Route::to_container(self.database.clone(), self.container.clone());
        let rid = |route| addressing::container(account, route).map(|container| container.rid());
        match (rid(&granted), rid(route)) {
            (Ok(granted), Ok(asked)) => granted == asked,
            // Where there is nothing, the operation says so.
            _ => granted.database == route.database && granted.container == route.container,
        }
    }
}

/// The segments of a path that follow the container, decoded.
fn below_container(route: &Route<'_>) -> Vec<String> {
    let segments = route.path.split('/').skip(4);
    segments
        .map(|segment| percent::decode_lossy(segment).into_owned())
        .collect()
}

#[cfg(test)]
mod tests;
