//! Paths: which resource a request is about.
//!
//! A path is split at `/` and each segment percent-decoded afterwards (cosmos-rest §0.1). Its shape alone names the kind of
//! resource; whether the names in it are ids or resource ids is settled in [`crate::addressing`].

use std::borrow::Cow;

use bolide_core::ScriptKind;
use bolide_model::rid::{
    ChildRid, ContainerRid, DatabaseRid, EncryptionKeyRid, ItemRid, OfferRid, PermissionRid, UserRid,
};

use crate::wire::percent;

/// What kind of resource a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
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
    /// `…/sprocs/{id}` and the like
    Script(ScriptKind),
    /// `/addresses`: direct mode, which this is not.
    Addresses,
    /// `/_explorer/emulator.pem`
    Certificate,
    /// `/_explorer/index.html`: the page for browsers.
    Explorer,
    /// `/_bolide/…`
    Admin,
    /// Nothing we know.
    Unknown,
}

/// A path, taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Route<'p> {
    /// The kind of resource.
    pub place: Place,
    /// The database segment, decoded; empty where there is none.
    pub database: Cow<'p, str>,
    /// The container segment, decoded; empty where there is none.
    pub container: Cow<'p, str>,
    /// The user segment, decoded; empty where there is none.
    pub user: Cow<'p, str>,
    /// The last id of the path below the container or user, or the offer's; decoded.
    pub leaf: Cow<'p, str>,
    /// The path without slashes at its ends, still encoded.
    pub path: &'p str,
}

/// What a signature covers of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signed<'p> {
    /// The last resource keyword; empty for the account.
    pub resource_type: &'p str,
    /// The instance's link, or the parent's for feeds; still encoded.
    pub link: &'p str,
}

const MAX_SEGMENTS: usize = 8;

impl<'p> Route<'p> {
    /// Takes a path apart. `None` when a segment is not UTF-8 after decoding.
    pub(crate) fn parse(path: &'p str) -> Option<Route<'p>> {
        let path = trim(path);
        let mut segments = [""; MAX_SEGMENTS];
        let mut count = 0;
        if !path.is_empty() {
            // What follows the last slot stays in it: ids with a bare `/` inside, which lead nowhere. An escaped one is part of the id.
            for segment in path.splitn(MAX_SEGMENTS, '/') {
                segments[count] = segment;
                count += 1;
            }
        }
        let (place, [database, owner, leaf]) = place(&segments[..count]);
        let (container, user) = match place {
            Place::User | Place::Permissions | Place::Permission => ("", owner),
            _ => (owner, ""),
        };
        Some(Route {
            place,
            database: percent::decode(database)?,
            container: percent::decode(container)?,
            user: percent::decode(user)?,
            leaf: percent::decode(leaf)?,
            path,
        })
    }

    /// What the client signed of this path (cosmos-rest §2.1).
    pub(crate) fn signed(&self) -> Signed<'p> {
        match self.place {
            Place::Account => Signed {
                resource_type: "",
                link: "",
            },
            Place::PartitionKeyDelete => {
                let link = self.path.trim_end_matches("/operations/partitionkeydelete");
                Signed {
                    resource_type: "colls",
                    link,
                }
            }
            // An item id may hold a bare slash, so segments cannot be counted.
            Place::Item => Signed {
                resource_type: "docs",
                link: self.path,
            },
            _ => signed_by_parity(self.path),
        }
    }
}

impl Route<'_> {
    /// The resource id that the path ends with, or its parent for feeds, if all ids of the path are resource ids that belong together.
    ///
    /// Whether they are meant as such is not said by the path: a database may be named like a resource id.
    pub(crate) fn rid(&self) -> Option<&str> {
        if self.place == Place::Offer {
            return OfferRid::parse(&self.leaf).map(|_| &*self.leaf);
        }
        let database = DatabaseRid::parse(&self.database)?;
        let container = || ContainerRid::parse(&self.container).filter(|rid| rid.database() == database);
        let user = || UserRid::parse(&self.user).filter(|rid| rid.database() == database);
        let (last, is_rid) = match self.place {
            Place::Database | Place::Containers | Place::Users | Place::EncryptionKeys => (&self.database, true),
            Place::Container
            | Place::Items
            | Place::PartitionKeyRanges
            | Place::Conflicts
            | Place::Scripts(_)
            | Place::PartitionKeyDelete => (&self.container, container().is_some()),
            Place::Item => {
                let parent = ItemRid::parse(&self.leaf).map(|rid| rid.container);
                (&self.leaf, parent.is_some() && parent == container())
            }
            Place::Conflict | Place::Script(_) => {
                let parent = ChildRid::parse(&self.leaf).map(|rid| rid.container);
                (&self.leaf, parent.is_some() && parent == container())
            }
            Place::User | Place::Permissions => (&self.user, user().is_some()),
            Place::Permission => {
                let parent = PermissionRid::parse(&self.leaf).map(|rid| rid.user);
                (&self.leaf, parent.is_some() && parent == user())
            }
            Place::EncryptionKey => {
                let parent = EncryptionKeyRid::parse(&self.leaf).map(|rid| rid.database);
                (&self.leaf, parent == Some(database))
            }
            Place::Account
            | Place::Databases
            | Place::Offers
            | Place::Offer
            | Place::Addresses
            | Place::Certificate
            | Place::Explorer
            | Place::Admin
            | Place::Unknown => return None,
        };
        is_rid.then_some(&**last)
    }
}

