//! The store of the operating system.
//!
//! On Linux a store is a directory into which administrators put certificates, and a command that makes from it what programs read; the first directory
//! that exists decides. On macOS and Windows a command does both: these are written after its documentation and have not been tried.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::candidate::Candidate;
use super::{TrustOptions, added_name, is_added_name};
use crate::files::{self, Readers};
use crate::server::Failure;
use crate::tls_client::CertificateFacts;

/// A kind of store on Linux.
pub struct Kind {
    /// Where certificates are put, without the slash of the root.
    directory: &'static str,
    /// The command that makes the store from them.
    update: &'static [&'static str],
    /// The same after one was removed.
    update_after_removal: &'static [&'static str],
    /// The file in which programs find all certificates.
    bundle: &'static str,
}

/// Debian, Ubuntu, Alpine; Fedora, RHEL; Arch; openSUSE. Source: each distribution's page on adding an authority.
static KINDS: [Kind; 4] = [
    Kind {
        directory: "usr/local/share/ca-certificates",
        update: &["update-ca-certificates"],
        // Otherwise the link to the removed file stays.
        update_after_removal: &["update-ca-certificates", "--fresh"],
        bundle: "/etc/ssl/certs/ca-certificates.crt",
    },
    Kind {
        directory: "etc/pki/ca-trust/source/anchors",
        update: &["update-ca-trust", "extract"],
        update_after_removal: &["update-ca-trust", "extract"],
        bundle: "/etc/pki/tls/certs/ca-bundle.crt",
    },
    Kind {
        directory: "etc/ca-certificates/trust-source/anchors",
        update: &["trust", "extract-compat"],
        update_after_removal: &["trust", "extract-compat"],
        bundle: "/etc/ssl/certs/ca-certificates.crt",
    },
    Kind {
        directory: "usr/share/pki/trust/anchors",
        update: &["update-ca-certificates"],
        update_after_removal: &["update-ca-certificates"],
        bundle: "/etc/ssl/ca-bundle.pem",
    },
];

/// The store of this machine.
pub enum SystemStore {
    /// A directory and a command.
    Linux(PathBuf, &'static Kind),
    /// The system's keychain.
    MacOs,
    /// The user's store of roots.
    Windows,
}

impl SystemStore {
    /// Finds it; `root`: the directory under which to look on Linux.
    ///
    /// # Errors
    /// A system without a store that is known here.
    pub fn find(root: &Path) -> Result<SystemStore, Failure> {
        if cfg!(target_os = "macos") {
            return Ok(SystemStore::MacOs);
        }
        if cfg!(windows) {
            return Ok(SystemStore::Windows);
        }
        let mut kinds = KINDS.iter().map(|kind| (root.join(kind.directory), kind));
        let found = kinds.find(|(directory, _)| directory.is_dir());
        found
            .map(|(directory, kind)| SystemStore::Linux(directory, kind))
            .ok_or_else(|| {
                let known: Vec<&str> = KINDS.iter().map(|kind| kind.directory).collect();
                Failure::new(format!(
                    "this system has no certificate store that is known here (none of /{}); install the package \
                 ca-certificates, or use --pem and --keystore",
                    known.join(", /")
                ))
            })
    }

    /// The file in which programs find all certificates of the store.
    pub fn bundle(&self) -> Option<&'static str> {
        match self {
            SystemStore::Linux(_, kind) => Some(kind.bundle),
            SystemStore::MacOs | SystemStore::Windows => None,
        }
    }

    /// Adds a certificate, unless it is there.
    ///
    /// # Errors
    /// No right to write there, or a command that is missing or fails: then nothing stays behind.
    pub fn add(&self, candidate: &Candidate) -> Result<String, Failure> {
        match self {
            SystemStore::Linux(directory, kind) => add_to_directory(directory, kind, candidate),
            SystemStore::MacOs => {
                let arguments = "add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain";
                with_file(candidate, |file| {
                    run("security", &[&words(arguments)[..], &[file]].concat())
                })
            }
            SystemStore::Windows => with_file(candidate, |file| {
                run("certutil", &[&words("-addstore -user Root")[..], &[file]].concat())
            }),
        }
    }

