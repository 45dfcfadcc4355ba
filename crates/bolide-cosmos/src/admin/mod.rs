//! The admin API: Bolide's additions to the protocol, under `/_bolide/`.
//!
//! Moves the clock, purges, shows the backlog, checks the store, imports and exports. It is public and documented in the admin API reference; test
//! runners, the explorer and the command line use it.

mod clock;
mod cluster;
mod containers;
mod copies;
mod export;
mod faults;
mod mongo;
mod query;
mod routes;
mod snapshots;
mod ttl;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bolide_core::Container;
use bolide_model::account_key::Access;
use bolide_model::{Error, Result};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::StatusCode;
use http::request::Parts;
use serde_json::{Map, Value, json};

use crate::metrics::Servers;
use crate::request_body::BodyError;
use crate::routes::Route;
use crate::state::State;
use crate::status::{FORBIDDEN, Failure, METHOD_NOT_ALLOWED, NOT_FOUND};
use crate::wire::{Reply, body, headers, percent};
use crate::{addressing, auth, metrics};
use routes::Handler;
#[cfg(test)]
pub(crate) use routes::ROUTES;

/// A request to the admin API.
pub(crate) struct Admin<'r> {
    state: &'r State,
    head: &'r Parts,
    body: &'r Bytes,
    path: &'r str,
    /// That of the sender's key; `None` on routes that need none.
    access: Option<Access>,
}

/// The response of the health check until the store is recovered.
pub(crate) fn starting() -> Value {
    json!({"status": "starting", "version": env!("CARGO_PKG_VERSION")})
}

impl<'r> Admin<'r> {
    pub(crate) fn new(
        state: &'r State,
        head: &'r Parts,
        body: &'r Bytes,
        route: &Route<'r>,
        access: Option<Access>,
    ) -> Admin<'r> {
        Admin {
            state,
            head,
            body,
            path: route.path,
            access,
        }
    }

    /// Whether a route needs no key.
    pub(crate) fn is_public(route: &Route<'_>) -> bool {
        routes::at(&segments_of(route.path)).any(|route| route.key.is_none())
    }

    /// Handles the request; see [`Admin::authenticate`].
    pub(crate) async fn answer(&self) -> Result<Reply, Failure> {
        let segments = segments_of(self.path);
        let mut routes = routes::at(&segments).peekable();
        let Some(first) = routes.peek().copied() else {
            let message = format!("the admin API has no such route. path=`/{}`", self.path);
            return Err(Failure::new(NOT_FOUND, message));
        };
        let route = routes.find(|route| route.method == self.head.method).ok_or_else(|| {
            let message = format!("this route takes {} only. method={}", first.method, self.head.method);
            Failure::new(METHOD_NOT_ALLOWED, message)
        })?;
        match route.handler {
            Handler::Server(answer) => Ok(answer(self).await?),
            Handler::Container(answer) => Ok(answer(self, &self.container(&segments).await?).await?),
            Handler::Import => self.import(stream::empty()).await,
        }
    }

    /// Whether a request is an import, whose body is read part by part.
    pub(crate) fn is_import(head: &Parts, route: &Route<'_>) -> bool {
        let segments = segments_of(route.path);
        let mut routes = routes::at(&segments).filter(|route| route.method == head.method);
        routes.any(|route| matches!(route.handler, Handler::Import))
    }

    /// Handles an import; see [`Admin::is_import`].
    pub(crate) async fn import<S>(&self, parts: S) -> Result<Reply, Failure>
    where
        S: Stream<Item = Result<Bytes, BodyError>> + Send,
    {
        let container = self.container(&segments_of(self.path)).await?;
        containers::import(self, &container, parts).await
    }

    /// Refuses senders without the required right; returns what the sender's key gives.
    ///
    /// # Errors
    /// 401 without a key; 403 if the key does not have the right.
    pub(crate) fn authenticate(state: &State, head: &Parts, route: &Route<'_>) -> Result<Access, Failure> {
        let access = auth::authenticate_admin(&state.keys, head)?;
        let needed = routes::key_for(&head.method, &segments_of(route.path));
        if access == Access::ReadOnly && needed == Some(Access::Full) {
            return Err(Failure::new(FORBIDDEN, "a read-only key does not open this"));
        }
        Ok(access)
    }

    /// The container in the path of a route.
    async fn container(&self, segments: &[&str]) -> Result<Arc<Container>, Failure> {
        let path = segments[..4].join("/");
        let route = Route::parse(&path);
        let route = route.ok_or_else(|| Error::bad_request("the path is not UTF-8 after percent-decoding"))?;
        let account = &self.state.account;
        // Another server may have made what is not known here.
        if account.has_shared_store() && addressing::known_container(account, &route).is_none() {
            account.refresh_catalog().await?;
        }
        Ok(addressing::container(account, &route)?)
    }

    /// The body's members; an empty body has none.
    fn members(&self) -> Result<Map<String, Value>> {
        if self.body.is_empty() {
            Ok(Map::new())
        } else {
            body::object(self.body)
        }
    }

    /// A parameter of the query string, decoded.
    fn parameter(&self, name: &str) -> Result<Option<String>> {
        let pairs = self
            .head
            .uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        let Some((_, value)) = pairs.into_iter().find(|(key, _)| *key == name) else {
            return Ok(None);
        };
        let value = percent::decode(value);
        let value = value.ok_or_else(|| Error::bad_request(format!("parameter `{name}` is not UTF-8")))?;
        Ok(Some(value.into_owned()))
    }

    fn required(&self, name: &str) -> Result<String> {
        self.parameter(name)?
            .ok_or_else(|| Error::bad_request(format!("parameter `{name}` is missing")))
    }
}

