//! Programs of other projects that checks use: found on this machine, or installed where that is allowed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;
use crate::project::Project;

/// Where Debian installs PostgreSQL's programs.
const POSTGRESQL: &str = "/usr/lib/postgresql";

/// Where programs are looked for and installed.
pub struct Tools {
    /// Programs of the Go module proxy, kept with what is built.
    directory: PathBuf,
    may_install: bool,
}

/// A program of a Go module, built from its source.
pub struct GoProgram {
    /// The name of the program on the path, and of what is built.
    pub name: &'static str,
    /// The package and its version, as `go install` takes them.
    pub package: &'static str,
}

impl Tools {
    /// Missing programs are installed if `asked`, and on a CI machine, which is thrown away.
    pub fn new(project: &Project, asked: bool) -> Tools {
        Tools {
            directory: project.root().join("target/tools"),
            may_install: asked || env::var_os("CI").is_some(),
        }
    }

    /// A program on the path, or in a package of Debian.
    ///
    /// # Errors
    /// The text says why it is missing.
    pub fn debian(&self, name: &str, package: &str) -> std::result::Result<PathBuf, String> {
        if let Some(found) = on_path(name) {
            return Ok(found);
        }
        let missing = format!("{name} is not installed (Debian: apt install {package})");
        if !self.may_install || on_path("apt-get").is_none() {
            return Err(missing);
        }
        println!("installing {package}");
        // The list of packages may be as old as the machine.
        for arguments in [
            &["update"][..],
            &["install", "--yes", "--no-install-recommends", package],
        ] {
            quiet(
                as_root("apt-get")
                    .env("DEBIAN_FRONTEND", "noninteractive")
                    .args(arguments),
            )
            .map_err(|why| format!("{missing}, and apt-get fails: {why}"))?;
        }
        on_path(name).ok_or(missing)
    }

    /// PostgreSQL, whose programs are not on the path.
    ///
    /// # Errors
    /// The text says why it is missing.
    pub fn postgres(&self) -> std::result::Result<(), String> {
        match Path::new(POSTGRESQL).is_dir() {
            true => Ok(()),
            // The program of the package that is on the path.
            false => self.debian("pg_ctlcluster", "postgresql").map(drop),
        }
    }

    /// A program on the path, or built by Go.
    ///
    /// # Errors
    /// The text says why it is missing.
    pub fn go(&self, program: &GoProgram) -> std::result::Result<PathBuf, String> {
        let GoProgram { name, package } = program;
        let built = self.directory.join(name);
        if let Some(found) = on_path(name).or_else(|| Some(built.clone()).filter(|path| path.is_file())) {
            return Ok(found);
        }
        let missing = format!("{name} is not installed (go install {package})");
        if !self.may_install || on_path("go").is_none() {
            return Err(missing);
        }
        println!("building {package}");
        let mut go = Command::new("go");
        quiet(go.env("GOBIN", &self.directory).args(["install", package]))
            .map_err(|why| format!("{missing}, and go fails: {why}"))?;
        // Go names it after the last part of its package.
        let made = package.rsplit('/').next().and_then(|last| last.split('@').next());
        let made = self.directory.join(made.unwrap_or(name));
        if made != built {
            std::fs::rename(&made, &built)
                .map_err(|why| format!("{missing}, and go made no {}: {why}", made.display()))?;
        }
        Ok(built)
    }

    /// The directory below which a package of the npm registry is installed.
    ///
    /// # Errors
    /// The text says why it is missing.
    pub fn npm(&self, name: &str, version: &str) -> std::result::Result<PathBuf, String> {
        if on_path("node").is_none() {
            return Err("node is not installed".to_owned());
        }
        let directory = self.directory.join("npm").join(name.replace('/', "-"));
        if directory.join("node_modules").join(name).is_dir() {
            return Ok(directory);
        }
        let package = format!("{name}@{version}");
        let missing = format!("{name} is not installed (npm install {package})");
        if !self.may_install || on_path("npm").is_none() {
            return Err(missing);
        }
        println!("installing {package}");
        let made = std::fs::create_dir_all(&directory);
        made.map_err(|error| format!("{missing}, and its directory cannot be made: {error}"))?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
        quiet(npm.arg(&directory).arg(package)).map_err(|why| format!("{missing}, and npm fails: {why}"))?;
        Ok(directory)
    }
}

/// The path of a program, if there is one of this name.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

/// Whether this process may do everything.
pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").stdin(Stdio::null()).output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn as_root(program: &str) -> Command {
    if is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    // Nobody is there to type a password.
    command.args(["-n", program]);
    command
}

/// Runs a program and returns what it wrote to standard output.
///
/// # Errors
/// If it cannot be run or fails; the text has what it wrote.
pub fn quiet(command: &mut Command) -> Result<String> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} failed ({}): {}{}", output.status, text, error.trim_end()).into())
}
