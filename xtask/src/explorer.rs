//! The data explorer: builds it, compares it with the built files that are in the repository, and tours it with Chromium.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::Result;
use crate::checks::answers;
use crate::project::{Project, succeed};
use crate::summary::Outcome;
use crate::tools::Tools;

/// What Vite needs.
const NODE: &str = "process.exit(Number(process.versions.node.split('.')[0]) < 20 ? 1 : 0)";

/// The command line's options.
#[derive(Args, Debug, Default)]
pub struct Options {
    /// Replace the built files in the repository by those that are built, and end.
    #[arg(long)]
    update: bool,
    /// The server for the tour; by default the development build.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Tour it also over HTTPS, with the data on the disk.
    #[arg(long)]
    whole: bool,
    /// Only the parts of the tour whose file or title has this in it.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// Checks the types, builds, compares, and tours.
///
/// # Errors
/// If any of it fails. Without Node.js, or without Chromium, it is skipped.
pub fn run(project: &Project, options: &Options) -> Result<Outcome> {
    if !answers(Command::new("node").args(["-e", NODE])) || !answers(Command::new("npm").arg("--version")) {
        return Ok(Outcome::Skipped("there is no Node.js 20 or newer with npm".to_owned()));
    }
    let source = project.root().join("explorer");
    // Playwright would download browsers of its own otherwise.
    let mut install = command("npm", &source, &["ci", "--silent", "--no-audit", "--no-fund"]);
    succeed(install.env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1"), "npm ci")?;
    succeed(
        &mut command("npx", &source, &["--no-install", "tsc", "--noEmit"]),
        "tsc",
    )?;
    let committed = source.join("dist");
    let built = project.root().join("target/explorer");
    let output = if options.update { &committed } else { &built };
    let mut build = command(
        "npx",
        &source,
        &["--no-install", "vite", "build", "--emptyOutDir", "--outDir"],
    );
    succeed(build.arg(output), "vite build")?;
    if options.update {
        return Ok(Outcome::Passed);
    }
    compare(&committed, &built)?;
    let browser = match Tools::new(project, false).debian("chromium", "chromium") {
        Ok(browser) => browser,
        Err(missing) => return Ok(Outcome::PassedBut(format!("the tour was not run: {missing}"))),
    };
    let binary = match &options.binary {
        Some(path) => path.canonicalize()?,
        None => project.build_server()?,
    };
    let mut tour = command("npx", &source, &["--no-install", "playwright", "test"]);
    if !options.whole {
        // A further word after a blank would be another project.
        tour.arg("--project=memory");
    }
    tour.args(&options.only)
        .env("BOLIDE_BINARY", binary)
        .env("BOLIDE_CHROMIUM", browser);
    succeed(&mut tour, "the tour of the explorer").map(|()| Outcome::Passed)
}

fn command(program: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).args(arguments);
    command
}

/// Compares the files in the repository with those that were built.
fn compare(committed: &Path, built: &Path) -> Result<()> {
    let (here, there) = (names(committed)?, names(built)?);
    if here != there {
        return Err(stale(&format!("its files are {here:?}, built are {there:?}")));
    }
    for name in here {
        if std::fs::read(committed.join(&name))? != std::fs::read(built.join(&name))? {
            return Err(stale(&format!("{name} differs")));
        }
    }
    Ok(())
}

fn stale(why: &str) -> Box<dyn std::error::Error + Send + Sync> {
    format!("explorer/dist is not what explorer/src builds: {why}. `cargo xtask explorer --update` builds it anew")
        .into()
}

/// The names of the files in a directory without others in it, in order.
fn names(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}
