//! `listCommands`.

use bolide_mql::Result;
use bson::raw::CStr;
use bson::{RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::table::COMMANDS;

/// `{listCommands: 1}` → `{commands: {name: {help, requiresAuth, …}}}`.
pub async fn run(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    let mut commands = RawDocumentBuf::new();
    for command in COMMANDS.iter().filter(|command| command.exists_in(context.state)) {
        let Ok(name) = <&CStr>::try_from(command.name) else {
            continue;
        };
        let help = rawdoc! {
            "help": command.help,
            "requiresAuth": !command.is_before_authentication,
            "secondaryOk": false,
            "adminOnly": command.is_admin_only,
            "apiVersions": if command.is_in_stable_api { rawdoc! { "0": "1" } } else { rawdoc! {} },
            "deprecatedApiVersions": [],
        };
        commands.append(name, help);
    }
    Ok(rawdoc! { "commands": commands }.into())
}
