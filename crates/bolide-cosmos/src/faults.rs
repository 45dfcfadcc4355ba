//! Injected faults: responses for tests, instead of the real ones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bolide_model::{Error, Result};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::operation::Operation;
use crate::routes::Route;
use crate::status::{Failure, Status};

/// The current rules, in the order in which they were set.
#[derive(Debug, Default)]
pub(crate) struct FaultRules {
    // Avoids the lock, because usually there is no rule.
    any: AtomicBool,
    rules: Mutex<Vec<Rule>>,
}

/// A rule: which requests it matches, and their fault.
#[derive(Debug, Clone, PartialEq)]
struct Rule {
    matching: Match,
    fault: Fault,
    /// How often it still applies; `None` means always.
    times: Option<u64>,
    /// As it was set.
    source: Map<String, Value>,
}

/// All members that are set must match.
#[derive(Debug, Clone, Default, PartialEq)]
struct Match {
    method: Option<String>,
    /// The last resource keyword of the path: `docs`, `colls`, `dbs`, …
    resource: Option<String>,
    operation: Option<String>,
    container: Option<String>,
}

/// The fault for a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    delay: Duration,
    /// `None` for a rule that only delays.
    failure: Option<Failure>,
}

impl FaultRules {
    /// Replaces all rules.
    ///
    /// # Errors
    /// `BadRequest` if the list is not as described in `admin-api.md`; then the rules do not change.
    pub(crate) fn replace(&self, rules: &Value) -> Result<()> {
        let rules = rules
            .as_array()
            .ok_or_else(|| Error::bad_request("fault rules must be an array"))?;
        let rules = rules.iter().map(Rule::from_json).collect::<Result<Vec<_>>>()?;
        self.any.store(!rules.is_empty(), Ordering::Release);
        *self.rules.lock() = rules;
        Ok(())
    }

    /// The rules as they could be set again, with the number of times that are left.
    pub(crate) fn to_json(&self) -> Value {
        let rules = self.rules.lock();
        let shown = rules.iter().map(|rule| {
            let mut members = rule.source.clone();
            if let Some(times) = rule.times {
                members.insert("times".to_owned(), times.into());
            }
            Value::Object(members)
        });
        shown.collect()
    }

    /// The fault for a request, if any; counts one use of its rule.
    pub(crate) fn take(&self, operation: Operation, method: &Method, route: &Route<'_>) -> Option<Fault> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let mut rules = self.rules.lock();
        let at = rules
            .iter()
            .position(|rule| rule.matching.fits(operation, method, route))?;
        let fault = rules[at].fault.clone();
        match &mut rules[at].times {
            Some(times @ 2..) => *times -= 1,
            Some(_) => {
                rules.remove(at);
            }
            None => {}
        }
        Some(fault)
    }
}

impl Fault {
    /// Waits, then returns the rule's error, if any.
    pub(crate) async fn apply(self) -> Result<(), Failure> {
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        self.failure.map_or(Ok(()), Err)
    }
}

impl Match {
    fn fits(&self, operation: Operation, method: &Method, route: &Route<'_>) -> bool {
        let fits =
            |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(is));
        fits(&self.method, method.as_str())
            && fits(&self.resource, route.signed().resource_type)
            && fits(&self.operation, operation.name())
            && self
                .container
                .as_ref()
                .is_none_or(|container| *container == route.container)
    }

    fn from_json(value: Option<&Value>) -> Result<Match> {
        let Some(value) = value else {
            return Ok(Match::default());
        };
        let members = value
            .as_object()
            .ok_or_else(|| Error::bad_request("`match` of a fault rule must be an object"))?;
        if let Some(unknown) = members
            .keys()
            .find(|key| !["method", "resource", "operation", "container"].contains(&key.as_str()))
        {
            return Err(Error::bad_request(format!(
                "unknown member of `match`. name=`{unknown}`"
            )));
        }
        let operation = text(members, "operation")?;
        let is_known = |name: &String| Operation::all().any(|known| known.name().eq_ignore_ascii_case(name));
        if let Some(unknown) = operation.as_ref().filter(|name| !is_known(name)) {
            return Err(Error::bad_request(format!(
                "unknown operation in a fault rule. name=`{unknown}`"
            )));
        }
        Ok(Match {
            method: text(members, "method")?,
            resource: text(members, "resource")?,
            operation,
            container: text(members, "container")?,
        })
    }
}

impl Rule {
    fn from_json(value: &Value) -> Result<Rule> {
        let members = value
            .as_object()
            .ok_or_else(|| Error::bad_request("a fault rule must be an object"))?;
        let matching = Match::from_json(members.get("match"))?;
        let delay = Duration::from_millis(number(members, "delayMs")?.unwrap_or(0));
        let failure = number(members, "status")?
            .map(|status| failure(status, members))
            .transpose()?;
        if failure.is_none() && delay.is_zero() {
            return Err(Error::bad_request("a fault rule needs a `status` or a `delayMs`"));
        }
        let times = number(members, "times")?;
        if times == Some(0) {
            return Err(Error::bad_request("`times` of a fault rule must be at least 1"));
        }
        Ok(Rule {
            matching,
            fault: Fault { delay, failure },
            times,
            source: members.clone(),
        })
    }
}

fn failure(status: u64, members: &Map<String, Value>) -> Result<Failure> {
    let http = u16::try_from(status)
        .ok()
        .and_then(|status| StatusCode::from_u16(status).ok());
    let http = http.filter(|http| http.is_client_error() || http.is_server_error());
    let http =
        http.ok_or_else(|| Error::bad_request(format!("`status` of a fault rule must be 400 to 599. value={status}")))?;
    let sub = u32::try_from(number(members, "subStatus")?.unwrap_or(0));
    let sub = sub.map_err(|_| Error::bad_request("`subStatus` of a fault rule is too large"))?;
    let mut failure = Failure::new(
        Status {
            http,
            sub,
            code: "InjectedFault",
        },
        "answered so by a fault rule",
    );
    failure.retry_after = number(members, "retryAfterMs")?.map(Duration::from_millis);
    Ok(failure)
}

fn number(members: &Map<String, Value>, name: &str) -> Result<Option<u64>> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let number = value.as_u64();
            number
                .map(Some)
                .ok_or_else(|| Error::bad_request(format!("`{name}` of a fault rule must be a whole number from 0")))
        }
    }
}

fn text(members: &Map<String, Value>, name: &str) -> Result<Option<String>> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Error::bad_request(format!("`{name}` of a fault rule must be a string"))),
    }
}

#[cfg(test)]
mod tests;
