//! The packages for npm: packed from the binary, installed from the packed files beside the SDK, Vitest and Jest.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Place, check_version_line, clean, files, line_of, step};
use crate::Result;
use crate::checks::answers;
use crate::summary::Outcome;

/// What the tests need: Vitest's requirement is the highest.
const NODE: &str = "process.exit(Number(process.versions.node.split('.')[0]) < 20 ? 1 : 0)";

pub fn test(place: &Place<'_>) -> Result<Outcome> {
    if !answers(Command::new("node").args(["-e", NODE])) || !answers(Command::new("npm").arg("--version")) {
        return Ok(Outcome::Skipped("there is no Node.js 20 or newer with npm".to_owned()));
    }
    let source = place.source("packages/npm");
    let dist = place.folder.join("dist");
    let mut platform = Command::new("node");
    platform.args(["-p", "`${process.platform}-${process.arch}`"]);
    let platform = line_of(clean(platform), "node")?;
    let mut build = Command::new("node");
    build.arg(source.join("build.mjs")).arg("--out").arg(&dist);
    build
        .arg("--binary")
        .arg(format!("{platform}={}", place.binary.display()));
    step(clean(build), "packages/npm/build.mjs")?;

    let project = place.folder.join("project");
    files::copy(&source.join("tests"), &project)?;
    step(npm(&project, &["ci"]), "npm ci")?;
    let before = packages(&project)?;
    let mut install = npm(&project, &["install", "--no-save"]);
    install.arg(dist.join(format!("bolide-db-{}.tgz", place.version)));
    install.arg(dist.join(format!("bolide-db-{platform}-{}.tgz", place.version)));
    step(install, "npm install of the packed files")?;

    let mut version = Command::new(project.join("node_modules/.bin/bolide"));
    version.arg("--version");
    check_version_line(&line_of(clean(version), "bolide --version")?, place.version)?;
    step(
        node(&project, &["--test", "--test-reporter=spec", "node/"]),
        "node --test",
    )?;
    step(npx(&project.join("vitest"), &["vitest", "run"]), "vitest")?;
    step(npx(&project.join("jest"), &["jest", "--no-cache"]), "jest")?;

    let names = ["bolide-db".to_owned(), format!("@bolide-db/{platform}")];
    let mut uninstall = npm(&project, &["uninstall", "--no-save"]);
    uninstall.args(names);
    step(uninstall, "npm uninstall")?;
    files::compare(&before, &packages(&project)?)?;
    Ok(Outcome::Passed)
}

fn npm(project: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command
        .current_dir(project)
        .args(["--silent", "--no-audit", "--no-fund"])
        .args(arguments);
    clean(command)
}

fn node(project: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.current_dir(project).args(arguments);
    clean(command)
}

/// An installed command; nothing is fetched.
fn npx(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("npx");
    command.current_dir(folder).arg("--no-install").args(arguments);
    clean(command)
}

/// All files of the installed packages, without caches.
fn packages(project: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = files::listing(&project.join("node_modules"))?;
    found.retain(|path| !path.starts_with(".vite") && !path.starts_with(".vitest"));
    Ok(found)
}
