//! The routes of the admin API and the account keys that they need. No resource token opens any.

use http::Method;

use crate::keys::Access;

/// A route that is no operation of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AdminRoute {
    pub method: &'static str,
    /// The segments behind `/_bolide/`; `{db}` and `{c}` stand for any one.
    pub path: &'static str,
    /// The least account key; `None`: open to everybody.
    pub key: Option<Access>,
}

const fn admin(method: &'static str, path: &'static str, key: Access) -> AdminRoute {
    AdminRoute {
        method,
        path,
        key: Some(key),
    }
}

/// All of them.
pub(crate) const ROUTES: [AdminRoute; 18] = [
    AdminRoute {
        method: "GET",
        path: "health",
        key: None,
    },
    admin("GET", "metrics", Access::ReadOnly),
    admin("GET", "clock", Access::ReadOnly),
    admin("PUT", "clock", Access::Full),
    admin("PUT", "settings", Access::Full),
    admin("PUT", "faults", Access::Full),
    admin("PUT", "faults/rules", Access::Full),
    admin("POST", "dbs/{db}/colls/{c}/query", Access::ReadOnly),
    admin("GET", "dbs/{db}/colls/{c}/export", Access::ReadOnly),
    admin("GET", "dbs/{db}/colls/{c}/ttl", Access::ReadOnly),
    admin("GET", "dbs/{db}/colls/{c}/ttl/preview", Access::ReadOnly),
    admin("GET", "dbs/{db}/colls/{c}/ttl/why", Access::ReadOnly),
    admin("POST", "dbs/{db}/colls/{c}/purge", Access::Full),
    admin("POST", "dbs/{db}/colls/{c}/verify", Access::Full),
    admin("POST", "dbs/{db}/colls/{c}/import", Access::Full),
    admin("POST", "dbs/{db}/colls/{c}/load", Access::Full),
    admin("POST", "dbs/{db}/colls/{c}/split", Access::Full),
    admin("PUT", "dbs/{db}/colls/{c}/throughput", Access::Full),
];

/// The key that a request to the admin API needs: what is not in the table needs one that opens everything, even to be told so.
pub(super) fn key_for(method: &Method, segments: &[&str]) -> Option<Access> {
    let is_at = |route: &&AdminRoute| {
        let mut named = route.path.split('/');
        let fits = segments.iter().all(|segment| {
            named
                .next()
                .is_some_and(|name| name.starts_with('{') || name == *segment)
        });
        method == route.method && fits && named.next().is_none()
    };
    let route = ROUTES.iter().find(is_at);
    route.map_or(Some(Access::Full), |route| route.key)
}

#[cfg(test)]
mod tests;
