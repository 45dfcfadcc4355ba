//! The headers that name a container in responses: clients store their session tokens by these (cosmos-rest §9).

use std::collections::HashMap;

use bolide_core::{Container, ContainerInfo};
use bolide_model::rid::ContainerRid;
use http::HeaderValue;
use parking_lot::RwLock;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Maximum number of containers whose [`ContentPaths`] are cached.
const MAX_CONTAINERS: usize = 10_000;
/// Characters of names that are escaped in a header: everything outside ASCII, and characters that would not survive unescaping.
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

/// The name of a container's database, percent-encoded, for responses about the container.
///
/// Java's SDK builds the container's link from it, without which its change feed does not start.
pub(crate) fn owner_path(container: &ContainerInfo) -> String {
    format!("dbs/{}", utf8_percent_encode(&container.database_id, NAME_ESCAPES))
}

/// The paths of containers that were requested. The id of a container and that of its database never change, so they are made once.
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
        // This also removes those of deleted containers.
        if known.len() >= MAX_CONTAINERS {
            known.clear();
        }
        known.insert(rid, paths.clone());
        paths
    }
}

#[cfg(test)]
mod tests;
