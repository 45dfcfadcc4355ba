//! A Java key store, by Java's own `keytool`, which knows every format of them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::candidate::Candidate;
use super::{added_name, is_added_name};
use crate::files::{self, Readers};
use crate::server::Failure;

/// The variable through which `keytool` gets the password: arguments are visible to every user of the machine.
const PASSWORD_VARIABLE: &str = "BOLIDE_STOREPASS";

/// Imports the certificate, unless the store has it.
///
/// # Errors
/// No `keytool`, or its message: a wrong password, a file that cannot be written.
pub fn add(store: &Path, password: &str, candidate: &Candidate) -> Result<String, Failure> {
    let alias = added_name(&candidate.facts.fingerprint);
    let place = store.display();
    if store.exists() && aliases(store, password)?.contains(&alias) {
        return Ok(format!("{place} has the certificate already. alias=`{alias}`\n"));
    }
    let file = store.with_extension("bolide-new.pem");
    let written = files::write(&file, &candidate.pem(), Readers::Everybody);
    written.map_err(|error| Failure::new(format!("--keystore: cannot write {}: {error}", file.display())))?;
    let arguments = ["-importcert", "-noprompt", "-alias", &alias, "-file"];
    let imported = keytool(store, password, |command| {
        command.args(arguments).arg(&file);
    });
    let _ = std::fs::remove_file(&file);
    imported?;
    Ok(format!(
        "{place} has the certificate now. alias=`{alias}`\n  java -Djavax.net.ssl.trustStore={place} -Djavax.net.ssl.trustStorePassword=… …\n"
    ))
}

/// Removes every certificate that [`add`] imported. The store stays, also if it is empty now.
///
/// # Errors
/// As [`add`].
pub fn remove(store: &Path, password: &str) -> Result<String, Failure> {
    let place = store.display();
    if !store.exists() {
        return Ok(format!("{place}: there is no such file\n"));
    }
    let added: Vec<String> = aliases(store, password)?;
    for alias in &added {
        keytool(store, password, |command| {
            command.args(["-delete", "-alias", alias]);
        })?;
    }
    Ok(match added.len() {
        0 => format!("{place} has no certificate that `bolide trust` added\n"),
        count => format!("{place}: removed. certificates={count}\n"),
    })
}

/// The aliases that this command made.
fn aliases(store: &Path, password: &str) -> Result<Vec<String>, Failure> {
    let output = keytool(store, password, |command| {
        command.arg("-list");
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    // Each entry has a line: its alias, a comma, and more that depends on the language.
    let aliases = text.lines().filter_map(|line| line.split(',').next());
    Ok(aliases
        .filter(|alias| is_added_name(alias))
        .map(str::to_owned)
        .collect())
}

fn keytool(store: &Path, password: &str, arguments: impl FnOnce(&mut Command)) -> Result<Output, Failure> {
    let mut command = Command::new(program());
    command.stdin(Stdio::null()).env(PASSWORD_VARIABLE, password);
    arguments(&mut command);
    command
        .arg("-keystore")
        .arg(store)
        .args(["-storepass:env", PASSWORD_VARIABLE]);
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::new(
            "--keystore: there is no keytool: install a Java runtime, or set JAVA_HOME. By hand: keytool -importcert -noprompt -alias bolide \
             -file bolide.pem -keystore FILE, with the file of `bolide trust --pem bolide.pem`",
        ),
        _ => Failure::new(format!("--keystore: cannot run keytool: {error}")),
    })?;
    if output.status.success() {
        return Ok(output);
    }
    // It reports errors on standard output.
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let why = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("no reason given");
    Err(Failure::new(format!("--keystore: {}: {why}", store.display())))
}

/// That of `JAVA_HOME`, or the first one on the path.
fn program() -> PathBuf {
    let name = if cfg!(windows) { "keytool.exe" } else { "keytool" };
    let home = std::env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin").join(name));
    home.filter(|program| program.is_file()).unwrap_or_else(|| name.into())
}
