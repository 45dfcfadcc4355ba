//! How answers name a container: by these headers, clients file their session tokens (cosmos-rest §9).

use std::collections::HashMap;

use bolide_core::{Container, ContainerInfo};
use bolide_model::rid::ContainerRid;
use http::HeaderValue;
use parking_lot::RwLock;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Most containers whose [`ContentPaths`] are kept.
const MAX_CONTAINERS: usize = 10_000;
/// What names need for a header: everything outside ASCII, and what would not survive unescaping.
const NAME_ESCAPES: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'"').add(b'<').add(b'>').add(b'`');

/// The headers that name a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentPaths {
    /// By names, percent-encoded.
    pub alternative: HeaderValue,
    /// By resource id.
    pub rid: HeaderValue,
}

impl ContentPaths {
    fn of(container: &ContainerInfo) -> ContentPaths {
        let id = utf8_percent_encode(&container.properties.id, NAME_ESCAPES);
        let alternative = format!("{}/colls/{id}", owner_path(container));
        ContentPaths {
            alternative: HeaderValue::try_from(alternative).expect("what is percent-encoded is visible ASCII"),
            rid: HeaderValue::try_from(container.rid.to_string()).expect("base64 is visible ASCII"),
        }
    }
}

/// The database of a container by its name, percent-encoded, as answers about the container give it.
///
/// Java's SDK makes the container's own link of it, without which its change feed does not start.
pub(crate) fn owner_path(container: &ContainerInfo) -> String {
    format!("dbs/{}", utf8_percent_encode(&container.database_id, NAME_ESCAPES))
}

/// The paths of the containers that were asked for. Neither the id of a container nor its database's ever changes, so they are made once.
#[derive(Debug, Default)]
pub(crate) struct ContentPathCache {
    by_container: RwLock<HashMap<ContainerRid, ContentPaths>>,
}

impl ContentPathCache {
    /// The paths of a container.
    pub(crate) fn of(&self, container: &Container) -> ContentPaths {
        let rid = container.rid();
        if let Some(paths) = self.by_container.read().get(&rid) {
            return paths.clone();
        }
        let paths = ContentPaths::of(&container.info());
        let mut known = self.by_container.write();
        // Those of deleted containers go too, some time.
        if known.len() >= MAX_CONTAINERS {
            known.clear();
        }
        known.insert(rid, paths.clone());
        paths
    }
}

#[cfg(test)]
mod tests;
