//! `getCmdLineOpts`.

use bolide_mql::Result;
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{getCmdLineOpts: 1}` → `{argv, parsed}`. The real arguments may have keys, so only what clients see anyway is shown.
pub async fn run(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    let options = &context.state.options;
    let authorization = if options.requires_authentication {
        "enabled"
    } else {
        "disabled"
    };
    let reply = rawdoc! {
        "argv": ["bolide"],
        "parsed": {
            "net": { "port": i32::from(options.host.port) },
            "replication": { "replSet": options.set_name.as_str() },
            "security": { "authorization": authorization },
        },
    };
    Ok(reply.into())
}
