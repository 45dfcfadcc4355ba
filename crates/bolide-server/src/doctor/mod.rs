//! `bolide doctor`: explains why clients do not connect.
//!
//! ```text
//!   this machine        proxies in the environment · limits of the process · the data directory      machine
//!   the network         the name · who listens there · Bolide or another program, ready or not       server
//!   the account         the clocks · the key · the endpoint that SDKs are told to go on with         account
//!   direct mode         where clients send frames · whether they are taken there                     direct
//!   HTTPS               whether it is spoken · the names, the validity and the trust                 certificate
//!   MongoDB's port      whether it answers `hello`                                                   mongo
//! ```
//!
//! Every finding is one line: `ok`, `note`, `warn` or `fail`, the topic, what was found, and what to do. A check whose ground has failed is left out.
//! Only signatures of one request are sent, never the key.

mod account;
mod certificate;
mod direct;
mod machine;
mod mongo;
mod report;
mod server;

use std::path::PathBuf;

use bolide_model::account_key::{AccountKey, WELL_KNOWN_KEY};
use clap::Args;

use self::report::Report;
use crate::endpoint::Target;
use crate::keys;
use crate::server::Failure;

/// The options of `doctor`.
#[derive(Debug, Clone, Args)]
pub struct DoctorOptions {
    /// The server, as clients are told to reach it.
    #[arg(long, default_value = "http://localhost:8081", value_name = "URL")]
    pub endpoint: String,
    /// Account key of that server, base64; by default the emulator's well-known key.
    #[arg(long, env = "BOLIDE_KEY", hide_env_values = true, value_name = "BASE64")]
    pub key: Option<String>,
    /// File with that key.
    #[arg(long, env = "BOLIDE_KEY_FILE", value_name = "FILE", conflicts_with = "key")]
    pub key_file: Option<PathBuf>,
    /// The server's port for MongoDB's drivers.
    #[arg(long, env = "BOLIDE_MONGO_PORT", default_value_t = 10255, value_name = "PORT")]
    pub mongo_port: u16,
    /// Do not look for MongoDB's drivers' port.
    #[arg(long)]
    pub no_mongo: bool,
    /// Also check this data directory; by default ./bolide-data, if it is there.
    #[arg(long, env = "BOLIDE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// Runs all checks and prints their lines.
///
/// # Errors
/// The number of failed checks, if there are any; options that make no sense.
pub fn run(options: &DoctorOptions) -> Result<(), Failure> {
    let target = Target::parse("--endpoint", &options.endpoint)?;
    let text = keys::given("--key", options.key.as_deref(), options.key_file.as_deref())?;
    let text = text.unwrap_or_else(|| WELL_KNOWN_KEY.to_owned());
    let key = AccountKey::parse(&text).map_err(|error| Failure::new(format!("--key: {error}")))?;
    let mut report = Report::default();
    machine::check_proxies(&mut report, &target, |name| std::env::var(name).ok());
    machine::check_limits(&mut report);
    machine::check_data_directory(&mut report, options.data_dir.as_deref());
    if let Some(server) = server::check(&mut report, &target) {
        account::check(&mut report, &target, &server, &key);
        certificate::check(&mut report, &target);
        if !options.no_mongo {
            mongo::check(&mut report, &target, options.mongo_port);
        }
    }
    report.print();
    match report.failures() {
        0 => Ok(()),
        1 => Err(Failure::new("1 check failed")),
        count => Err(Failure::new(format!("{count} checks failed"))),
    }
}
