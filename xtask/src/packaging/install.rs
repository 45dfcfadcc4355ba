//! The install script, run against a release page in a directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::Part;
use crate::Result;
use crate::project::Project;

/// A version that no release has.
const VERSION: &str = "9.9.9";
/// What a whole installation has, below its prefix.
const FILES: [&str; 11] = [
    "bin/bolide",
    "share/bash-completion/completions/bolide",
    "share/bolide/installed-files",
    "share/doc/bolide/LICENSE-APACHE",
    "share/doc/bolide/LICENSE-MIT",
    "share/doc/bolide/README.md",
    "share/doc/bolide/THIRD-PARTY.txt",
    "share/fish/vendor_completions.d/bolide.fish",
    "share/man/man1/bolide-query.1",
    "share/man/man1/bolide.1",
    "share/zsh/site-functions/_bolide",
];

/// Installs, installs again, refuses what it must refuse, and removes.
///
/// # Errors
/// What went otherwise.
pub fn check(project: &Project) -> Result<Part> {
    if !cfg!(any(target_os = "linux", target_os = "macos")) {
        return Ok(Err("it is for Linux and macOS".to_owned()));
    }
    let page = Page::new(project)?;
    installs(&page)?;
    refuses(&page)?;
    removes(&page)?;
    Ok(Ok(()))
}

fn installs(page: &Page) -> Result<()> {
    // The latest version; then the same one by its name, over the first.
    for arguments in [&[][..], &["--version", VERSION]] {
        let output = page.run(arguments)?;
        expect(output.status.success(), "it installs", &output)?;
        let installed = files_below(&page.prefix());
        expect(
            installed == FILES,
            &format!("it installs {FILES:?}, not {installed:?}"),
            &output,
        )?;
    }
    let version = Command::new(page.prefix().join("bin/bolide"))
        .arg("--version")
        .output()?;
    expect(
        version.stdout == b"bolide 9.9.9\n",
        "the installed binary runs",
        &version,
    )
}

fn refuses(page: &Page) -> Result<()> {
    let archive = page.archive();
    let checksum = format!("{}.sha256", archive.display());
    let (good_archive, good_checksum) = (fs::read(&archive)?, fs::read(&checksum)?);
    let before = fs::read(page.prefix().join("bin/bolide"))?;

    fs::write(&checksum, format!("{}  {VERSION}\n", "0".repeat(64)))?;
    page.refuses(&[], "not the published one")?;
    fs::write(&checksum, "not a checksum\n")?;
    page.refuses(&[], "not a SHA-256")?;
    fs::remove_file(&checksum)?;
    page.refuses(&[], ".sha256")?;
    fs::write(&checksum, &good_checksum)?;
    fs::write(&archive, &good_archive[..good_archive.len() - 1])?;
    page.refuses(&[], "not the published one")?;
    fs::write(&archive, &good_archive)?;

    page.refuses(&["--version", "9.9.8"], "9.9.8")?;
    page.refuses(&["--version", "../../9.9.9"], "not a version")?;
    page.refuses(&["--prefix", "relative"], "--prefix")?;
    page.refuses(&["--versions", VERSION], "--versions")?;
    let mut http = page.command(&[]);
    let output = http
        .env("BOLIDE_DOWNLOAD_URL", "http://127.0.0.1:9/releases")
        .output()?;
    let says = String::from_utf8_lossy(&output.stderr).contains("https://");
    expect(!output.status.success() && says, "it refuses plain HTTP", &output)?;

    match fs::read(page.prefix().join("bin/bolide"))? == before {
        true => Ok(()),
        false => Err("a refused installation changed the installed binary".into()),
    }
}

