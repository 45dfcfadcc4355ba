//! `profile`.

use bolide_mql::value::number;
use bolide_mql::{Code, Error, Result};
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{profile: -1 | 0}` → `{was: 0, slowms, sampleRate}`. Profiling cannot be switched on.
pub async fn run(_: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let level = arguments.first().and_then(number::whole);
    arguments.integer("slowms")?;
    arguments.value("sampleRate");
    let filter = arguments.value("filter");
    arguments.finish()?;
    if !matches!(level, Some(-1 | 0)) || filter.is_some() {
        return Err(Error::new(Code::NOT_IMPLEMENTED, "profiling is not supported"));
    }
    Ok(rawdoc! { "was": 0, "slowms": 100, "sampleRate": 1.0 }.into())
}
