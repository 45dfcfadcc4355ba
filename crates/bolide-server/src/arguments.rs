//! Moves keys from the arguments into the environment: `ps` shows arguments to every user of the machine.
//!
//! The process executes itself again, with the same id and with the keys in its environment, which only its owner can read.

use std::ffi::{OsStr, OsString};

use bolide_model::account_key::WELL_KNOWN_KEY;

/// Options with a secret, and the environment variables for them.
const SECRETS: [(&str, &str); 8] = [
    ("--key", "BOLIDE_KEY"),
    ("--secondary-key", "BOLIDE_SECONDARY_KEY"),
    ("--readonly-key", "BOLIDE_READONLY_KEY"),
    ("--secondary-readonly-key", "BOLIDE_SECONDARY_READONLY_KEY"),
    ("--from-key", "BOLIDE_FROM_KEY"),
    ("--to-key", "BOLIDE_TO_KEY"),
    // These may have a password.
    ("--store", "BOLIDE_STORE"),
    ("--to-store", "BOLIDE_TO_STORE"),
];

/// Executes the process again if there are keys among its arguments. Returns if there are none, or if this fails; then they stay visible.
pub fn hide_keys() {
    let mut arguments = std::env::args_os();
    let name = arguments.next();
    let (kept, secrets) = split(arguments);
    if !secrets.is_empty() {
        start_anew(name, kept, secrets);
    }
}

#[cfg(unix)]
fn start_anew(name: Option<OsString>, arguments: Vec<OsString>, secrets: Vec<(&'static str, OsString)>) {
    use std::os::unix::process::CommandExt as _;
    let Ok(binary) = std::env::current_exe() else {
        return;
    };
    let mut command = std::process::Command::new(&binary);
    command.args(arguments).envs(secrets);
    if let Some(name) = name {
        command.arg0(name);
    }
    // Returns only on failure.
    let _ = command.exec();
}

#[cfg(not(unix))]
fn start_anew(_name: Option<OsString>, _arguments: Vec<OsString>, _secrets: Vec<(&'static str, OsString)>) {}

/// Moves the secrets of valid arguments into environment variables. The well-known key is not a secret.
fn split(arguments: impl IntoIterator<Item = OsString>) -> (Vec<OsString>, Vec<(&'static str, OsString)>) {
    let (mut kept, mut secrets) = (Vec::new(), Vec::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            kept.push(argument);
            kept.extend(arguments.by_ref());
            break;
        }
        match secret(&argument) {
            Some((variable, Some(value))) => keep_or_hide(argument, None, variable, value, &mut kept, &mut secrets),
            Some((variable, None)) => {
                if let Some(value) = arguments.next() {
                    keep_or_hide(argument, Some(value.clone()), variable, value, &mut kept, &mut secrets);
                }
            }
            None => kept.push(argument),
        }
    }
    (kept, secrets)
}

fn keep_or_hide(
    option: OsString,
    next: Option<OsString>,
    variable: &'static str,
    value: OsString,
    kept: &mut Vec<OsString>,
    secrets: &mut Vec<(&'static str, OsString)>,
) {
    if value == WELL_KNOWN_KEY {
        kept.push(option);
        kept.extend(next);
    } else {
        secrets.push((variable, value));
    }
}

/// The environment variable for an option with a secret, and the value if it is in the same argument.
fn secret(argument: &OsStr) -> Option<(&'static str, Option<OsString>)> {
    let text = argument.to_str()?;
    let (option, value) = match text.split_once('=') {
        Some((option, value)) => (option, Some(OsString::from(value))),
        None => (text, None),
    };
    let (_, variable) = SECRETS.iter().find(|(name, _)| *name == option)?;
    Some((variable, value))
}

#[cfg(test)]
mod tests;
