//! Queries.

use bolide_model::{Error, Result};

pub(crate) struct Condition;
impl Condition {
    pub fn compile(_: &str) -> Result<Condition> {
        Err(Error::not_supported("conditions"))
    }
    pub fn holds(&self, _: &[u8]) -> Result<bool> {
        Ok(true)
    }
}
pub(crate) fn query_error(error: Error) -> Error {
    error
}
