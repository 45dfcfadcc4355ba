//! Paths: the resource that a request addresses.
//!
//! A path is split at `/` and each segment is percent-decoded afterwards (cosmos-rest §0.1). Its form alone determines the kind of resource;
//! [`crate::addressing`] decides whether its segments are names or resource ids.

use std::borrow::Cow;

use bolide_core::ScriptKind;
use bolide_model::rid::{
    ChildRid, ContainerRid, DatabaseRid, EncryptionKeyRid, ItemRid, OfferRid, PermissionRid, UserRid,
};

use crate::wire::{ascii, percent};

/// The kind of resource that a path addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    /// `/`
    Account,
    /// `/dbs`
    Databases,
    /// `/dbs/{db}`
    Database,
    /// `/dbs/{db}/colls`
    Containers,
    /// `/dbs/{db}/colls/{c}`
    Container,
    /// `…/docs`
    Items,
    /// `…/docs/{id}`
    Item,
    /// `…/pkranges`
    PartitionKeyRanges,
    /// `…/conflicts`
    Conflicts,
    /// `…/conflicts/{id}`
    Conflict,
    /// `…/operations/partitionkeydelete`
    PartitionKeyDelete,
    /// `/dbs/{db}/users`
    Users,
    /// `/dbs/{db}/users/{u}`
    User,
    /// `…/users/{u}/permissions`
    Permissions,
    /// `…/users/{u}/permissions/{p}`
    Permission,
    /// `/dbs/{db}/clientencryptionkeys`
    EncryptionKeys,
    /// `/dbs/{db}/clientencryptionkeys/{id}`
    EncryptionKey,
    /// `/offers`
    Offers,
    /// `/offers/{rid}`
    Offer,
    /// `…/sprocs`, `…/triggers`, `…/udfs`
    Scripts(ScriptKind),
    /// `…/sprocs/{id}`, `…/triggers/{id}`, `…/udfs/{id}`
    Script(ScriptKind),
    /// `/addresses`: where clients in direct mode send frames.
    Addresses,
    /// `/_explorer/emulator.pem`
    Certificate,
    /// `/_explorer/` and the files below it: the data explorer.
    Explorer,
    /// `/_bolide/…`
    Admin,
    /// An unknown path.
    Unknown,
}

/// A parsed path.
#[derive(Debug, Clone)]
pub(crate) struct Route<'p> {
    /// The kind of resource.
    pub kind: PathKind,
    /// The database segment, decoded; empty if there is none.
    pub database: Cow<'p, str>,
    /// The container segment, decoded; empty if there is none.
    pub container: Cow<'p, str>,
    /// The user segment, decoded; empty if there is none.
    pub user: Cow<'p, str>,
    /// The last id of the path below the container or user, or the offer's; decoded.
    pub leaf: Cow<'p, str>,
    /// The path without slashes at its ends, still encoded.
    pub path: &'p str,
}

/// The part of a path that a signature covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signed<'p> {
    /// The last resource keyword; empty for the account.
    pub resource_type: &'p str,
    /// The instance's link, or the parent's for feeds; still encoded.
    pub link: &'p str,
}

const MAX_SEGMENTS: usize = 8;

