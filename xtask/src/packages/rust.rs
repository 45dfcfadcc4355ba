//! The crate `bolide-testing`: packed as for its registry, and used from the unpacked file by a project of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Place, clean, files, step};
use crate::Result;
use crate::summary::Outcome;

const CRATE: &str = "bolide-testing";

pub fn test(place: &Place<'_>) -> Result<Outcome> {
    let packed = place.folder.join("packed");
    // It is built by the project below. Changes that are not committed are packed, too.
    let mut pack = place
        .project
        .cargo(&["package", "--quiet", "--no-verify", "--allow-dirty", "--package", CRATE]);
    pack.arg("--target-dir").arg(&packed);
    step(pack, "cargo package")?;
    let archive = packed.join(format!("package/{CRATE}-{}.crate", place.version));
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(archive).arg("-C").arg(&place.folder);
    step(clean(unpack), "tar")?;

    let project = place.folder.join("project");
    files::copy(&place.source("packages/rust"), &project)?;
    let manifest = project.join("Cargo.toml");
    let before = fs::read(&manifest)?;
    let mut add = cargo(place, &project, &["add", "--quiet", "--dev", CRATE, "--path"]);
    add.arg(place.folder.join(format!("{CRATE}-{}", place.version)));
    step(add, "cargo add")?;
    let mut test = cargo(place, &project, &["test", "--quiet", "--target-dir"]);
    // Kept for the next time, as everything that cargo builds.
    test.arg(place.folder.with_file_name("rust-target"))
        .env("BOLIDE_BIN", place.binary);
    step(test, "cargo test")?;
    step(
        cargo(place, &project, &["remove", "--quiet", "--dev", CRATE]),
        "cargo remove",
    )?;
    if fs::read(&manifest)? != before {
        return Err(format!("Cargo.toml differs after `cargo remove {CRATE}`").into());
    }
    Ok(Outcome::Passed)
}

fn cargo(place: &Place<'_>, project: &Path, arguments: &[&str]) -> Command {
    let mut command = place.project.cargo(arguments);
    command.current_dir(project);
    clean(command)
}
