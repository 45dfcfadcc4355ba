//! `buildInfo`.

use bolide_mql::Result;
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use crate::limits;

/// The version of MongoDB whose protocol and language this is.
pub const VERSION: &str = "7.0.0";

/// `{buildInfo: 1}` → the version.
pub async fn run(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    let reply = rawdoc! {
        "version": VERSION,
        "gitVersion": "unknown",
        "modules": [],
        "allocator": "mimalloc",
        "javascriptEngine": "none",
        "sysInfo": "deprecated",
        "versionArray": [7, 0, 0, 0],
        "openssl": { "running": "none", "compiled": "none" },
        "buildEnvironment": {
            "target_arch": std::env::consts::ARCH,
            "target_os": std::env::consts::OS,
        },
        "bits": 64,
        "debug": cfg!(debug_assertions),
        "maxBsonObjectSize": i32::try_from(limits::DOCUMENT_BYTES).unwrap_or(i32::MAX),
        "storageEngines": [context.state.account.engine_name()],
        "bolide": { "version": env!("CARGO_PKG_VERSION") },
    };
    Ok(reply.into())
}