impl Route<'static> {
    /// The route to a container by its segments, as links name them.
    pub(crate) fn to_container(database: String, container: String) -> Route<'static> {
        Route {
            place: Place::Container,
            database: Cow::Owned(database),
            container: Cow::Owned(container),
            user: Cow::Borrowed(""),
            leaf: Cow::Borrowed(""),
            path: "",
        }
    }
}

/// Pairs of keyword and id make an instance; a keyword left over makes a feed of its parent.
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

fn place<'s>(segments: &[&'s str]) -> (Place, [&'s str; 3]) {
    match *segments {
        [] => (Place::Account, [""; 3]),
        ["dbs"] => (Place::Databases, [""; 3]),
        ["dbs", db] => (Place::Database, [db, "", ""]),
        ["dbs", db, "colls"] => (Place::Containers, [db, "", ""]),
        ["dbs", db, "colls", c] => (Place::Container, [db, c, ""]),
        ["dbs", db, "colls", c, "docs"] => (Place::Items, [db, c, ""]),
        ["dbs", db, "colls", c, "docs", id] => (Place::Item, [db, c, id]),
        // An id with a bare slash, as .NET sends it, leads nowhere. No item has the empty id.
        ["dbs", db, "colls", c, "docs", _, ..] => (Place::Item, [db, c, ""]),
        ["dbs", db, "colls", c, "pkranges"] => (Place::PartitionKeyRanges, [db, c, ""]),
        ["dbs", db, "colls", c, "conflicts"] => (Place::Conflicts, [db, c, ""]),
        ["dbs", db, "colls", c, "conflicts", id] => (Place::Conflict, [db, c, id]),
        ["dbs", db, "colls", c, "operations", "partitionkeydelete"] => (Place::PartitionKeyDelete, [db, c, ""]),
        ["dbs", db, "users"] => (Place::Users, [db, "", ""]),
        ["dbs", db, "users", user] => (Place::User, [db, user, ""]),
        ["dbs", db, "users", user, "permissions"] => (Place::Permissions, [db, user, ""]),
        ["dbs", db, "users", user, "permissions", id] => (Place::Permission, [db, user, id]),
        ["dbs", db, "colls", c, keyword @ ("sprocs" | "triggers" | "udfs")] => {
            (Place::Scripts(kind(keyword)), [db, c, ""])
        }
        ["dbs", db, "colls", c, keyword @ ("sprocs" | "triggers" | "udfs"), id] => {
            (Place::Script(kind(keyword)), [db, c, id])
        }
        ["dbs", db, "clientencryptionkeys"] => (Place::EncryptionKeys, [db, "", ""]),
        ["dbs", db, "clientencryptionkeys", id] => (Place::EncryptionKey, [db, "", id]),
        ["offers"] => (Place::Offers, [""; 3]),
        ["offers", rid] => (Place::Offer, ["", "", rid]),
        ["addresses"] => (Place::Addresses, [""; 3]),
        ["_explorer"] | ["_explorer", "index.html"] => (Place::Explorer, [""; 3]),
        ["_explorer", "emulator.pem"] => (Place::Certificate, [""; 3]),
        ["_bolide", ..] => (Place::Admin, [""; 3]),
        _ => (Place::Unknown, [""; 3]),
    }
}

/// The keyword of the paths of a kind of scripts.
pub(crate) fn keyword(kind: ScriptKind) -> &'static str {
    match kind {
        ScriptKind::StoredProcedure => "sprocs",
        ScriptKind::Trigger => "triggers",
        ScriptKind::UserDefinedFunction => "udfs",
    }
}

