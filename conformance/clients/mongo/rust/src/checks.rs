//! Named checks and their helpers.
//!
//! A check is an async function of the tour's world that returns an error when its claim does not hold; its name is the claim.

use std::error::Error;
use std::future::Future;

use bson::Bson;
use mongodb::error::{ErrorKind, WriteFailure};

pub type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Runs checks and counts them.
#[derive(Default)]
pub struct Tour {
    passed: usize,
    failed: usize,
}

impl Tour {
    /// Runs one check and prints `ok name` or `FAIL name: reason`; underscores in a function's name are shown as blanks.
    pub async fn check(&mut self, name: &str, check: impl Future<Output = Outcome>) {
        match check.await {
            Ok(()) => {
                self.passed += 1;
                println!("ok {name}");
            }
            Err(error) => {
                self.failed += 1;
                let text: Vec<String> = error.to_string().split_whitespace().map(str::to_owned).collect();
                println!("FAIL {name}: {}", text.join(" ").chars().take(400).collect::<String>());
            }
        }
    }

    /// Prints the totals and returns how many checks failed.
    pub fn finish(self) -> usize {
        println!("{} passed, {} failed", self.passed, self.failed);
        self.failed
    }
}

/// Runs checks under the names of their functions: `checks!(tour, world, first_claim, second_claim)`.
#[macro_export]
macro_rules! checks {
    ($tour:expr, $world:expr, $($check:ident),+ $(,)?) => {
        $($tour.check(&stringify!($check).replace('_', " "), $check($world)).await;)+
    };
}

/// Fails unless both values are equal; numbers are equal by value, and the order of fields counts.
pub fn equal(actual: impl Into<Bson>, expected: impl Into<Bson>, what: &str) -> Outcome {
    let (actual, expected) = (actual.into(), expected.into());
    if same(&actual, &expected) {
        return Ok(());
    }
    Err(format!("{what}: expected {expected}, got {actual}").into())
}

fn same(one: &Bson, other: &Bson) -> bool {
    match (one, other) {
        (Bson::Document(one), Bson::Document(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|((key, value), (name, expected))| key == name && same(value, expected))
        }
        (Bson::Array(one), Bson::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        _ => match (number(one), number(other)) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        },
    }
}

/// Every number of the tour is exact as a double.
pub fn number(value: &Bson) -> Option<f64> {
    match value {
        Bson::Int32(number) => Some(f64::from(*number)),
        Bson::Int64(number) => Some(*number as f64),
        Bson::Double(number) => Some(*number),
        _ => None,
    }
}

/// Expects the server to refuse a call with an error code; returns the error.
pub fn refused<T>(code: i32, result: mongodb::error::Result<T>) -> Outcome<mongodb::error::Error> {
    match result {
        Ok(_) => Err(format!("expected code {code}, but the call succeeded").into()),
        Err(error) if code_of(&error) == Some(code) => Ok(error),
        Err(error) => Err(format!("expected code {code}, got {error}").into()),
    }
}

fn code_of(error: &mongodb::error::Error) -> Option<i32> {
    match error.kind.as_ref() {
        ErrorKind::Command(error) => Some(error.code),
        ErrorKind::Write(WriteFailure::WriteError(error)) => Some(error.code),
        ErrorKind::InsertMany(error) => error.write_errors.as_ref()?.first().map(|error| error.code),
        ErrorKind::Authentication { .. } => match std::error::Error::source(error) {
            Some(source) => source.downcast_ref().and_then(code_of),
            None => None,
        },
        _ => None,
    }
}
