//! The root file system of the image, as a tar file: the binary, the user, and the directories that it may write to.
//!
//! The same binary gives the same bytes: order, times and owners are fixed.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use tar::{Builder, EntryType, Header};

use crate::Result;
use crate::project::Project;
use crate::tools::quiet;

/// The user of the image, as in the Dockerfile.
const USER: u64 = 65532;
const ROOT: u64 = 0;

/// Where the official emulator keeps its certificate, which clients look for.
const EMULATOR_DIRECTORIES: [&str; 9] = [
    "tmp/cosmos",
    "tmp/cosmos/appdata",
    "tmp/cosmos/appdata/.system",
    "tmp/cosmos/appdata/.system/profiles",
    "tmp/cosmos/appdata/.system/profiles/Client",
    "tmp/cosmos/appdata/.system/profiles/Client/AppData",
    "tmp/cosmos/appdata/.system/profiles/Client/AppData/Local",
    "tmp/cosmos/appdata/.system/profiles/Client/AppData/Local/CosmosDBEmulator",
    "data",
];

/// Licences that go with the binary; the last one is only in archives.
const LICENCES: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.txt"];

/// A binary with what it needs.
pub struct Program {
    binary: Vec<u8>,
    /// As in the names of images: `amd64` or `arm64`.
    pub architecture: &'static str,
    /// Shared libraries of this machine; none for a static binary.
    libraries: Vec<PathBuf>,
    third_party: Option<Vec<u8>>,
    /// Whether it is optimized, so that its size counts.
    pub is_release: bool,
    /// Where it comes from, for people.
    pub origin: String,
}

/// The architecture of this machine, as in the names of images.
pub fn architecture_of_this_machine() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The binary of a file.
///
/// # Errors
/// If it is not a Linux binary for a known processor, or its libraries are not there.
pub fn from_file(path: &Path) -> Result<Program> {
    let binary = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let libraries = match is_static(&binary) {
        true => Vec::new(),
        false => libraries_of(path)?,
    };
    Ok(Program {
        architecture: architecture_of(&binary).ok_or_else(|| format!("{}: not a Linux binary", path.display()))?,
        binary,
        libraries,
        third_party: None,
        is_release: true,
        origin: path.display().to_string(),
    })
}

/// The binaries of the archives for Linux in target/dist with this version; without any, the development build.
///
/// # Errors
/// An archive that cannot be read, or a build that fails.
pub fn from_project(project: &Project) -> Result<Vec<Program>> {
    let version = project.version()?;
    let mut programs = Vec::new();
    for target in ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"] {
        let folder = format!("bolide-{version}-{target}");
        let archive = project.root().join(format!("target/dist/{folder}.tar.gz"));
        if archive.is_file() {
            programs.push(from_archive(&archive, &folder)?);
        }
    }
    if programs.is_empty() {
        let built = project.build_server()?;
        programs.push(Program {
            is_release: false,
            ..from_file(&without_debug_information(project, &built)?)?
        });
    }
    Ok(programs)
}

fn from_archive(archive: &Path, folder: &str) -> Result<Program> {
    let (mut binary, mut third_party) = (None, None);
    let mut entries = tar::Archive::new(GzDecoder::new(File::open(archive)?));
    for entry in entries.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let wanted = match path.strip_prefix(folder).ok().and_then(Path::to_str) {
            Some("bolide") => &mut binary,
            Some("THIRD-PARTY.txt") => &mut third_party,
            _ => continue,
        };
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        *wanted = Some(bytes);
    }
    let origin = archive.display().to_string();
    let binary = binary.ok_or_else(|| format!("{origin}: there is no {folder}/bolide in it"))?;
    if !is_static(&binary) {
        return Err(format!("{origin}: the binary is not static").into());
    }
    Ok(Program {
        architecture: architecture_of(&binary).ok_or_else(|| format!("{origin}: not a Linux binary"))?,
        binary,
        libraries: Vec::new(),
        third_party,
        is_release: true,
        origin,
    })
}

/// A development build is some hundred megabytes with it, which every step of the builder would copy.
fn without_debug_information(project: &Project, binary: &Path) -> Result<PathBuf> {
    let stripped = project.root().join("target/image/bolide");
    fs::create_dir_all(project.root().join("target/image"))?;
    let mut strip = Command::new("strip");
    strip.arg("--strip-debug").arg("-o").arg(&stripped).arg(binary);
    match quiet(&mut strip) {
        Ok(_) => Ok(stripped),
        Err(_) => Ok(binary.to_owned()),
    }
}