/// The segments of a path after `_bolide`.
fn segments_of(path: &str) -> Vec<&str> {
    path.split('/').skip(1).collect()
}

async fn health(admin: &Admin<'_>) -> Result<Reply> {
    Ok(ok(&running(admin.state)))
}

/// The response of the health check when the store is open.
pub(crate) fn running(state: &State) -> Value {
    let engine = state.account.engine_name();
    json!({"status": "ok", "version": env!("CARGO_PKG_VERSION"), "engine": engine})
}

async fn metrics(admin: &Admin<'_>) -> Result<Reply> {
    let state = admin.state;
    let figures = {
        let _turn = state.statistics_permit().await;
        state.account.container_figures().await?
    };
    let mut text = state.metrics.render(&figures);
    text.push_str(&metrics::render_process(
        state.account.memory(),
        state.account.definitions(),
        state.options.connections.load(Ordering::Relaxed),
    ));
    text.push_str(&metrics::render_servers(&Servers::of(&state.account.nodes())));
    if let Some(forwarding) = &state.forwarding {
        text.push_str(&metrics::render_forwarding(&forwarding.figures));
    }
    let mut reply = Reply::json(StatusCode::OK, text);
    reply.fixed(&headers::CONTENT_TYPE, "text/plain; version=0.0.4");
    Ok(reply)
}

async fn requests(admin: &Admin<'_>) -> Result<Reply> {
    let after = admin.parameter("after")?;
    let after = after.map(|after| {
        after
            .parse()
            .map_err(|_| Error::bad_request("`after` must be a whole number from 0"))
    });
    Ok(ok(&admin
        .state
        .options
        .recent_requests
        .after(after.transpose()?.unwrap_or(0))))
}

async fn settings(admin: &Admin<'_>) -> Result<Reply> {
    let members = admin.members()?;
    let is_on = members.get("mongoDocumentTtl").and_then(Value::as_bool);
    let is_on = is_on.ok_or_else(|| Error::bad_request("`mongoDocumentTtl` must be true or false"))?;
    admin.state.account.set_mongo_document_ttl(is_on).await?;
    Ok(ok(&json!({"mongoDocumentTtl": is_on})))
}

/// 200 with a JSON body.
fn ok(body: &Value) -> Reply {
    Reply::value(StatusCode::OK, body)
}

/// Reads a member that is a finite number.
fn number(members: &Map<String, Value>, name: &str) -> Result<Option<f64>> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_f64()
            .map(Some)
            .ok_or_else(|| Error::bad_request(format!("`{name}` must be a number"))),
    }
}

/// Reads a member that is a count.
fn count(members: &Map<String, Value>, name: &str) -> Result<Option<u64>> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_u64()
            .map(Some)
            .ok_or_else(|| Error::bad_request(format!("`{name}` must be a whole number from 0"))),
    }
}
