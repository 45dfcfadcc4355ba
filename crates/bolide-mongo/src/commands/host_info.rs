//! `hostInfo`.

use bolide_mql::Result;
use bson::{DateTime, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{hostInfo: 1}` → the machine.
pub async fn run(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    let state = context.state;
    let host = &state.options.host;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let reply = rawdoc! {
        "system": {
            "currentTime": DateTime::from_millis(state.account.shown_time().await.0),
            "hostname": host.name.as_str(),
            "cpuAddrSize": 64,
            "memSizeMB": host.memory_mib,
            "memLimitMB": host.memory_mib,
            "numCores": i32::try_from(cores).unwrap_or(i32::MAX),
            "cpuArch": std::env::consts::ARCH,
            "numaEnabled": false,
        },
        "os": { "type": std::env::consts::OS, "name": std::env::consts::OS, "version": "" },
        "extra": {},
    };
    Ok(reply.into())
}