impl<'p> Route<'p> {
    /// Parses a path. `None` if a segment is not UTF-8 after decoding.
    pub(crate) fn parse(path: &'p str) -> Option<Route<'p>> {
        let path = trim(path);
        let mut segments = [""; MAX_SEGMENTS];
        let mut count = 0;
        if !path.is_empty() {
            // The last slot gets the rest of the path: ids with an unescaped `/`, which address nothing. An escaped slash is part of the id.
            let mut rest = path;
            while let Some((segment, after)) = ascii::split_once(rest, b'/').filter(|_| count < MAX_SEGMENTS - 1) {
                segments[count] = segment;
                count += 1;
                rest = after;
            }
            segments[count] = rest;
            count += 1;
        }
        let (kind, [database, owner, leaf]) = path_kind(&segments[..count]);
        let (container, user) = match kind {
            PathKind::User | PathKind::Permissions | PathKind::Permission => ("", owner),
            _ => (owner, ""),
        };
        Some(Route {
            kind,
            database: percent::decode(database)?,
            container: percent::decode(container)?,
            user: percent::decode(user)?,
            leaf: percent::decode(leaf)?,
            path,
        })
    }

    /// The part of this path that the client signed (cosmos-rest §2.1).
    pub(crate) fn signed(&self) -> Signed<'p> {
        match self.kind {
            PathKind::Account => Signed {
                resource_type: "",
                link: "",
            },
            PathKind::PartitionKeyDelete => {
                let link = self.path.trim_end_matches("/operations/partitionkeydelete");
                Signed {
                    resource_type: "colls",
                    link,
                }
            }
            // An item id may contain an unescaped slash, so segments cannot be counted.
            PathKind::Item => Signed {
                resource_type: "docs",
                link: self.path,
            },
            _ => signed_by_parity(self.path),
        }
    }
}

impl Route<'_> {
    /// The resource id at the end of the path, or that of the parent for feeds, if all ids of the path are resource ids that belong together.
    ///
    /// The path does not tell whether they are meant as such: a database name may look like a resource id.
    pub(crate) fn rid(&self) -> Option<&str> {
        if self.kind == PathKind::Offer {
            return OfferRid::parse(&self.leaf).map(|_| &*self.leaf);
        }
        let database = DatabaseRid::parse(&self.database)?;
        let container = || ContainerRid::parse(&self.container).filter(|rid| rid.database() == database);
        let user = || UserRid::parse(&self.user).filter(|rid| rid.database() == database);
        let (last, is_rid) = match self.kind {
            PathKind::Database | PathKind::Containers | PathKind::Users | PathKind::EncryptionKeys => {
                (&self.database, true)
            }
            PathKind::Container
            | PathKind::Items
            | PathKind::PartitionKeyRanges
            | PathKind::Conflicts
            | PathKind::Scripts(_)
            | PathKind::PartitionKeyDelete => (&self.container, container().is_some()),
            PathKind::Item => {
                let parent = ItemRid::parse(&self.leaf).map(|rid| rid.container);
                (&self.leaf, parent.is_some() && parent == container())
            }
            PathKind::Conflict | PathKind::Script(_) => {
                let parent = ChildRid::parse(&self.leaf).map(|rid| rid.container);
                (&self.leaf, parent.is_some() && parent == container())
            }
            PathKind::User | PathKind::Permissions => (&self.user, user().is_some()),
            PathKind::Permission => {
                let parent = PermissionRid::parse(&self.leaf).map(|rid| rid.user);
                (&self.leaf, parent.is_some() && parent == user())
            }
            PathKind::EncryptionKey => {
                let parent = EncryptionKeyRid::parse(&self.leaf).map(|rid| rid.database);
                (&self.leaf, parent == Some(database))
            }
            PathKind::Account
            | PathKind::Databases
            | PathKind::Offers
            | PathKind::Offer
            | PathKind::Addresses
            | PathKind::Certificate
            | PathKind::Explorer
            | PathKind::Admin
            | PathKind::Unknown => return None,
        };
        is_rid.then_some(&**last)
    }
}

impl Route<'static> {
    /// The route to a container from its segments, as in links.
    pub(crate) fn to_container(database: String, container: String) -> Route<'static> {
        Route {
            kind: PathKind::Container,
            database: Cow::Owned(database),
            container: Cow::Owned(container),
            user: Cow::Borrowed(""),
            leaf: Cow::Borrowed(""),
            path: "",
        }
    }
}

/// Pairs of keyword and id form an instance; a single keyword at the end forms a feed of its parent.
fn signed_by_parity(path: &str) -> Signed<'_> {
    let is_instance = path.split('/').count().is_multiple_of(2);
    match path.rsplit_once('/') {
        None => Signed {
            resource_type: path,
            link: "",
        },
        Some((parent, keyword)) if !is_instance => Signed {
            resource_type: keyword,
            link: parent,
        },
        Some((head, _)) => {
            let keyword = head.rsplit_once('/').map_or(head, |(_, keyword)| keyword);
            Signed {
                resource_type: keyword,
                link: path,
            }
        }
    }
}

