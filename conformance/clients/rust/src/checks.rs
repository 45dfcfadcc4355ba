//! Named checks and their helpers.
//!
//! A check is an async function of the tour's world that returns an error when its claim does not hold; its name is the
//! claim.

use std::error::Error;
use std::fmt::Debug;
use std::future::Future;

use azure_data_cosmos::CosmosError;

pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Runs checks and counts them.
#[derive(Default)]
pub struct Tour {
    passed: usize,
    failed: usize,
}

impl Tour {
    /// Runs one check and prints `ok name` or `FAIL name: reason`; underscores in the name are shown as blanks.
    pub async fn check(&mut self, name: &str, check: impl Future<Output = Outcome>) {
        let name = name.replace('_', " ");
        match check.await {
            Ok(()) => {
                self.passed += 1;
                println!("ok {name}");
            }
            Err(error) => {
                self.failed += 1;
                println!("FAIL {name}: {}", one_line(&error.to_string()));
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
        $($tour.check(stringify!($check), $check($world)).await;)+
    };
}

/// Fails unless both values are equal; the message shows both.
pub fn equal<T: PartialEq<U> + Debug, U: Debug>(actual: T, expected: U, what: &str) -> Outcome {
    if actual == expected {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, got {actual:?}").into())
}

/// Expects the server to refuse the call with `status`.
pub async fn refused<T>(status: u16, call: impl Future<Output = Result<T, CosmosError>>) -> Outcome {
    match call.await {
        Ok(_) => Err(format!("expected status {status}, but the call succeeded").into()),
        Err(error) => equal(
            u16::from(error.status().status_code()),
            status,
            &format!("status of `{error}`"),
        ),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(400)
        .collect()
}
