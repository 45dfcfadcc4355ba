//! The Go module: served from a directory as a module proxy serves it, and required by a module of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Place, clean, files, line_of, step};
use crate::Result;
use crate::checks::{answers, python};
use crate::summary::Outcome;

/// Archives all files below the working directory. Go refuses archives with entries for folders, which `python -m zipfile` makes.
const ARCHIVE: &str = "\
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED) as archive:
    for folder, _, names in os.walk('.'):
        for name in names:
            archive.write(os.path.join(folder, name))
";

pub fn test(place: &Place<'_>) -> Result<Outcome> {
    if !answers(Command::new("go").arg("version")) {
        return Ok(Outcome::Skipped("there is no Go".to_owned()));
    }
    // Many machines have no `zip`.
    let Some(python) = python() else {
        return Ok(Outcome::Skipped(
            "there is no Python 3.9 or newer, which makes its archive".to_owned(),
        ));
    };
    let source = place.source("packages/go");
    let module = module_path(&fs::read_to_string(source.join("go.mod"))?)?;
    let version = format!("v{}", place.version);
    let environment = Environment {
        project: place.folder.join("project"),
        proxy: place.folder.join("proxy"),
        modules: place.folder.join("modules"),
        module: module.clone(),
        usual_proxies: usual_proxies(&place.folder)?,
    };
    publish(&source, &environment.proxy, &module, &version, python)?;

    files::copy(&source.join("tests"), &environment.project)?;
    let manifest = environment.project.join("go.mod");
    let before = fs::read(&manifest)?;
    step(environment.go(&["get", &format!("{module}@{version}")]), "go get")?;
    let mut test = environment.go(&["test", "-count=1", "./..."]);
    test.env("BOLIDE_BIN", place.binary);
    step(test, "go test")?;
    step(environment.go(&["get", &format!("{module}@none")]), "go get …@none")?;
    if fs::read(&manifest)? != before {
        return Err(format!("go.mod differs after `go get {module}@none`").into());
    }
    Ok(Outcome::Passed)
}

/// The module's path in the text of its go.mod.
fn module_path(text: &str) -> Result<String> {
    let path = text.lines().find_map(|line| line.strip_prefix("module "));
    path.map(|path| path.trim().to_owned())
        .ok_or_else(|| "packages/go/go.mod names no module".into())
}

/// Writes the files that a module proxy serves. Source: "GOPROXY protocol", Go modules reference.
fn publish(source: &Path, proxy: &Path, module: &str, version: &str, python: &str) -> Result<()> {
    let folder = files::emptied(&proxy.join(module).join("@v"))?;
    fs::write(folder.join("list"), format!("{version}\n"))?;
    fs::write(
        folder.join(format!("{version}.info")),
        format!("{{\"Version\":\"{version}\"}}"),
    )?;
    fs::copy(source.join("go.mod"), folder.join(format!("{version}.mod")))?;
    // In the archive each file is below MODULE@VERSION; the module of the tests, which is nested in this one, is not part of it.
    let staging = proxy.with_file_name("staging");
    let root = staging.join(format!("{module}@{version}"));
    fs::create_dir_all(&root)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), root.join(entry.file_name()))?;
        }
    }
    let mut archive = Command::new(python);
    archive
        .args(["-c", ARCHIVE])
        .arg(folder.join(format!("{version}.zip")))
        .current_dir(staging);
    step(clean(archive), "the Python program that makes an archive")
}

/// The proxies that Go asks on this machine.
fn usual_proxies(folder: &Path) -> Result<String> {
    let mut ask = Command::new("go");
    ask.current_dir(folder).args(["env", "GOPROXY"]);
    line_of(clean(ask), "go env")
}

/// A project with a cache of modules of its own.
struct Environment {
    project: PathBuf,
    proxy: PathBuf,
    modules: PathBuf,
    module: String,
    usual_proxies: String,
}

impl Environment {
    /// Go, with the directory before the usual proxies; no public list of checksums has what comes from it.
    fn go(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("go");
        command
            .current_dir(&self.project)
            .args(arguments)
            .env(
                "GOPROXY",
                format!("file://{},{}", self.proxy.display(), self.usual_proxies),
            )
            .env("GONOSUMDB", &self.module)
            .env("GOMODCACHE", &self.modules)
            // Otherwise the folders of modules cannot be removed without more ado.
            .env("GOFLAGS", "-modcacherw");
        clean(command)
    }
}

#[cfg(test)]
mod tests;
