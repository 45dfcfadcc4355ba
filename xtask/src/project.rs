//! The project's directory, and the cargo that runs this task.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::Result;

/// Makes cargo tell what it built, one object a line, and show errors as always.
const JSON_MESSAGES: &str = "--message-format=json-render-diagnostics";

/// The workspace that this task belongs to.
pub struct Project {
    root: PathBuf,
    tests_are_built: AtomicBool,
}

impl Project {
    /// Finds the workspace from the manifest directory that cargo sets.
    ///
    /// The run-time variable comes first: clones that share a target directory also share this executable.
    pub fn locate() -> Result<Self> {
        let manifest =
            std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| OsString::from(env!("CARGO_MANIFEST_DIR")));
        let root = Path::new(&manifest).parent().ok_or("xtask has no parent directory")?;
        Ok(Self {
            root: root.to_path_buf(),
            tests_are_built: AtomicBool::new(false),
        })
    }

    /// The workspace's root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A cargo command in the workspace's root, with the cargo that started this task.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root).args(arguments).stdin(Stdio::null());
        command
    }

    /// The output of `cargo metadata` for the workspace's packages.
    pub fn metadata(&self) -> Result<Value> {
        let output = self
            .cargo(&["metadata", "--format-version=1", "--no-deps"])
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err("cargo metadata failed".into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Notes that all tests were built just now.
    pub fn tests_are_built(&self) {
        self.tests_are_built.store(true, Ordering::Relaxed);
    }

    /// Builds the server in the development profile and returns the path of the executable. If all tests were built just now, it is the one that they ran:
    /// built alone, it would have fewer features of dependencies, so that most of it would be built once more.
    pub fn build_server(&self) -> Result<PathBuf> {
        if self.tests_are_built.load(Ordering::Relaxed) {
            let tests = self.cargo(&["test", "--workspace", "--no-run", JSON_MESSAGES]);
            return executable_of_build(tests, "bolide");
        }
        self.build(&["--package=bolide-server", "--bin=bolide"], "bolide")
    }

    /// Builds the benchmarks in the profile whose instructions are counted, and returns the path of the executable.
    pub fn build_benchmarks(&self) -> Result<PathBuf> {
        let arguments = ["--package=bolide-bench", "--bin=bolide-bench", "--profile=instructions"];
        self.build(&arguments, "bolide-bench")
    }

    /// Builds an executable of a package in a profile, and returns its path.
    pub fn build_in(&self, package: &str, name: &str, profile: &str) -> Result<PathBuf> {
        let arguments = [
            format!("--package={package}"),
            format!("--bin={name}"),
            format!("--profile={profile}"),
        ];
        self.build(&arguments.each_ref().map(String::as_str), name)
    }

    /// The path comes from cargo's messages, so that target directories and triples set elsewhere are respected.
    fn build(&self, arguments: &[&str], name: &str) -> Result<PathBuf> {
        let mut cargo = self.cargo(&["build", JSON_MESSAGES]);
        cargo.args(arguments);
        executable_of_build(cargo, name)
    }

    /// The output of `cargo metadata` for a target, with all dependencies.
    pub fn dependencies(&self, target: &str) -> Result<Value> {
        let mut arguments = vec!["metadata", "--format-version=1", "--locked"];
        // Otherwise those of all platforms: names that are no target are refused.
        if target.contains('-') {
            arguments.extend(["--filter-platform", target]);
        }
        let output = self.cargo(&arguments).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err("cargo metadata failed".into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// The directory of what is built.
    pub fn target_directory(&self) -> Result<PathBuf> {
        let metadata = self.metadata()?;
        let directory = metadata["target_directory"].as_str().map(PathBuf::from);
        directory.ok_or_else(|| "cargo does not tell its target directory".into())
    }

    /// The version of the server.
    pub fn version(&self) -> Result<String> {
        let metadata = self.metadata()?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let server = packages.into_iter().find(|package| package["name"] == "bolide-server");
        let version = server
            .and_then(|package| package["version"].as_str())
            .map(str::to_owned);
        version.ok_or_else(|| "there is no package bolide-server".into())
    }

    /// The directory in which cargo keeps the sources of dependencies.
    pub fn cargo_home(&self) -> Result<String> {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
        Ok(home.ok_or("there is no home directory")?.display().to_string())
    }

    /// The time of what is packed, in Unix seconds: `SOURCE_DATE_EPOCH`, else that of the last commit, else 0.
    pub fn commit_time(&self) -> u64 {
        let given = std::env::var("SOURCE_DATE_EPOCH").ok();
        let commit = || {
            let mut git = Command::new("git");
            let output = git
                .current_dir(&self.root)
                .args(["log", "-1", "--format=%ct"])
                .output()
                .ok()?;
            String::from_utf8(output.stdout).ok()
        };
        let seconds = given.or_else(commit).and_then(|text| text.trim().parse().ok());
        seconds.unwrap_or(0)
    }
}

fn executable_of_build(mut build: Command, name: &str) -> Result<PathBuf> {
    let output = build.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{name} does not build").into());
    }
    executable_of(&output.stdout, name)
}

/// The path of an executable, from the messages of the cargo that built it.
pub fn executable_of(messages: &[u8], name: &str) -> Result<PathBuf> {
    String::from_utf8_lossy(messages)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact" && message["target"]["name"] == name)
        // The executable of its unit tests has the same name.
        .filter(|message| message["profile"]["test"] == false)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| format!("cargo built no executable named {name}").into())
}

/// Runs a command with our standard output; returns an error if it fails.
pub fn succeed(command: &mut Command, what: &str) -> Result<()> {
    let status = command
        .status()
        .map_err(|error| format!("cannot run {what}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{what} failed ({status})").into())
    }
}
