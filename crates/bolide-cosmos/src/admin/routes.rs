//! The table of the admin API: its routes, their required account keys, and their handlers. Resource tokens give no access.

use std::sync::Arc;

use bolide_core::Container;
use bolide_model::Result;
use bolide_model::account_key::Access;
use futures_util::future::BoxFuture;
use http::Method;

use super::{Admin, clock, cluster, containers, copies, export, faults, mongo, query, snapshots, ttl};
use crate::wire::Reply;

/// A route outside the protocol.
pub(crate) struct AdminRoute {
    pub method: Method,
    /// The segments after `/_bolide/`; `{db}`, `{c}` and `{name}` match any segment.
    pub path: &'static str,
    /// The required account key; `None`: no key.
    pub key: Option<Access>,
    pub(super) handler: Handler,
}

type ReplyFuture<'a> = BoxFuture<'a, Result<Reply>>;

/// The handler of a route.
pub(super) enum Handler {
    /// For the server.
    Server(for<'a> fn(&'a Admin<'_>) -> ReplyFuture<'a>),
    /// For the container in the path.
    Container(for<'a> fn(&'a Admin<'_>, &'a Arc<Container>) -> ReplyFuture<'a>),
    /// An import, whose body is read part by part: see [`Admin::import`].
    Import,
}

const NOBODY: Option<Access> = None;
const READ_ONLY: Option<Access> = Some(Access::ReadOnly);
const FULL: Option<Access> = Some(Access::Full);

macro_rules! server {
    ($handler:path) => {
        Handler::Server(|admin| Box::pin($handler(admin)))
    };
}

macro_rules! container {
    ($handler:path) => {
        Handler::Container(|admin, container| Box::pin($handler(admin, container)))
    };
}

const fn route(method: Method, path: &'static str, key: Option<Access>, handler: Handler) -> AdminRoute {
    AdminRoute {
        method,
        path,
        key,
        handler,
    }
}

/// All routes.
#[rustfmt::skip]
pub(crate) static ROUTES: [AdminRoute; 38] = [
    route(Method::GET,  "health",                         NOBODY,    server!(super::health)),
    route(Method::GET,  "metrics",                        READ_ONLY, server!(super::metrics)),
    route(Method::GET,  "clock",                          READ_ONLY, server!(clock::show)),
    route(Method::PUT,  "clock",                          FULL,      server!(clock::set)),
    route(Method::GET,  "cluster",                        READ_ONLY, server!(cluster::show)),
    route(Method::PUT,  "settings",                       FULL,      server!(super::settings)),
    route(Method::PUT,  "faults",                         FULL,      server!(faults::set_point)),
    route(Method::GET,  "faults/rules",                   READ_ONLY, server!(faults::show_rules)),
    route(Method::PUT,  "faults/rules",                   FULL,      server!(faults::set_rules)),
    route(Method::GET,  "requests",                       READ_ONLY, server!(super::requests)),
    route(Method::POST, "copies",                         FULL,      server!(copies::begin)),
    route(Method::DELETE, "copies/{name}",                FULL,      server!(copies::end)),
    route(Method::POST, "copies/{name}/partitions",       FULL,      server!(copies::partitions)),
    route(Method::POST, "copies/{name}/rows",             FULL,      server!(copies::rows)),
    route(Method::POST, "copies/{name}/changes",          FULL,      server!(copies::changes)),
    route(Method::POST, "copies/{name}/seal",             FULL,      server!(copies::seal)),
    route(Method::POST, "copies/{name}/finish",           FULL,      server!(copies::finish)),
    route(Method::GET,  "seal",                           READ_ONLY, server!(copies::show_seal)),
    route(Method::DELETE, "seal",                         FULL,      server!(copies::unseal)),
    route(Method::GET,  "snapshots",                      READ_ONLY, server!(snapshots::list)),
    route(Method::POST, "snapshots/{name}",               FULL,      server!(snapshots::take)),
    route(Method::DELETE, "snapshots/{name}",             FULL,      server!(snapshots::remove)),
    route(Method::POST, "snapshots/{name}/restore",       FULL,      server!(snapshots::restore)),
    route(Method::POST, "reset",                          FULL,      server!(snapshots::reset)),
    route(Method::POST, "dbs/{db}/mongo",                 READ_ONLY, server!(mongo::run)),
    route(Method::POST, "dbs/{db}/colls/{c}/query",       READ_ONLY, container!(query::answer)),
    route(Method::GET,  "dbs/{db}/colls/{c}/export",      READ_ONLY, container!(export::answer)),
    route(Method::GET,  "dbs/{db}/colls/{c}/indexes",     READ_ONLY, container!(containers::indexes)),
    route(Method::GET,  "dbs/{db}/colls/{c}/ttl",         READ_ONLY, container!(ttl::report)),
    route(Method::GET,  "dbs/{db}/colls/{c}/ttl/preview", READ_ONLY, container!(ttl::preview)),
    route(Method::POST, "dbs/{db}/colls/{c}/ttl/ends",    READ_ONLY, container!(ttl::ends)),
    route(Method::GET,  "dbs/{db}/colls/{c}/ttl/why",     READ_ONLY, container!(ttl::why)),
    route(Method::POST, "dbs/{db}/colls/{c}/purge",       FULL,      container!(containers::purge)),
    route(Method::POST, "dbs/{db}/colls/{c}/verify",      FULL,      container!(containers::verify)),
    route(Method::POST, "dbs/{db}/colls/{c}/import",      FULL,      Handler::Import),
    route(Method::POST, "dbs/{db}/colls/{c}/load",        FULL,      container!(containers::load)),
    route(Method::POST, "dbs/{db}/colls/{c}/split",       FULL,      container!(containers::split)),
    route(Method::PUT,  "dbs/{db}/colls/{c}/throughput",  FULL,      container!(containers::set_throughput)),
];

/// The routes at a path, one for each method.
pub(super) fn at<'s>(segments: &'s [&str]) -> impl Iterator<Item = &'static AdminRoute> + 's {
    let fits = |path: &str| {
        let mut named = path.split('/');
        let fits = segments.iter().all(|segment| {
            named
                .next()
                .is_some_and(|name| name.starts_with('{') || name == *segment)
        });
        fits && named.next().is_none()
    };
    ROUTES.iter().filter(move |route| fits(route.path))
}

/// The key that a request to the admin API needs: unknown routes need one with all rights, even for the error.
pub(super) fn key_for(method: &Method, segments: &[&str]) -> Option<Access> {
    let route = at(segments).find(|route| route.method == method);
    route.map_or(FULL, |route| route.key)
}

#[cfg(test)]
mod tests;
