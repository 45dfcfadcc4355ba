//! A file with certificates in PEM.

use std::fs;
use std::io;
use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::candidate::Candidate;
use crate::files::{self, Readers};
use crate::server::Failure;

/// The line above a certificate that this command added; its fingerprint follows.
const COMMENT: &str = "# bolide trust, SHA-256 ";
const END: &str = "-----END CERTIFICATE-----";

/// Appends the certificate, unless the file has it.
///
/// # Errors
/// A file that cannot be read or written, or is not PEM.
pub fn add(path: &Path, candidate: &Candidate) -> Result<String, Failure> {
    let text = read(path)?.unwrap_or_default();
    if !text.trim().is_empty() && !text.contains(END) {
        return Err(Failure::new(format!(
            "--pem: {} has no certificate in PEM; it is not changed",
            path.display()
        )));
    }
    let has_it =
        CertificateDer::pem_slice_iter(text.as_bytes()).any(|known| known.is_ok_and(|known| known == candidate.der));
    if has_it {
        return Ok(format!("{} has the certificate already\n", path.display()));
    }
    write(path, &with(&text, candidate))?;
    Ok(format!("{} has the certificate now\n", path.display()))
}

/// Removes every certificate that [`add`] appended; a file that has nothing else is removed.
///
/// # Errors
/// A file that cannot be read or written.
pub fn remove(path: &Path) -> Result<String, Failure> {
    let place = path.display();
    let Some(text) = read(path)? else {
        return Ok(format!("{place}: there is no such file\n"));
    };
    let (kept, removed) = without(&text);
    if removed == 0 {
        return Ok(format!("{place} has no certificate that `bolide trust` added\n"));
    }
    if kept.is_empty() {
        fs::remove_file(path).map_err(|error| cannot("remove", path, &error))?;
        return Ok(format!("{place} was removed: it had only what `bolide trust` added\n"));
    }
    write(path, &kept)?;
    Ok(format!("{place}: removed. certificates={removed}\n"))
}

fn with(text: &str, candidate: &Candidate) -> String {
    let gap = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!(
        "{text}{gap}{COMMENT}{}\n{}",
        candidate.facts.fingerprint,
        candidate.pem()
    )
}

/// The text without the blocks that were added, and how many there were.
fn without(text: &str) -> (String, usize) {
    let (mut kept, mut removed, mut is_inside) = (String::new(), 0, false);
    for line in text.split_inclusive('\n') {
        if line.starts_with(COMMENT) {
            is_inside = true;
            removed += 1;
        }
        if !is_inside {
            kept.push_str(line);
        }
        if line.trim_end() == END {
            is_inside = false;
        }
    }
    (kept, removed)
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot("read", path, &error)),
    }
}

/// Replaces the file behind a link, not the link, and keeps the permissions of a file that was there.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let permissions = fs::metadata(&target).map(|metadata| metadata.permissions());
    let written = files::write(&target, text, Readers::Everybody).and_then(|()| match permissions {
        Ok(permissions) => fs::set_permissions(&target, permissions),
        Err(_) => Ok(()),
    });
    written.map_err(|error| cannot("write", path, &error))
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("--pem: cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
