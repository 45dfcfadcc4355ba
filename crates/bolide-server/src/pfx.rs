//! Certificates in PFX files (PKCS #12), as .NET and the official emulator have them: the chain and the key in one file, under a password.
//!
//! Files that are encrypted with AES (PBES2) or, as older tools do it, with 3DES and SHA-1 can be read.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use p12_keystore::{KeyStore, Pkcs12ImportPolicy};
use pem::{EncodeConfig, LineEnding, Pem};

use crate::server::Failure;

/// Maximum size of a file. A chain has some kilobytes.
const FILE_BYTES: u64 = 1024 * 1024;

/// A PFX file and its password.
#[derive(Clone)]
pub struct Pfx {
    /// The file.
    pub path: PathBuf,
    /// Its password, maybe empty.
    pub secret: String,
    /// The option or variable that named the file, for errors.
    pub source: &'static str,
}

impl fmt::Debug for Pfx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pfx").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The content of a PFX file as PEM.
pub struct Content {
    /// The chain, the server's own certificate first.
    pub certificates: String,
    /// The key of the first.
    pub key: String,
}

impl Pfx {
    /// Reads the file.
    ///
    /// # Errors
    /// A file that cannot be read, is no PFX file, has another password or no key. The text never has the password in it.
    pub fn read(&self) -> Result<Content, Failure> {
        let failure = |why: String| Failure::new(format!("{} {}: {why}", self.source, self.path.display()));
        let bytes = read(&self.path).map_err(|error| failure(format!("cannot read the file: {error}")))?;
        let opened = KeyStore::from_pkcs12(&bytes, &self.secret, Pkcs12ImportPolicy::Relaxed);
        let store = opened.map_err(|error| failure(why_not_opened(&error)))?;
        let chain = store.private_key_chain();
        let chain = chain.filter(|(_, chain)| !chain.certs().is_empty());
        let (_, chain) =
            chain.ok_or_else(|| failure("there is no private key with its certificate in the file".to_owned()))?;
        let certificates = chain
            .certs()
            .iter()
            .map(|certificate| pem("CERTIFICATE", certificate.as_der()));
        Ok(Content {
            certificates: certificates.collect(),
            key: pem("PRIVATE KEY", chain.key().as_der()),
        })
    }
}

/// The library's text has no password in it, but does not say what to do.
fn why_not_opened(error: &p12_keystore::error::Error) -> String {
    use p12_keystore::error::Error::{DerError, MacError, Pkcs5Error, UnpadError};
    match error {
        MacError(_) | Pkcs5Error(_) | UnpadError => {
            format!("the password in CERT_SECRET is not the file's: {error}")
        }
        DerError(_) => format!("it is no PFX file (PKCS #12): {error}"),
        _ => format!("it is a PFX file that cannot be used: {error}"),
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(io::Error::other(format!(
            "it is longer than {FILE_BYTES} bytes, so it is no certificate"
        )));
    }
    Ok(bytes)
}

fn pem(tag: &str, der: &[u8]) -> String {
    pem::encode_config(&Pem::new(tag, der), EncodeConfig::new().set_line_ending(LineEnding::LF))
}

#[cfg(test)]
mod tests;
