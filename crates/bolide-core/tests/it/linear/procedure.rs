//! The stored procedure that clients race with: it executes their operations in one transaction and handles their errors.

use std::sync::Arc;

use bolide_core::{Account, Container, ExecuteProcedure, Executed, ScriptName};
use serde_json::{Value, json};

use super::action::{Action, Body, Refused, Seen};
use crate::test_container::{define_procedure, key};

const NAME: &str = "race";

/// Returns for each step: a number for an error, `null` for a delete, otherwise the item and whether it was created.
const SOURCE: &str = "function (steps) {
    var x = getContext(), c = x.getCollection(), l = c.getSelfLink(), seen = [];
    function next(i) {
        if (i === steps.length) return x.getResponse().setBody(seen);
        var step = steps[i], link = c.getAltLink() + '/docs/' + step.id, options = step.etag ? {etag: step.etag} : {};
        function done(created) {
            return function (e, item) {
                seen.push(e ? e.number : step.what === 'delete' ? null : {item: item, created: created});
                next(i + 1);
            };
        }
        switch (step.what) {
            case 'create': return c.createDocument(l, step.item, done(true));
            case 'replace': return c.replaceDocument(link, step.item, options, done(false));
            case 'delete': return c.deleteDocument(link, options, done(false));
            case 'read': return c.readDocument(link, done(false));
            case 'upsert': return c.readDocument(link, function (missing) {
                c.upsertDocument(l, step.item, done(!!missing));
            });
            case 'increment': return c.readDocument(link, function (e, item) {
                if (e) return done(false)(e);
                item.n += 1;
                c.replaceDocument(link, item, options, done(false));
            });
        }
    }
    next(0);
}";

pub async fn define(account: &Account, container: &Arc<Container>) {
    define_procedure(account, container, NAME, SOURCE).await;
}

pub fn call(actions: &[Action]) -> ExecuteProcedure {
    let steps: Vec<Value> = actions.iter().map(step).collect();
    ExecuteProcedure {
        name: ScriptName::Id(NAME.into()),
        partition_key: key("p"),
        arguments: json!([steps]).to_string(),
        is_logging: false,
    }
}

fn step(action: &Action) -> Value {
    let item = |body: &Body| {
        let mut item = json!({"id": body.id, "pk": "p", "n": body.n, "u": body.u});
        if let Some(ttl) = body.ttl {
            item["ttl"] = ttl.into();
        }
        item
    };
    let id = action.id();
    match action {
        Action::Create(body) => json!({"what": "create", "id": id, "item": item(body)}),
        Action::Upsert(body) => json!({"what": "upsert", "id": id, "item": item(body)}),
        Action::Replace(body, etag) => json!({"what": "replace", "id": id, "item": item(body), "etag": etag}),
        Action::Increment(_, etag) => json!({"what": "increment", "id": id, "etag": etag}),
        Action::Delete(_, etag) => json!({"what": "delete", "id": id, "etag": etag}),
        Action::Read(_) => json!({"what": "read", "id": id}),
    }
}

/// Returns the outcome of each operation.
pub fn outcomes(actions: &[Action], executed: &Executed) -> Vec<Result<Seen, Refused>> {
    let body = executed.body.as_deref().expect("the procedure sets a body");
    let seen: Vec<Value> = serde_json::from_str(body).expect("a list");
    let both = actions.iter().zip(&seen);
    both.map(|(action, seen)| outcome(action, seen)).collect()
}

fn outcome(action: &Action, seen: &Value) -> Result<Seen, Refused> {
    let item = &seen["item"];
    let number = |name: &str| item[name].as_i64().expect("a whole number");
    let etag = || item["_etag"].as_str().expect("an etag").to_owned();
    match seen.as_u64() {
        Some(404) => Err(Refused::NotFound),
        Some(409) => Err(Refused::Conflict),
        Some(412) => Err(Refused::Precondition),
        Some(other) => panic!("no operation of a script is refused so: {other}"),
        None if seen.is_null() => Ok(Seen::Deleted),
        None if matches!(action, Action::Read(_)) => Ok(Seen::Found {
            n: number("n"),
            u: number("u"),
            etag: etag(),
        }),
        None => Ok(Seen::Written {
            created: seen["created"].as_bool().expect("a claim"),
            n: number("n"),
            etag: etag(),
        }),
    }
}
