//! The wheel: built from the binary by the package's own build backend, installed with pip into a fresh virtual environment.

use std::path::Path;
use std::process::Command;

use super::{Place, check_version_line, clean, files, line_of, step};
use crate::Result;
use crate::checks::python;
use crate::summary::Outcome;

pub fn test(place: &Place<'_>) -> Result<Outcome> {
    let Some(system) = python() else {
        return Ok(Outcome::Skipped("there is no Python 3.9 or newer with venv".to_owned()));
    };
    let venv = place.folder.join("venv");
    let source = place.source("packages/python");
    let mut make = Command::new(system);
    make.args(["-m", "venv"]).arg(&venv);
    step(clean(make), "python -m venv")?;

    let dist = place.folder.join("dist");
    let mut wheel = pip(&venv, &["wheel", "--no-deps", "--wheel-dir"]);
    let setting = format!("--config-settings=binary={}", place.binary.display());
    wheel.arg(&dist).arg(setting).arg(&source);
    step(wheel, "pip wheel")?;
    let mut requirements = pip(&venv, &["install", "--requirement"]);
    requirements.arg(source.join("tests/requirements.txt"));
    step(requirements, "pip install of the tests' requirements")?;

    let before = files::listing(&venv)?;
    let mut install = pip(&venv, &["install", "--no-deps", "--no-index", "--no-compile"]);
    install.arg(files::only_file(&dist, "bolide-", ".whl")?);
    step(install, "pip install of the wheel")?;
    let mut version = Command::new(venv.join("bin/bolide"));
    version.arg("--version");
    check_version_line(&line_of(clean(version), "bolide --version")?, place.version)?;
    let mut pytest = venv_python(&venv);
    pytest
        .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
        .arg(source.join("tests"));
    step(pytest, "pytest")?;
    step(pip(&venv, &["uninstall", "--yes", "bolide"]), "pip uninstall")?;
    files::compare(&before, &files::listing(&venv)?)?;
    Ok(Outcome::Passed)
}

fn pip(venv: &Path, arguments: &[&str]) -> Command {
    let mut command = venv_python(venv);
    command
        .args(["-m", "pip", "--quiet", "--disable-pip-version-check"])
        .args(arguments);
    command
}

/// The environment's interpreter; it writes no bytecode, neither into the environment nor into the project.
fn venv_python(venv: &Path) -> Command {
    let mut command = Command::new(venv.join("bin/python"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    clean(command)
}
