//! `killOp`.

use bolide_mql::{Error, Result};
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{killOp: 1, op}` → `{info}`. A write runs to its end.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let op = arguments.integer("op")?;
    let op = arguments.required("op", op)?;
    arguments.finish()?;
    let op = i32::try_from(op)
        .map_err(|_| Error::bad_value(format!("invalid op : {op}. Op ID cannot be represented with 32 bits")))?;
    context.state.operations.kill(op);
    Ok(rawdoc! { "info": "attempting to kill op" }.into())
}