    /// Removes every certificate that [`SystemStore::add`] put there; on macOS and Windows the one that the options name.
    ///
    /// # Errors
    /// As [`SystemStore::add`].
    pub fn remove(&self, options: &TrustOptions) -> Result<String, Failure> {
        match self {
            SystemStore::Linux(directory, kind) => remove_from_directory(directory, kind),
            SystemStore::MacOs => {
                let candidate = Candidate::find(options)?;
                with_file(&candidate, |file| run("security", &["remove-trusted-cert", "-d", file]))?;
                run("security", &["delete-certificate", "-Z", &candidate.facts.fingerprint])?;
                Ok("removed from the system's keychain\n".to_owned())
            }
            SystemStore::Windows => {
                let candidate = Candidate::find(options)?;
                run("certutil", &["-delstore", "-user", "Root", &candidate.facts.serial])?;
                Ok("removed from the user's store of roots\n".to_owned())
            }
        }
    }
}

fn add_to_directory(directory: &Path, kind: &Kind, candidate: &Candidate) -> Result<String, Failure> {
    let file = directory.join(format!("{}.crt", added_name(&candidate.facts.fingerprint)));
    let place = file.display();
    if file.exists() {
        return Ok(format!("the system's store has it already: {place}\n"));
    }
    files::write(&file, &candidate.pem(), Readers::Everybody).map_err(|error| cannot("write", &file, &error))?;
    if let Err(failure) = run(kind.update[0], &kind.update[1..]) {
        // Otherwise the next update of the store by somebody else would add it.
        let _ = fs::remove_file(&file);
        return Err(failure);
    }
    Ok(format!("the system's store has it now: {place}\n"))
}

fn remove_from_directory(directory: &Path, kind: &Kind) -> Result<String, Failure> {
    let entries = fs::read_dir(directory).map_err(|error| cannot("read", directory, &error))?;
    let added: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| is_added(path))
        .collect();
    for file in &added {
        fs::remove_file(file).map_err(|error| cannot("remove", file, &error))?;
    }
    if added.is_empty() {
        return Ok("the system's store has no certificate that `bolide trust` added\n".to_owned());
    }
    run(kind.update_after_removal[0], &kind.update_after_removal[1..])?;
    Ok(format!(
        "removed from the system's store. certificates={}\n",
        added.len()
    ))
}

/// Whether a file was added by this command: its name has the fingerprint of the certificate in it.
fn is_added(path: &Path) -> bool {
    let has_ending = path.extension().is_some_and(|ending| ending == "crt");
    let Some(name) = path
        .file_stem()
        .and_then(|name| name.to_str())
        .filter(|name| has_ending && is_added_name(name))
    else {
        return false;
    };
    let pem = fs::read(path).unwrap_or_default();
    let facts = CertificateDer::from_pem_slice(&pem)
        .ok()
        .and_then(|der| CertificateFacts::of(&der));
    facts.is_some_and(|facts| added_name(&facts.fingerprint) == name)
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// Runs a command that reads the certificate from a file.
fn with_file(candidate: &Candidate, command: impl FnOnce(&str) -> Result<(), Failure>) -> Result<String, Failure> {
    let file = std::env::temp_dir().join(format!("{}.crt", added_name(&candidate.facts.fingerprint)));
    files::write(&file, &candidate.pem(), Readers::Everybody).map_err(|error| cannot("write", &file, &error))?;
    let done = command(&file.display().to_string());
    let _ = fs::remove_file(&file);
    done.map(|()| "the system's store has it now\n".to_owned())
}

fn run(program: &str, arguments: &[&str]) -> Result<(), Failure> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::new(format!("cannot run {program}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [&output.stderr[..], &output.stdout[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let why = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("no reason given");
    Err(Failure::new(format!("{program} failed ({}): {why}", output.status)))
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "; only an administrator may: repeat it with sudo, or use the lines above"
        }
        _ => "",
    };
    Failure::new(format!("cannot {verb} {}: {error}{hint}", path.display()))
}
