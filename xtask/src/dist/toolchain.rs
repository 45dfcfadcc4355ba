//! What builds each target on this machine.
//!
//! Rust's part is the standard library of the target. For the C code in the tree (mimalloc, ring, zstd, QuickJS) and for linking, a target of musl needs a C
//! compiler with musl's headers: Debian's `musl-tools` for this machine's own processor, or zig through cargo-zigbuild (`pip install ziglang cargo-zigbuild`)
//! for every processor.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::Result;
use crate::project::{Project, executable_of};

/// Separates flags in `CARGO_ENCODED_RUSTFLAGS`.
const FLAG_SEPARATOR: &str = "\x1f";

/// How a target is built.
pub struct Plan {
    /// The target.
    pub target: String,
    /// How, for people.
    pub description: String,
    /// The subcommand of cargo: `build`, or one that brings its own compiler for C.
    subcommand: &'static str,
    variables: Vec<(String, String)>,
    flags: Vec<String>,
}

/// Finds how a target can be built; `install`: rustup may add its standard library.
///
/// # Errors
/// What is missing, and how to get it.
pub fn plan(project: &Project, target: &str, install: bool) -> Result<Plan> {
    let (host, sysroot) = rustc()?;
    if !sysroot.join("lib/rustlib").join(target).join("lib").is_dir() {
        if !install {
            return Err(format!("its standard library is missing; `rustup target add {target}`, or --install").into());
        }
        let added = Command::new("rustup")
            .current_dir(project.root())
            .args(["target", "add", target])
            .status();
        if !added.is_ok_and(|status| status.success()) {
            return Err("rustup cannot add its standard library".into());
        }
    }
    let mut plan = Plan {
        target: target.to_owned(),
        description: "with the compilers of this machine".to_owned(),
        subcommand: "build",
        variables: Vec::new(),
        flags: Vec::new(),
    };
    if target == host {
        return Ok(plan);
    }
    let processor = |triple: &str| triple.split('-').next().unwrap_or_default().to_owned();
    if target.contains("-linux-musl") && processor(target) == processor(&host) && answers("musl-gcc", &["--version"]) {
        plan.description = "static, with musl-gcc".to_owned();
        plan.variables
            .push((format!("CC_{}", target.replace('-', "_")), "musl-gcc".to_owned()));
        return Ok(plan);
    }
    if answers("cargo-zigbuild", &["--version"]) {
        plan.description = "with zig".to_owned();
        plan.subcommand = "zigbuild";
        return Ok(plan);
    }
    Err(
        "there is no C compiler for it; `pip install ziglang cargo-zigbuild`, or for this machine's own processor \
         `apt install musl-tools`"
            .into(),
    )
}

/// A build for this machine, where no target of a release can be built: static if glibc may be linked statically.
///
/// # Errors
/// Without rustc.
pub fn fallback() -> Result<Plan> {
    let (host, _) = rustc()?;
    let is_gnu = host.ends_with("-linux-gnu");
    let mut plan = Plan {
        target: host,
        description: "linked dynamically".to_owned(),
        subcommand: "build",
        variables: Vec::new(),
        flags: Vec::new(),
    };
    if is_gnu {
        plan.description =
            "with glibc linked statically; names of other machines are found only where the same glibc is \
                            installed"
                .to_owned();
        plan.flags.push("-Ctarget-feature=+crt-static".to_owned());
    }
    Ok(plan)
}

impl Plan {
    /// Builds the server in the release profile; returns the path of the executable.
    ///
    /// # Errors
    /// If it does not build.
    pub fn build(&self, project: &Project) -> Result<PathBuf> {
        let home = project.cargo_home()?;
        let mut flags = self.flags.clone();
        // Messages of panics name source files. Their paths must not depend on this machine.
        for (from, to) in [
            (project.root().display().to_string(), "/bolide"),
            (home.clone(), "/cargo"),
        ] {
            flags.push(format!("--remap-path-prefix={from}={to}"));
        }
        let target = &self.target;
        let output = project
            .cargo(&[
                self.subcommand,
                "--release",
                "--locked",
                "--package=bolide-server",
                "--bin=bolide",
                "--target",
                target,
                "--message-format=json-render-diagnostics",
            ])
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join(FLAG_SEPARATOR))
            .env(
                format!("CFLAGS_{}", target.replace('-', "_")),
                format!("-ffile-prefix-map={home}=/cargo"),
            )
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err(format!("the server does not build for {target}").into());
        }
        executable_of(&output.stdout, "bolide")
    }
}

/// The target of this machine, and the directory of the toolchain.
fn rustc() -> Result<(String, PathBuf)> {
    let ask = |arguments: &[&str]| -> Result<String> {
        let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
        Ok(String::from_utf8(output.stdout)?)
    };
    let version = ask(&["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc does not tell its host")?.to_owned();
    Ok((host, PathBuf::from(ask(&["--print=sysroot"])?.trim())))
}

fn answers(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
