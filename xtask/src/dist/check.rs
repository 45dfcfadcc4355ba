//! The check `dist` of `cargo xtask test`: packs a development build twice, and does with the archive what a user does.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::pack;
use crate::Result;
use crate::project::{Project, succeed};
use crate::summary::Outcome;

/// Name of the target in the archive: the development build is not a release.
const TARGET: &str = "development";

/// Packs, unpacks, checks the checksum, the completions and the man pages, and measures the time to the first request.
///
/// # Errors
/// The first part that fails.
pub fn check(project: &Project) -> Result<Outcome> {
    let files = tempfile::tempdir()?;
    let binary = project.build_server()?;
    let archive = pack(project, TARGET, &binary, &files.path().join("one"))?;
    let again = pack(project, TARGET, &binary, &files.path().join("two"))?;
    if fs::read(&archive)? != fs::read(&again)? {
        return Err("two archives of the same binary differ".into());
    }
    let directory = archive.parent().ok_or("an archive without a directory")?;
    let name = archive
        .file_name()
        .ok_or("an archive without a name")?
        .to_string_lossy()
        .into_owned();
    let mut skipped = Vec::new();
    if !run_if_there(
        directory,
        &["sha256sum", "--check", "--quiet", &format!("{name}.sha256")],
    )? {
        skipped.push("sha256sum");
    }
    succeed(Command::new("tar").current_dir(directory).args(["-xzf", &name]), "tar")?;
    let folder = directory.join(name.trim_end_matches(".tar.gz"));
    for arguments in [
        &["bash", "-n", "completions/bolide.bash"][..],
        &["zsh", "-n", "completions/_bolide"],
        &["fish", "--no-execute", "completions/bolide.fish"],
        &["man", "--warnings=w", "-l", "man/bolide.1"],
        &["mandoc", "-T", "lint", "-W", "error", "man/bolide.1"],
    ] {
        if !run_if_there(&folder, arguments)? {
            skipped.push(arguments[0]);
        }
    }
    let script = project.root().join("packaging/first_request.py");
    let script = script.display().to_string();
    if !run_if_there(directory, &["python3", &script, &name])? {
        skipped.push("python3");
    }
    Ok(match skipped.as_slice() {
        [] => Outcome::Passed,
        names => Outcome::PassedBut(format!("without what is not installed: {}", names.join(", "))),
    })
}

/// Runs a program in a directory; `false` if it is not installed.
fn run_if_there(directory: &Path, arguments: &[&str]) -> Result<bool> {
    let mut command = Command::new(arguments[0]);
    command
        .current_dir(directory)
        .args(&arguments[1..])
        .stdin(Stdio::null())
        .env("MANPAGER", "cat");
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        output => output?,
    };
    if output.status.success() {
        // What is measured is of interest, and a rendered page is not.
        if arguments[0] == "python3" {
            print!("{}", String::from_utf8_lossy(&output.stdout));
        }
        return Ok(true);
    }
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    Err(format!("{}: {}", arguments.join(" "), String::from_utf8_lossy(&text)).into())
}
