//! `bolide trust`: puts a server's certificate where clients look, or takes it away again.
//!
//! ```text
//!   the server, or its data directory ─▶ one certificate ─▶ is it fit to be trusted? ─┬▶ the system's store    system
//!                                                                                     ├▶ a Java key store      keystore
//!                                                                                     └▶ a bundle in PEM       bundle
//! ```
//!
//! Only a certificate that can do no harm is accepted: it signs no others, it names only this machine, and nobody in between could have exchanged it.
//! Everything else needs its fingerprint, which the server's owner tells. `--undo` removes exactly what was added, and needs no server: what was added
//! carries its fingerprint in its name.

mod bundle;
mod candidate;
mod keystore;
mod system;

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;

use self::candidate::Candidate;
use self::system::SystemStore;
use crate::files;
use crate::server::Failure;

/// Names of what was added begin with this; the first 16 digits of the fingerprint follow.
const NAME_PREFIX: &str = "bolide-";
const NAME_DIGITS: usize = 16;

/// The options of `trust`.
#[derive(Debug, Clone, Args)]
pub struct TrustOptions {
    /// The server whose certificate is to be trusted.
    #[arg(long, default_value = "https://127.0.0.1:8081", value_name = "URL")]
    pub endpoint: String,
    /// Take the certificate from this data directory instead, without asking a server.
    #[arg(long, value_name = "DIR", conflicts_with = "endpoint")]
    pub data_dir: Option<PathBuf>,
    /// SHA-256 of the certificate, in hexadecimal; needed if the server is not on this machine, or if the certificate names other machines.
    #[arg(long, value_name = "SHA256")]
    pub fingerprint: Option<String>,
    /// A Java key store, made if it does not exist, instead of the system's store; needs Java's keytool.
    #[arg(long, value_name = "FILE")]
    pub keystore: Option<PathBuf>,
    /// Password of the key store.
    #[arg(
        long,
        env = "BOLIDE_STOREPASS",
        hide_env_values = true,
        default_value = "changeit",
        value_name = "PASSWORD"
    )]
    pub storepass: String,
    /// A file with certificates in PEM, made if it does not exist, instead of the system's store.
    #[arg(long, value_name = "FILE")]
    pub pem: Option<PathBuf>,
    /// Remove what this command has added there; needs no server.
    #[arg(long)]
    pub undo: bool,
    /// Directory under which the system's store is looked for, for tests.
    #[arg(long, hide = true, default_value = "/", value_name = "DIR")]
    pub system_root: PathBuf,
}

/// Adds or removes the certificate, and prints what was done and what is left to do.
///
/// # Errors
/// A certificate that cannot be had or must not be trusted; a place that cannot be written: then the output has the lines with which each SDK trusts
/// the certificate without it.
pub fn run(options: &TrustOptions) -> Result<(), Failure> {
    // Every user of this machine reads what is written here, and nothing of it is secret.
    files::let_others_read_new_files();
    if options.undo {
        return undo(options);
    }
    let candidate = Candidate::find(options)?;
    candidate.check_fitness(options)?;
    say(&format!(
        "certificate  {}\n             of {}\n             for {}\n             until {}\n",
        candidate.facts.fingerprint,
        candidate.source,
        candidate.facts.names.join(", "),
        candidate.facts.valid.1.date()
    ));
    if let Some(file) = &options.pem {
        say(&bundle::add(file, &candidate)?);
    }
    if let Some(file) = &options.keystore {
        say(&keystore::add(file, &options.storepass, &candidate)?);
    }
    if options.pem.is_some() || options.keystore.is_some() {
        return Ok(());
    }
    match SystemStore::find(&options.system_root).and_then(|store| Ok((store.add(&candidate)?, store))) {
        Ok((done, store)) => {
            say(&done);
            say(&other_clients(&candidate, store.bundle()));
            Ok(())
        }
        Err(failure) => {
            say(&every_client(&candidate));
            Err(failure)
        }
    }
}

fn undo(options: &TrustOptions) -> Result<(), Failure> {
    if let Some(file) = &options.pem {
        say(&bundle::remove(file)?);
    }
    if let Some(file) = &options.keystore {
        say(&keystore::remove(file, &options.storepass)?);
    }
    if options.pem.is_none() && options.keystore.is_none() {
        say(&SystemStore::find(&options.system_root)?.remove(options)?);
    }
    Ok(())
}

/// What programs need that do not read the system's store. `bundle`: where that store has all certificates in one file.
fn other_clients(candidate: &Candidate, bundle: Option<&str>) -> String {
    let file = candidate.file_hint();
    let bundle = bundle.map_or(String::new(), |bundle| {
        format!("  Python      export REQUESTS_CA_BUNDLE={bundle}\n")
    });
    format!(
        "Go, .NET, curl and other programs that read the system's store trust it now. The others:\n{bundle}\
         {}  JavaScript  export NODE_EXTRA_CA_CERTS={}\n\
         \x20 Java        bolide trust {} --keystore bolide.p12\n\
         \x20             java -Djavax.net.ssl.trustStore=bolide.p12 -Djavax.net.ssl.trustStorePassword=changeit …\n",
        file.make, file.path, candidate.option
    )
}

/// What each SDK needs if the system's store cannot be used.
fn every_client(candidate: &Candidate) -> String {
    let file = candidate.file_hint();
    format!(
        "Each of these lines makes one SDK trust it, without the system's store:\n{}\
         \x20 Go          export SSL_CERT_FILE={path}\n\
         \x20 .NET        export SSL_CERT_FILE={path}\n\
         \x20 Python      export REQUESTS_CA_BUNDLE={path}\n\
         \x20 JavaScript  export NODE_EXTRA_CA_CERTS={path}\n\
         \x20 Java        bolide trust {option} --keystore bolide.p12\n\
         \x20             java -Djavax.net.ssl.trustStore=bolide.p12 -Djavax.net.ssl.trustStorePassword=changeit …\n",
        file.make,
        path = file.path,
        option = candidate.option
    )
}

/// The name under which a certificate is added.
fn added_name(fingerprint: &str) -> String {
    format!("{NAME_PREFIX}{}", &fingerprint[..NAME_DIGITS.min(fingerprint.len())])
}

/// Whether this command gave the name.
fn is_added_name(name: &str) -> bool {
    let digits = name.strip_prefix(NAME_PREFIX);
    digits.is_some_and(|digits| digits.len() == NAME_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// A report that cannot be written does not undo what was done.
fn say(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests;
