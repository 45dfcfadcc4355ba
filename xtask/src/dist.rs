//! `cargo xtask dist`: release archives in `target/dist/`.
//!
//! ```text
//!   bolide-VERSION-TARGET.tar.gz           one folder, named like the archive without its ending:
//!     bolide                                 the binary
//!     README.md, LICENSE-*, THIRD-PARTY.txt  the last one has the licences of everything that is compiled into the binary
//!     completions/                           bash, zsh, fish
//!     man/                                   a page for each command
//!   bolide-VERSION-TARGET.tar.gz.sha256    as `sha256sum` writes and checks it
//! ```
//!
//! Completions and man pages are printed by the binary itself, from its definition of the options; for a target that cannot run here, by a development
//! build of the same sources. The same commit gives the same archive: order, owners, modes and times are fixed, and paths of this machine are not compiled in.

mod archive;
mod check;
mod licences;
mod toolchain;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use self::archive::Entry;
pub use self::check::check;
use self::toolchain::Plan;
use crate::Result;
use crate::project::Project;

/// The targets of a release that are built on Linux.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];
/// Shells, and the names that their completions have by convention.
const SHELLS: [(&str, &str); 3] = [("bash", "bolide.bash"), ("zsh", "_bolide"), ("fish", "bolide.fish")];
/// Files of the project in each archive.
const FILES: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// The options of `dist`.
#[derive(Args)]
pub struct Options {
    /// Build for this target instead of the usual ones; may be given several times.
    #[arg(long = "target", value_name = "TRIPLE")]
    targets: Vec<String>,
    /// Pack this binary instead of building one; needs one --target, for which it was built.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Let rustup add the standard libraries of targets that are missing.
    #[arg(long)]
    install: bool,
}

/// Builds and packs. Targets that cannot be built here are named at the end with the reason.
///
/// # Errors
/// A target named by an option that cannot be built, or no archive at all.
pub fn run(project: &Project, options: &Options) -> Result<()> {
    let directory = project.target_directory()?.join("dist");
    if let Some(binary) = &options.binary {
        let [target] = options.targets.as_slice() else {
            return Err("--binary needs one --target, for which the binary was built".into());
        };
        println!("{}", pack(project, target, binary, &directory)?.display());
        return Ok(());
    }
    let is_asked = !options.targets.is_empty();
    let usual = TARGETS.map(str::to_owned);
    let targets = if is_asked { &options.targets[..] } else { &usual };
    let (mut archives, mut skipped) = (Vec::new(), Vec::new());
    for target in targets {
        match toolchain::plan(project, target, options.install) {
            Ok(plan) => archives.push(build_and_pack(project, &plan, &directory)?),
            Err(why) => skipped.push((target.as_str(), why.to_string())),
        }
    }
    if !is_asked && archives.is_empty() {
        // Something to test with, under the name of what it is.
        let plan = toolchain::fallback()?;
        println!(
            "NOT FOR A RELEASE: {} is built instead, {}",
            plan.target, plan.description
        );
        archives.push(build_and_pack(project, &plan, &directory)?);
    }
    for archive in &archives {
        println!("built    {}", archive.display());
    }
    for (target, why) in &skipped {
        println!("SKIPPED  {target}: {why}");
    }
    match skipped.as_slice() {
        [(target, _), ..] if is_asked => Err(format!("{target} cannot be built here").into()),
        _ => Ok(()),
    }
}

fn build_and_pack(project: &Project, plan: &Plan, directory: &Path) -> Result<PathBuf> {
    println!("building {} ({})", plan.target, plan.description);
    let binary = plan.build(project)?;
    pack(project, &plan.target, &binary, directory)
}

/// Packs a binary; returns the archive's path.
fn pack(project: &Project, target: &str, binary: &Path, directory: &Path) -> Result<PathBuf> {
    let name = format!("bolide-{}-{target}", project.version()?);
    let printer = printer(project, binary)?;
    let ending = if target.contains("windows") { ".exe" } else { "" };
    let mut entries = vec![Entry::program(format!("bolide{ending}"), fs::read(binary)?)];
    for file in FILES {
        entries.push(Entry::file(file, fs::read(project.root().join(file))?));
    }
    entries.push(Entry::file("THIRD-PARTY.txt", licences::text(project, target)?));
    for (shell, file) in SHELLS {
        let script = output(&printer, &["completions", shell])?;
        entries.push(Entry::file(format!("completions/{file}"), script));
    }
    let pages = tempfile::tempdir()?;
    output(&printer, &["man", "--dir", &pages.path().display().to_string()])?;
    for page in fs::read_dir(pages.path())? {
        let page = page?;
        let text = fs::read(page.path())?;
        entries.push(Entry::file(format!("man/{}", page.file_name().to_string_lossy()), text));
    }
    fs::create_dir_all(directory)?;
    archive::write(directory, &name, entries, project.commit_time())
}

/// A binary of the same sources that runs here.
fn printer(project: &Project, binary: &Path) -> Result<PathBuf> {
    match output(binary, &["--version"]) {
        Ok(_) => Ok(binary.to_owned()),
        Err(_) => project.build_server(),
    }
}

/// What a program prints.
fn output(program: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} {}: {why}", program.display(), arguments.join(" ")).into());
    }
    Ok(output.stdout)
}