fn removes(page: &Page) -> Result<()> {
    let kept = page.prefix().join("share/man/man1/other.1");
    fs::write(&kept, "of another program")?;
    let list = page.prefix().join("share/bolide/installed-files");
    let listed = fs::read_to_string(&list)?;
    fs::write(&list, format!("share/man/man1/other.1\n{listed}"))?;
    page.refuses(&["--uninstall"], "other.1")?;
    fs::write(&list, listed)?;
    let output = page.run(&["--uninstall"])?;
    expect(output.status.success(), "it removes", &output)?;
    let left = files_below(&page.prefix());
    expect(
        left == ["share/man/man1/other.1"],
        &format!("it removes its own files; left are {left:?}"),
        &output,
    )?;
    page.refuses(&["--uninstall"], "nothing is installed")
}

fn expect(holds: bool, what: &str, output: &Output) -> Result<()> {
    if holds {
        return Ok(());
    }
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    Err(format!("expected: {what}. It says: {}", String::from_utf8_lossy(&text)).into())
}

/// A release page with one version, and a place to install to.
struct Page {
    directory: TempDir,
    script: PathBuf,
}

impl Page {
    fn new(project: &Project) -> Result<Page> {
        let page = Page {
            directory: tempfile::tempdir()?,
            script: project.root().join("packaging/install.sh"),
        };
        let latest = page.directory.path().join("releases/latest/download");
        fs::create_dir_all(&latest)?;
        fs::write(latest.join("version.txt"), format!("{VERSION}\n"))?;
        let archive = page.archive();
        fs::create_dir_all(archive.parent().ok_or("the archive has no directory")?)?;
        let bytes = made_up_archive()?;
        let sum: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let name = archive.file_name().ok_or("the archive has no name")?.to_string_lossy();
        fs::write(format!("{}.sha256", archive.display()), format!("{sum}  {name}\n"))?;
        fs::write(&archive, bytes)?;
        Ok(page)
    }

    fn prefix(&self) -> PathBuf {
        self.directory.path().join("prefix with a blank")
    }

    fn archive(&self) -> PathBuf {
        let releases = self.directory.path().join("releases");
        releases.join(format!("download/v{VERSION}/bolide-{VERSION}-{}.tar.gz", target()))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        let url = format!("file://{}", self.directory.path().join("releases").display());
        command
            .arg(&self.script)
            .arg("--prefix")
            .arg(self.prefix())
            .args(arguments);
        command.env("BOLIDE_DOWNLOAD_URL", url).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.command(arguments).output()?)
    }

    fn refuses(&self, arguments: &[&str], word: &str) -> Result<()> {
        let output = self.run(arguments)?;
        let says = String::from_utf8_lossy(&output.stderr).contains(word);
        let what = format!("it refuses {arguments:?} and says `{word}`");
        expect(!output.status.success() && says, &what, &output)
    }
}

/// The target of the archive that the script takes on this machine.
fn target() -> String {
    let system = match cfg!(target_os = "macos") {
        true => "apple-darwin",
        false => "unknown-linux-musl",
    };
    format!("{}-{system}", std::env::consts::ARCH)
}

/// An archive with the names of a real one, whose binary is a script.
fn made_up_archive() -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, mode, text) in [
        ("bolide", 0o755, "#!/bin/sh\necho bolide 9.9.9\n"),
        ("README.md", 0o644, "readme"),
        ("LICENSE-MIT", 0o644, "licence"),
        ("LICENSE-APACHE", 0o644, "licence"),
        ("THIRD-PARTY.txt", 0o644, "licences"),
        ("completions/bolide.bash", 0o644, "bash"),
        ("completions/_bolide", 0o644, "zsh"),
        ("completions/bolide.fish", 0o644, "fish"),
        ("man/bolide.1", 0o644, "man"),
        ("man/bolide-query.1", 0o644, "man"),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_mode(mode);
        header.set_size(text.len() as u64);
        tar.append_data(
            &mut header,
            format!("bolide-{VERSION}-{}/{name}", target()),
            text.as_bytes(),
        )?;
    }
    Ok(tar.into_inner()?.finish()?)
}

/// Files below a directory, by their relative paths, in order.
fn files_below(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => waiting.push(path),
                false => found.extend(path.strip_prefix(directory).map(|path| path.display().to_string())),
            }
        }
    }
    found.sort();
    found
}