/// The scripts that a keyword of a path stands for.
fn kind(keyword: &str) -> ScriptKind {
    match keyword {
        "triggers" => ScriptKind::Trigger,
        "udfs" => ScriptKind::UserDefinedFunction,
        _ => ScriptKind::StoredProcedure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> Route<'_> {
        Route::parse(path).expect("the path decodes")
    }

    #[test]
    fn slashes_at_the_ends_do_not_matter() {
        for path in [
            "/dbs/a/colls/b/docs/c",
            "/dbs/a/colls/b/docs/c/",
            "//dbs/a/colls/b/docs/c",
        ] {
            let route = parse(path);
            assert_eq!(route.place, Place::Item, "{path}");
            assert_eq!(
                (&*route.database, &*route.container, &*route.leaf),
                ("a", "b", "c"),
                "{path}"
            );
        }
        assert_eq!(parse("/").place, Place::Account);
        assert_eq!(parse("").place, Place::Account);
    }

    #[test]
    fn segments_are_decoded_after_splitting() {
        let route = parse("/dbs/%20a%2Fb/colls/%E6%97%A5/docs/50%25");
        assert_eq!(
            (&*route.database, &*route.container, &*route.leaf),
            (" a/b", "日", "50%")
        );
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused() {
        assert!(Route::parse("/dbs/%FF").is_none());
    }

    #[test]
    fn instances_sign_their_link_and_feeds_their_parents() {
        let signed = |path| {
            let signed = parse(path).signed();
            (signed.resource_type, signed.link)
        };
        assert_eq!(signed("/"), ("", ""));
        assert_eq!(signed("/dbs"), ("dbs", ""));
        assert_eq!(signed("/dbs/a/"), ("dbs", "dbs/a"));
        assert_eq!(signed("/dbs/a/colls"), ("colls", "dbs/a"));
        assert_eq!(signed("/dbs/a/colls/b/docs/c"), ("docs", "dbs/a/colls/b/docs/c"));
        assert_eq!(signed("/dbs/a/colls/b/docs/c/d"), ("docs", "dbs/a/colls/b/docs/c/d"));
        assert_eq!(signed("/dbs/a/colls/b/pkranges"), ("pkranges", "dbs/a/colls/b"));
        assert_eq!(
            signed("/dbs/a/colls/b/operations/partitionkeydelete"),
            ("colls", "dbs/a/colls/b")
        );
        assert_eq!(signed("/dbs/a/colls/b/sprocs/s"), ("sprocs", "dbs/a/colls/b/sprocs/s"));
        assert_eq!(signed("/offers/xyz"), ("offers", "offers/xyz"));
        assert_eq!(signed("/dbs/a/users/u"), ("users", "dbs/a/users/u"));
        assert_eq!(signed("/dbs/a/users/u/permissions"), ("permissions", "dbs/a/users/u"));
    }

    #[test]
    fn users_are_no_containers() {
        let route = parse("/dbs/a/users/b/permissions/c");
        assert_eq!(
            (
                route.place,
                &*route.database,
                &*route.container,
                &*route.user,
                &*route.leaf
            ),
            (Place::Permission, "a", "", "b", "c")
        );
    }

    #[test]
    fn an_id_with_a_bare_slash_leads_nowhere() {
        let route = parse("/dbs/a/colls/b/docs/c/d");
        assert_eq!((route.place, &*route.leaf), (Place::Item, ""));
    }

    #[test]
    fn escaped_slashes_belong_to_the_id_and_to_what_is_signed() {
        for (path, id) in [
            ("/dbs/a/colls/b/docs/c%2Fd", "c/d"),
            ("/dbs/a/colls/b/docs/%2f", "/"),
            ("/dbs/a/colls/b/docs/c%2F/", "c/"),
            ("/dbs/a/colls/b/docs/c%5Cd", "c\\d"),
            ("/dbs/a/colls/b/docs/..%2F..%2Fsprocs%2Fs", "../../sprocs/s"),
        ] {
            let route = parse(path);
            assert_eq!((route.place, &*route.leaf), (Place::Item, id), "{path}");
            let signed = route.signed();
            assert_eq!(signed.resource_type, "docs", "{path}");
            assert_eq!(signed.link, path.trim_matches('/'), "{path}");
        }
    }
}
