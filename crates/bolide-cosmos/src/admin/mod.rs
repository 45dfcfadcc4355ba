//! The admin API: what Bolide adds to the wire, under `/_bolide/`.
//!
//! Moves the clock, purges, shows the backlog, checks the store, imports and exports. Public, and documented in the admin API
//! reference; runners, the explorer and the command line are its users.

mod clock;
mod containers;
mod export;
mod faults;
mod query;
mod routes;
mod ttl;

use std::sync::atomic::Ordering;

use bolide_model::{Error, ErrorKind, Result};
use bytes::Bytes;
use futures_util::Stream;
use http::request::Parts;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::keys::Access;
use crate::request_body::BodyError;
use crate::routes::Route;
use crate::state::State;
use crate::status::{self, FORBIDDEN, Failure, METHOD_NOT_ALLOWED, NOT_FOUND};
use crate::wire::{Reply, body, headers, percent};
use crate::{addressing, auth, metrics};
#[cfg(test)]
pub(crate) use routes::ROUTES;

/// The route that needs no key.
const HEALTH: &str = "_bolide/health";

/// A request to the admin API.
pub(crate) struct Admin<'r> {
    state: &'r State,
    head: &'r Parts,
    body: &'r Bytes,
    path: &'r str,
}

/// The health answer until the store is recovered.
pub(crate) fn starting() -> Value {
    json!({"status": "starting", "version": env!("CARGO_PKG_VERSION")})
}

impl<'r> Admin<'r> {
    pub(crate) fn new(state: &'r State, head: &'r Parts, body: &'r Bytes, route: &Route<'r>) -> Admin<'r> {
        Admin {
            state,
            head,
            body,
            path: route.path,
        }
    }

    /// Whether a route is open to everybody.
    pub(crate) fn is_public(route: &Route<'_>) -> bool {
        route.path == HEALTH
    }

    /// Answers the request; see [`Admin::authenticate`].
    pub(crate) async fn answer(&self) -> Result<Reply, Failure> {
        let segments: Vec<&str> = self.path.split('/').skip(1).collect();
        if self.path == HEALTH {
            self.expect(&Method::GET)?;
            return Ok(self.health());
        }
        match segments[..] {
            ["metrics"] => self.metrics().await,
            ["clock"] => clock::answer(self).await,
            ["settings"] => self.settings().await,
            ["faults"] => self.expect(&Method::PUT).and_then(|()| faults::set_point(self)),
            ["faults", "rules"] => self.expect(&Method::PUT).and_then(|()| faults::set_rules(self)),
            ["dbs", db, "colls", container, ref action @ ..] if !action.is_empty() => {
                containers::answer(self, &format!("dbs/{db}/colls/{container}"), action).await
            }
            _ => Err(no_such_route(self.path)),
        }
    }

    /// The path of the container that a request imports into, if it does: its body is taken part by part.
    pub(crate) fn import_target(head: &Parts, route: &Route<'_>) -> Option<String> {
        let segments: Vec<&str> = route.path.split('/').skip(1).collect();
        match segments[..] {
            ["dbs", db, "colls", container, "import"] if head.method == Method::POST => {
                Some(format!("dbs/{db}/colls/{container}"))
            }
            _ => None,
        }
    }

    /// Answers an import into the container at `path`; see [`Admin::import_target`].
    pub(crate) async fn import<S>(&self, path: &str, parts: S) -> Result<Reply, Failure>
    where
        S: Stream<Item = Result<Bytes, BodyError>> + Send,
    {
        let container = container_of(self, path)?;
        containers::import(self, &container, parts).await
    }

    /// Refuses whoever may not send a request with this head.
    ///
    /// # Errors
    /// 401 without a key; 403 when the key does not open so much.
    pub(crate) fn authenticate(state: &State, head: &Parts, route: &Route<'_>) -> Result<(), Failure> {
        let access = auth::authenticate_admin(&state.keys, head)?;
        let segments: Vec<&str> = route.path.split('/').skip(1).collect();
        let needed = routes::key_for(&head.method, &segments);
        if access == Access::ReadOnly && needed == Some(Access::Full) {
            return Err(Failure::new(
                FORBIDDEN,
                "a read-only key opens only GET and queries here",
            ));
        }
        Ok(())
    }

    fn expect(&self, method: &Method) -> Result<(), Failure> {
        if self.head.method == method {
            return Ok(());
        }
        let message = format!("this route takes {method} only. method={}", self.head.method);
        Err(Failure::new(METHOD_NOT_ALLOWED, message))
    }

    fn health(&self) -> Reply {
        let engine = self.state.account.engine_name();
        ok(&json!({"status": "ok", "version": env!("CARGO_PKG_VERSION"), "engine": engine}))
    }

    async fn metrics(&self) -> Result<Reply, Failure> {
        self.expect(&Method::GET)?;
        let state = self.state;
        let figures = {
            let _turn = state.figures_turn().await;
            state.account.container_figures().await?
        };
        let mut text = state.metrics.render(&figures);
        text.push_str(&metrics::render_process(
            state.account.memory(),
            state.account.definitions(),
            state.options.connections.load(Ordering::Relaxed),
        ));
        let mut reply = Reply::json(StatusCode::OK, text);
        reply.fixed(&headers::CONTENT_TYPE, "text/plain; version=0.0.4");
        Ok(reply)
    }

    async fn settings(&self) -> Result<Reply, Failure> {
        self.expect(&Method::PUT)?;
        let members = self.members()?;
        let is_on = members.get("mongoDocumentTtl").and_then(Value::as_bool);
        let is_on = is_on.ok_or_else(|| Error::bad_request("`mongoDocumentTtl` must be true or false"))?;
        self.state.account.set_mongo_document_ttl(is_on).await?;
        Ok(ok(&json!({"mongoDocumentTtl": is_on})))
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

/// 200 with a JSON body.
fn ok(body: &Value) -> Reply {
    Reply::value(StatusCode::OK, body)
}

fn no_such_route(path: &str) -> Failure {
    Failure::new(NOT_FOUND, format!("the admin API has no such route. path=`/{path}`"))
}

/// Refuses what the server's mode does not allow.
fn wrong_mode(message: &str) -> Failure {
    Failure::new(status::of(&ErrorKind::Forbidden), message)
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

/// The path of a container, for [`addressing`].
fn container_of(admin: &Admin<'_>, path: &str) -> Result<std::sync::Arc<bolide_core::Container>, Failure> {
    let route = Route::parse(path).ok_or_else(|| Error::bad_request("the path is not UTF-8 after percent-decoding"))?;
    Ok(addressing::container(&admin.state.account, &route)?)
}
