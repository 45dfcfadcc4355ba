//! Resource tokens: a permission in a form that the account has signed (cosmos-rest §§2.3, 12.1).
//!
//! ```text
//!   type=resource&ver=1.0&sig=<signature>;<grant>;
//! ```
//!
//! Both parts are base64url without padding; the grant is JSON, the signature an HMAC-SHA256 by the primary key. A token contains all its rights, so
//! it is valid until it expires, even if its permission is changed or deleted meanwhile, as in the service. A new account key invalidates all tokens.
//!
//! A token belongs to the container that its link named when it was made, by resource id: it is not valid for a container created later with the same
//! name. Inside the container a link by names refers to names: an item deleted and created again with the same id is still covered.
//!
//! Server time decides expiry, also with a virtual clock: a token's time is data, like an item's.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bolide_core::{Account, Container, PermissionMode};
use bolide_model::account_key::Access;
use bolide_model::partition_key::PartitionKey;
use bolide_model::rid::{ChildRid, ContainerRid, ItemRid};
use bolide_model::{Error, ErrorKind, Result};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::addressing;
use crate::keys::Keys;
use crate::operation::{Bound, Operation};
use crate::routes::{PathKind, Route};
use crate::status::{FORBIDDEN, Failure, UNAUTHORIZED};
use crate::wire::{headers, scope};

/// Prefix of the signed text, so that no signature of a request is valid for a token.
const DOMAIN: &[u8] = b"bolide resource token\n";

/// The rights of a token, and their expiry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grant {
    pub mode: PermissionMode,
    /// Link of a container, or of something in it.
    pub resource: String,
    /// The container that the link named when the token was made; `None`: there was none, and the token is never valid.
    pub container: Option<ContainerRid>,
    /// Limits the token to the items of this key, or below it in a hierarchy.
    pub partition_key: Option<PartitionKey>,
    /// The first second of server time in which it is not valid.
    pub expires: i64,
}

/// The resource that a link names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceLink {
    database: String,
    container: String,
    /// What follows the container, for example `docs` and an id.
    below: Vec<String>,
}

impl Grant {
    /// The token as text, for a response.
    pub(crate) fn seal(&self, keys: &Keys) -> String {
        let grant = json!({
            "mode": self.mode.as_str(),
            "resource": self.resource,
            "container": self.container.map(|rid| rid.to_string()),
            "key": self.partition_key.as_ref().map(PartitionKey::to_header_json),
            "expires": self.expires,
        });
        let grant = URL_SAFE_NO_PAD.encode(grant.to_string());
        let signature = keys.sign(&[DOMAIN, grant.as_bytes()]);
        let signature = URL_SAFE_NO_PAD.encode(signature.as_ref());
        format!("type=resource&ver=1.0&sig={signature};{grant};")
    }

