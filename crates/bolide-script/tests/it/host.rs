//! A host with a few documents, and a pace that counts calls instead of reading a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_script::{
    Call, Finished, Host, Kind, Limits, Operation, OperationError, Pace, Reply, ScriptError, Settings, run,
};
use serde_json::{Value, json};

pub const SELF_LINK: &str = "dbs/AAAAAA==/colls/AAAAAIAAAAA=/";
pub const ALT_LINK: &str = "dbs/d/colls/c";
/// The time that `Date` shows.
pub const NOW_MS: i64 = 1_700_000_000_123;

/// Over after a number of calls.
pub struct CountingPace {
    left: AtomicU64,
}

impl CountingPace {
    pub fn times(times: u64) -> Arc<CountingPace> {
        Arc::new(CountingPace {
            left: AtomicU64::new(times),
        })
    }
}

impl Pace for CountingPace {
    fn is_over(&self) -> bool {
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_err()
    }

    fn now_ms(&self) -> i64 {
        NOW_MS
    }
}

/// Returns every operation as its own result, up to a number of operations.
pub struct Echo {
    pub accepted: usize,
}

impl Host for Echo {
    fn accepts(&mut self) -> bool {
        let accepts = self.accepted > 0;
        self.accepted = self.accepted.saturating_sub(1);
        accepts
    }

    fn operate(&mut self, operation: Operation) -> Result<Reply, OperationError> {
        let resource = match operation {
            Operation::Create { document, is_id_needed } => {
                let document: Value = serde_json::from_str(&document).expect("JSON");
                if is_id_needed && document.get("id").is_none() {
                    return Err(refused(400, "no id"));
                }
                document
            }
            Operation::Upsert { document, .. } => serde_json::from_str(&document).expect("JSON"),
            Operation::Query {
                page_size: Some(1),
                continuation,
                ..
            } => match continuation.as_deref() {
                None => return Ok(page(r#"[{"n":3,"tags":["x"]}]"#, Some("2"))),
                Some("2") => return Ok(page(r#"[{"n":1,"tags":["y","z"]}]"#, None)),
                Some(_) => return Err(refused(400, "not a continuation")),
            },
            Operation::Query { text, parameters, .. } if text.contains('@') => {
                json!([{ "text": text, "parameters": parameters }])
            }
            Operation::Query { continuation: None, .. } => return Ok(page(r#"[{"n":3,"tags":["x"]}]"#, Some("2"))),
            Operation::Query { .. } => return Ok(page(r#"[{"n":1,"tags":["y","z"]}]"#, None)),
            Operation::Read {
                if_none_match: Some(_), ..
            } => {
                return Ok(Reply {
                    not_modified: true,
                    ..Reply::default()
                });
            }
            Operation::Read { target, .. } => json!(format!("{target:?}")),
            Operation::Replace { .. } => return Err(refused(412, "another version")),
            Operation::Delete { .. } => return Ok(Reply::default()),
        };
        Ok(Reply {
            resource: resource.to_string(),
            ..Reply::default()
        })
    }
}

fn page(rows: &str, continuation: Option<&str>) -> Reply {
    Reply {
        resource: rows.to_owned(),
        continuation: continuation.map(str::to_owned),
        not_modified: false,
    }
}

fn refused(number: u32, message: &str) -> OperationError {
    OperationError {
        number,
        message: message.to_owned(),
    }
}

pub fn settings(pace: Arc<dyn Pace>) -> Settings {
    Settings {
        limits: Limits {
            memory_bytes: 16 * 1024 * 1024,
            ..Limits::default()
        },
        pace,
        random_seed: 7,
    }
}

pub fn procedure(source: &str, arguments: &str) -> Call {
    Call {
        source: source.to_owned(),
        kind: Kind::Procedure {
            arguments: arguments.to_owned(),
        },
        self_link: SELF_LINK.to_owned(),
        alt_link: ALT_LINK.to_owned(),
        partition_key: r#"{"paths":["/pk"]}"#.to_owned(),
        is_logging: true,
    }
}

/// Runs a stored procedure with generous limits.
pub fn execute(source: &str) -> Result<Finished, ScriptError> {
    run(
        &procedure(source, "[]"),
        settings(CountingPace::times(100_000)),
        Echo { accepted: usize::MAX },
    )
}

/// The body that a stored procedure sets.
pub fn body(source: &str) -> Value {
    let finished = execute(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    finished
        .body
        .map_or(Value::Null, |body| serde_json::from_str(&body).expect("a body is JSON"))
}