/// The processor in the header of an ELF file: `e_machine`, two bytes at offset 18.
fn architecture_of(binary: &[u8]) -> Option<&'static str> {
    if !binary.starts_with(b"\x7fELF") {
        return None;
    }
    match binary.get(18..20)? {
        [62, 0] => Some("amd64"),
        [183, 0] => Some("arm64"),
        _ => None,
    }
}

/// Whether a 64-bit ELF file has no program header of type `PT_INTERP`, which names the dynamic loader.
fn is_static(binary: &[u8]) -> bool {
    let number = |offset: usize, length: usize| -> Option<usize> {
        let bytes = binary.get(offset..offset.checked_add(length)?)?;
        bytes.iter().rev().try_fold(0_usize, |number, byte| {
            Some(number.checked_mul(256)? + usize::from(*byte))
        })
    };
    let headers = || Some((number(32, 8)?, number(54, 2)?, number(56, 2)?));
    let Some((start, size, count)) = headers() else {
        return false;
    };
    (0..count).all(|index| number(start.saturating_add(index * size), 4).is_some_and(|kind| kind != 3))
}

/// Shared libraries and the loader, as `ldd` lists them.
fn libraries_of(binary: &Path) -> Result<Vec<PathBuf>> {
    let listed = quiet(Command::new("ldd").arg(binary))?;
    if listed.contains("not found") {
        return Err(format!("a library is missing:\n{listed}").into());
    }
    let paths = listed
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    Ok(paths.map(PathBuf::from).collect())
}

/// Writes the tar file.
///
/// # Errors
/// An error of the file system.
pub fn write(project: &Project, program: &Program, path: &Path) -> Result<()> {
    let mut tar = Tar::new(BufWriter::new(File::create(path)?));
    tar.directory("tmp", 0o1777, ROOT)?;
    for directory in EMULATOR_DIRECTORIES {
        // Also of /data: a new volume gets the owner and the mode of this directory.
        tar.directory(directory, 0o700, USER)?;
    }
    let user = format!("bolide:x:{USER}:");
    tar.file("etc/group", 0o644, format!("root:x:0:\n{user}\n").as_bytes())?;
    let users = format!("root:x:0:0:root:/:/sbin/nologin\n{user}{USER}:Bolide:/data:/sbin/nologin\n");
    tar.file("etc/passwd", 0o644, users.as_bytes())?;
    for name in LICENCES {
        let text = match name {
            "THIRD-PARTY.txt" => program.third_party.clone(),
            _ => Some(fs::read(project.root().join(name))?),
        };
        if let Some(text) = text {
            tar.file(&format!("usr/share/doc/bolide/{name}"), 0o644, &text)?;
        }
    }
    for library in &program.libraries {
        let name = library.to_string_lossy();
        tar.file(name.trim_start_matches('/'), 0o755, &fs::read(library)?)?;
    }
    tar.file("usr/local/bin/bolide", 0o755, &program.binary)?;
    tar.0.into_inner()?.flush()?;
    Ok(())
}

/// A tar file in the making, with fixed times.
struct Tar<W: Write>(Builder<W>, HashSet<String>);

impl<W: Write> Tar<W> {
    fn new(writer: W) -> Self {
        Tar(Builder::new(writer), HashSet::new())
    }

    fn directory(&mut self, path: &str, mode: u32, owner: u64) -> Result<()> {
        if !self.1.insert(path.to_owned()) {
            return Ok(());
        }
        let mut header = header(EntryType::Directory, mode, owner);
        Ok(self.0.append_data(&mut header, format!("{path}/"), &[][..])?)
    }

    /// A file of root, with its parents.
    fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        for (end, _) in path.match_indices('/') {
            self.directory(&path[..end], 0o755, ROOT)?;
        }
        let mut header = header(EntryType::Regular, mode, ROOT);
        header.set_size(content.len() as u64);
        Ok(self.0.append_data(&mut header, path, content)?)
    }
}

fn header(kind: EntryType, mode: u32, owner: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(owner);
    header.set_gid(owner);
    header.set_mtime(0);
    header.set_size(0);
    header
}

#[cfg(test)]
mod tests;