    /// Parses the text after `sig=`.
    ///
    /// # Errors
    /// 401 if it is malformed, or not signed by a key of this account.
    pub(crate) fn open(keys: &Keys, sealed: &str) -> Result<Grant, Failure> {
        let mut parts = sealed.split(';');
        let (Some(signature), Some(grant)) = (parts.next(), parts.next()) else {
            return Err(Failure::malformed_authorization(
                "a resource token has two parts, each followed by `;`",
            ));
        };
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| Failure::malformed_authorization("the signature of the resource token is not base64url"))?;
        if keys.signer(&[DOMAIN, grant.as_bytes()], &signature) != Some(Access::Full) {
            return Err(Failure::new(
                UNAUTHORIZED,
                "The input authorization token can't serve the request: the resource token was not issued by this account, or with \
                 a key that it no longer has.",
            ));
        }
        Grant::decode(grant)
            .ok_or_else(|| Failure::malformed_authorization("the resource token is of another version of this server"))
    }

    fn decode(grant: &str) -> Option<Grant> {
        let grant: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(grant).ok()?).ok()?;
        let partition_key = match grant.get("key")? {
            Value::Null => None,
            key => Some(PartitionKey::from_header(key.as_str()?).ok()?),
        };
        let container = match grant.get("container")? {
            Value::Null => None,
            rid => Some(ContainerRid::parse(rid.as_str()?)?),
        };
        Some(Grant {
            container,
            mode: PermissionMode::parse(grant.get("mode")?.as_str()?)?,
            resource: grant.get("resource")?.as_str()?.to_owned(),
            partition_key,
            expires: grant.get("expires")?.as_i64()?,
        })
    }

    /// Checks that the grant is one for something in a container, whose addresses its holder may know then.
    ///
    /// # Errors
    /// 403, with the reason.
    pub(crate) fn check_container(&self, account: &Account, container: ContainerRid) -> Result<(), Failure> {
        self.check_expiry(account)?;
        match self.container == Some(container) {
            true => Ok(()),
            false => Err(forbidden("the resource token is for another container")),
        }
    }

    fn check_expiry(&self, account: &Account) -> Result<(), Failure> {
        if account.server_time().seconds().0 >= self.expires {
            return Err(forbidden(
                "The authorization token is not valid at the current time: the resource token has expired.",
            ));
        }
        Ok(())
    }

    /// Checks that the grant allows a request. Discloses nothing about existing resources: everything outside the grant is forbidden.
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
        self.check_expiry(account)?;
        let link = ResourceLink::parse(&self.resource)?;
        let bound = self.bound(&link);
        let needed = operation
            .rights()
            .token(bound)
            .ok_or_else(|| self.elsewhere(operation))?;
        if needed == PermissionMode::All && self.mode == PermissionMode::Read {
            return Err(forbidden(&format!(
                "a permission to read cannot authorize {}",
                operation.name()
            )));
        }
        // The account is not in any container.
        if operation == Operation::ReadAccount {
            return Ok(());
        }
        let container = self.asked_container(account, route);
        let container = container.filter(|_| self.names_the_same(&link, route));
        let container = container.ok_or_else(|| self.elsewhere(operation))?;
        check_extras(bound, headers)?;
        if operation.is_on_items() && !has_a_key_each(operation, headers) {
            self.check_has_keys(&container)?;
            self.check_key(scope::partition_key(headers, &container)?.as_ref())?;
        }
        Ok(())
    }

    /// Refuses a grant that is limited to a partition key in a container whose documents have none.
    fn check_has_keys(&self, container: &Container) -> Result<()> {
        match self.partition_key {
            Some(_) if container.collection().is_some() => Err(Error::new(
                ErrorKind::Forbidden,
                "the permission is for one partition key, and the documents of a MongoDB collection have none",
            )),
            _ => Ok(()),
        }
    }

    /// Checks that the grant covers a partition key, if it is limited to one.
    ///
    /// # Errors
    /// `Forbidden`.
    pub(crate) fn check_key(&self, key: Option<&PartitionKey>) -> Result<()> {
        let Some(granted) = &self.partition_key else {
            return Ok(());
        };
        match key {
            Some(key) if key.0.starts_with(&granted.0) => Ok(()),
            Some(_) => Err(Error::new(
                ErrorKind::Forbidden,
                "the permission is for another partition key",
            )),
            None => Err(Error::new(
                ErrorKind::Forbidden,
                format!(
                    "the permission is for one partition key, which the request has to name in header `{}`, and a bulk in each \
                     operation",
                    headers::PARTITION_KEY
                ),
            )),
        }
    }

    /// Whether the grant is for one item.
    pub(crate) fn is_for_one_item(&self) -> bool {
        ResourceLink::parse(&self.resource).is_ok_and(|link| self.bound(&link) == Bound::Item)
    }

    fn bound(&self, link: &ResourceLink) -> Bound {
        match link.below.first().map(String::as_str) {
            None if self.partition_key.is_some() => Bound::PartitionKey,
            None => Bound::Container,
            Some("sprocs" | "triggers" | "udfs") => Bound::Script,
            // A link to anything else gives no more rights than one to an item: no path addresses it.
            Some(_) => Bound::Item,
        }
    }

    /// The container of a request, if it is the grant's.
    fn asked_container(&self, account: &Account, route: &Route<'_>) -> Option<Arc<Container>> {
        if route.container.is_empty() {
            return None;
        }
        let asked = addressing::container(account, route).ok()?;
        (Some(asked.rid()) == self.container).then_some(asked)
    }

    /// Whether the request is for the item or script of the link, if the link and the request name one.
    fn names_the_same(&self, link: &ResourceLink, route: &Route<'_>) -> bool {
        let keyword = match route.kind {
            PathKind::Item => "docs",
            PathKind::Script(kind) => crate::routes::keyword(kind),
            _ => return true,
        };
        match link.below.as_slice() {
            [] => true,
            [kind, leaf] => {
                kind == keyword && *leaf == route.leaf && (link.is_by_rid(self.container) || self.is_name(leaf))
            }
            _ => false,
        }
    }

    /// Whether the last segment of a link by names is really a name: users choose ids, and one that looks like the resource id of something else in
    /// the container would address that.
    fn is_name(&self, leaf: &str) -> bool {
        let item = ItemRid::parse(leaf).map(|rid| rid.container);
        let child = ChildRid::parse(leaf).map(|rid| rid.container);
        [item, child]
            .into_iter()
            .flatten()
            .all(|rid| Some(rid) != self.container)
    }

    fn elsewhere(&self, operation: Operation) -> Failure {
        forbidden(&format!(
            "the permission cannot authorize {} here. resource=`{}`",
            operation.name(),
            self.resource
        ))
    }
}

