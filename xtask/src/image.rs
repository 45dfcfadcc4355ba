//! `cargo xtask image`: the container image, built from a binary, checked and started.
//!
//!   binary ──▶ target/image/rootfs-ARCH.tar ──Dockerfile──▶ both variants ──▶ settings, size, start, time to healthy
//!
//! The builder is buildah, which needs neither a daemon nor privileges. Where it is missing, all but the first step is skipped.

mod builder;
mod rootfs;
mod running;
mod settings;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::Result;
use crate::project::Project;
use crate::summary::Outcome;
use crate::tools::Tools;

use builder::Builder;
use rootfs::Program;

/// The most that the only layer may have, compressed with gzip.
const LAYER_BYTES: u64 = 15_000_000;

/// What docs/container.md says of a machine with nothing else to do.
const TIME_TO_HEALTHY: Duration = Duration::from_millis(100);

/// What to build the image from.
#[derive(Args, Default)]
pub struct Options {
    /// The binary; by default those of the archives in target/dist, or else the development build.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Only write the root file systems, for `docker build`.
    #[arg(long)]
    prepare: bool,
    /// Install buildah if it is missing.
    #[arg(long)]
    install: bool,
}

/// Builds and checks both variants for this machine's architecture.
///
/// # Errors
/// If the image cannot be built or is not as it must be.
pub fn run(project: &Project, options: &Options) -> Result<Outcome> {
    let programs = match &options.binary {
        Some(path) => vec![rootfs::from_file(path)?],
        None => rootfs::from_project(project)?,
    };
    let directory = project.root().join("target/image");
    std::fs::create_dir_all(&directory)?;
    for program in &programs {
        let path = directory.join(format!("rootfs-{}.tar", program.architecture));
        rootfs::write(project, program, &path)?;
        println!("{} from {}", path.display(), program.origin);
    }
    if options.prepare {
        return Ok(Outcome::Passed);
    }
    let here = rootfs::architecture_of_this_machine();
    let Some(program) = programs.iter().find(|program| program.architecture == here) else {
        return Ok(Outcome::Skipped(format!("there is no Linux binary for {here}")));
    };
    let buildah = match Tools::new(project, options.install).debian("buildah", "buildah") {
        Ok(path) => path,
        Err(missing) => return Ok(Outcome::Skipped(missing)),
    };
    let builder = match Builder::new(&buildah, &directory) {
        Ok(builder) => builder,
        Err(why) => return Ok(Outcome::Skipped(format!("buildah cannot run here: {why}"))),
    };
    check(project, &builder, program)
}

fn check(project: &Project, builder: &Builder, program: &Program) -> Result<Outcome> {
    let mut skipped = Vec::new();
    for variant in ["bolide", "emulator"] {
        let image = builder.build(project.root(), variant, program.architecture)?;
        settings::check(&builder.settings(&image)?, variant)?;
        let bytes = builder.layer_bytes(&image)?;
        println!("{variant}: one layer, {:.1} MB compressed", bytes as f64 / 1e6);
        if program.is_release && bytes > LAYER_BYTES {
            return Err(format!("the layer has {bytes} bytes compressed, more than {LAYER_BYTES}").into());
        }
    }
    running::production(builder)?;
    running::emulator(builder)?;
    match running::time_to_healthy(builder)? {
        Some(times) => {
            println!("healthy after {times}");
            // Not a failure, because it depends on what else runs on the machine.
            if program.is_release && times.best() > TIME_TO_HEALTHY {
                skipped.push("no start was healthy within 100 ms");
            }
        }
        None => skipped.push("the time to healthy was not measured (only root may chroot)"),
    }
    if !program.is_release {
        skipped.push("it was made from a development build, whose size does not count (cargo xtask dist)");
    }
    Ok(match skipped.is_empty() {
        true => Outcome::Passed,
        false => Outcome::PassedBut(skipped.join("; ")),
    })
}
