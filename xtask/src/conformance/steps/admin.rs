//! Steps that an ordinary client cannot do: they use the admin API of `docs/admin-api.md`.

use serde_json::json;
use ureq::http::Method;

use super::{answer, figures};
use crate::Result;
use crate::conformance::expect::StepResult;
use crate::conformance::scenario::{Fault, Import, Load, OfContainer, Purge};
use crate::conformance::session::Session;
use crate::conformance::wire::Request;

/// Arms a crash point.
pub fn fault(session: &Session, fault: &Fault) -> Result<StepResult> {
    let body = json!({"point": fault.point, "after": fault.after});
    figures(&session.client.send(Request::admin(Method::PUT, "faults").json(&body))?)
}

/// Runs the purge. If the connection breaks and the process has exited, the result says so.
pub fn purge(session: &mut Session, purge: &Purge) -> Result<StepResult> {
    let mut body = json!({"mode": purge.mode.as_deref().unwrap_or("force")});
    if let Some(max) = purge.max {
        body["max"] = json!(max);
    }
    let request = on_container(session, Method::POST, &purge.container, "purge").json(&body);
    match session.client.send(request) {
        Ok(response) => figures(&response),
        Err(_) if session.has_died() => Ok(StepResult::default().with("died", true)),
        Err(error) => Err(error.into()),
    }
}

pub fn stats(session: &Session, of: &OfContainer) -> Result<StepResult> {
    figures(
        &session
            .client
            .send(on_container(session, Method::GET, &of.container, "ttl"))?,
    )
}

pub fn verify(session: &Session, of: &OfContainer) -> Result<StepResult> {
    let response = session
        .client
        .send(on_container(session, Method::POST, &of.container, "verify"))?;
    let mut answer = figures(&response)?;
    // The problems say more than the counts that differ because of them.
    if let Some(problems) = answer.fields.get("problems").filter(|problems| **problems != json!([])) {
        answer.message = Some(problems.to_string());
    }
    Ok(answer)
}

pub fn load(session: &Session, load: &Load) -> Result<StepResult> {
    let request = on_container(session, Method::POST, &load.container, "load").json(&json!({ "ru": load.ru }));
    Ok(answer(&session.client.send(request)?))
}

pub fn import(session: &Session, import: &Import) -> Result<StepResult> {
    let lines: String = import.items.iter().map(|item| format!("{item}\n")).collect();
    let request = on_container(session, Method::POST, &import.container, "import").text(lines, "application/x-ndjson");
    figures(&session.client.send(request)?)
}

fn on_container(session: &Session, method: Method, container: &str, what: &str) -> Request {
    Request::admin(method, &format!("dbs/{}/colls/{container}/{what}", session.database))
}