/// In a bulk request each operation has its own partition key, which is checked when the operations are read.
fn has_a_key_each(operation: Operation, headers: &HeaderMap) -> bool {
    operation == Operation::Batch
        && !headers::flag(headers, &headers::BATCH_ATOMIC)
        && headers::non_empty(headers, &headers::PARTITION_KEY).is_ok_and(|key| key.is_none())
}

/// Refuses headers that extend an operation beyond the scope of the token.
fn check_extras(bound: Bound, headers: &HeaderMap) -> Result<(), Failure> {
    let is_partial = bound != Bound::Container;
    let shows_figures =
        headers::flag(headers, &headers::POPULATE_QUOTA) || headers::flag(headers, &headers::POPULATE_STATISTICS);
    if is_partial && shows_figures {
        return Err(forbidden(
            "how full a container is can be read with a permission for all of it",
        ));
    }
    if bound == Bound::Item && headers::names_triggers(headers) {
        return Err(forbidden(
            "a permission for one item runs no triggers, which work on all items of its partition key",
        ));
    }
    Ok(())
}

fn forbidden(why: &str) -> Failure {
    Failure::new(FORBIDDEN, why)
}

impl ResourceLink {
    /// Parses a link.
    ///
    /// # Errors
    /// `BadRequest` if it names neither a container nor something in it.
    pub(crate) fn parse(link: &str) -> Result<ResourceLink> {
        let segments: Vec<&str> = link.trim_matches('/').split('/').collect();
        match segments[..] {
            ["dbs", database, "colls", container, ref below @ ..] if below.len() != 1 => Ok(ResourceLink {
                database: database.to_owned(),
                container: container.to_owned(),
                below: below.iter().map(|segment| (*segment).to_owned()).collect(),
            }),
            _ => Err(Error::bad_request(format!(
                "`resource` of a permission must be the link of a container, or of an item or script in one. value=`{link}`"
            ))),
        }
    }

    /// The container that the link names now.
    pub(crate) fn container(&self, account: &Account) -> Option<Arc<Container>> {
        let route = Route::to_container(self.database.clone(), self.container.clone());
        addressing::container(account, &route).ok()
    }

    /// Whether the link names the container by its resource ids.
    fn is_by_rid(&self, container: Option<ContainerRid>) -> bool {
        container.is_some_and(|rid| self.container == rid.to_string() && self.database == rid.database().to_string())
    }
}

#[cfg(test)]
mod tests;