/// Clients may double the first slash and end every URL with one (cosmos-rest §0.1).
fn trim(path: &str) -> &str {
    let path = path.trim_start_matches('/');
    path.strip_suffix('/').unwrap_or(path)
}

fn path_kind<'s>(segments: &[&'s str]) -> (PathKind, [&'s str; 3]) {
    match *segments {
        [] => (PathKind::Account, [""; 3]),
        ["dbs"] => (PathKind::Databases, [""; 3]),
        ["dbs", db] => (PathKind::Database, [db, "", ""]),
        ["dbs", db, "colls"] => (PathKind::Containers, [db, "", ""]),
        ["dbs", db, "colls", c] => (PathKind::Container, [db, c, ""]),
        ["dbs", db, "colls", c, "docs"] => (PathKind::Items, [db, c, ""]),
        ["dbs", db, "colls", c, "docs", id] => (PathKind::Item, [db, c, id]),
        // An id with an unescaped slash, as .NET sends it, addresses nothing. No item has the empty id.
        ["dbs", db, "colls", c, "docs", _, ..] => (PathKind::Item, [db, c, ""]),
        ["dbs", db, "colls", c, "pkranges"] => (PathKind::PartitionKeyRanges, [db, c, ""]),
        ["dbs", db, "colls", c, "conflicts"] => (PathKind::Conflicts, [db, c, ""]),
        ["dbs", db, "colls", c, "conflicts", id] => (PathKind::Conflict, [db, c, id]),
        ["dbs", db, "colls", c, "operations", "partitionkeydelete"] => (PathKind::PartitionKeyDelete, [db, c, ""]),
        ["dbs", db, "users"] => (PathKind::Users, [db, "", ""]),
        ["dbs", db, "users", user] => (PathKind::User, [db, user, ""]),
        ["dbs", db, "users", user, "permissions"] => (PathKind::Permissions, [db, user, ""]),
        ["dbs", db, "users", user, "permissions", id] => (PathKind::Permission, [db, user, id]),
        ["dbs", db, "colls", c, keyword @ ("sprocs" | "triggers" | "udfs")] => {
            (PathKind::Scripts(kind(keyword)), [db, c, ""])
        }
        ["dbs", db, "colls", c, keyword @ ("sprocs" | "triggers" | "udfs"), id] => {
            (PathKind::Script(kind(keyword)), [db, c, id])
        }
        ["dbs", db, "clientencryptionkeys"] => (PathKind::EncryptionKeys, [db, "", ""]),
        ["dbs", db, "clientencryptionkeys", id] => (PathKind::EncryptionKey, [db, "", id]),
        ["offers"] => (PathKind::Offers, [""; 3]),
        ["offers", rid] => (PathKind::Offer, ["", "", rid]),
        ["addresses"] => (PathKind::Addresses, [""; 3]),
        ["_explorer"] => (PathKind::Explorer, [""; 3]),
        ["_explorer", "emulator.pem"] => (PathKind::Certificate, [""; 3]),
        ["_explorer", file] => (PathKind::Explorer, ["", "", file]),
        ["_bolide", ..] => (PathKind::Admin, [""; 3]),
        _ => (PathKind::Unknown, [""; 3]),
    }
}

/// The keyword in paths for a kind of scripts.
pub(crate) fn keyword(kind: ScriptKind) -> &'static str {
    match kind {
        ScriptKind::StoredProcedure => "sprocs",
        ScriptKind::Trigger => "triggers",
        ScriptKind::UserDefinedFunction => "udfs",
    }
}

/// The kind of scripts of a keyword in a path.
fn kind(keyword: &str) -> ScriptKind {
    match keyword {
        "triggers" => ScriptKind::Trigger,
        "udfs" => ScriptKind::UserDefinedFunction,
        _ => ScriptKind::StoredProcedure,
    }
}

#[cfg(test)]
mod tests;
