//! The Java archive: installed into a repository of its own, and used from there by a project of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Place, clean, files, step};
use crate::Result;
use crate::checks::answers;
use crate::summary::Outcome;

/// Where a repository has our archives.
const GROUP: &str = "io/github/bolide-db";

pub fn test(place: &Place<'_>) -> Result<Outcome> {
    if !answers(Command::new("java").arg("--version")) || !answers(Command::new("mvn").arg("--version")) {
        return Ok(Outcome::Skipped("there is no JDK with Maven".to_owned()));
    }
    // The SDK and JUnit are kept for the next time, our archives are not.
    let repository = place.folder.with_file_name("java-repository");
    let ours = repository.join(GROUP);
    files::emptied(&ours)?;
    let source = place.source("packages/java");
    step(
        maven(&source, &repository, &place.folder.join("build"), "install"),
        "mvn install",
    )?;
    let mut test = maven(&source.join("tests"), &repository, &place.folder.join("tests"), "test");
    test.env("BOLIDE_BIN", place.binary);
    step(test, "mvn test")?;
    fs::remove_dir_all(ours)?;
    Ok(Outcome::Passed)
}

fn maven(project: &Path, repository: &Path, build: &Path, goal: &str) -> Command {
    let mut command = Command::new("mvn");
    command
        .current_dir(project)
        .args(["--batch-mode", "--quiet", "-Dstyle.color=never"]);
    command.arg(format!("-Dmaven.repo.local={}", repository.display()));
    command.arg(format!("-Dbolide.build={}", build.display()));
    command.arg(goal);
    clean(command)
}
