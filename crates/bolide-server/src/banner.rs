//! The message at the start, with everything to paste into a client.

use std::io::Write as _;

use bolide_model::account_key::WELL_KNOWN_KEY;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::emulator::log_lines;
use crate::mongo;
use crate::options::Settings;
use crate::ready_file::endpoint;
use crate::server::Ports;

/// Prints the server's address and how to connect.
pub fn print(settings: &Settings, ports: Ports, engine: &str) {
    let text = text(settings, ports, engine);
    // Standard output may be closed, or a full pipe that nobody reads and that would keep the server from stopping.
    let printing = std::thread::Builder::new().name("banner".to_owned());
    let printed = printing.spawn(move || std::io::stdout().lock().write_all(text.as_bytes()));
    if let Err(error) = printed {
        tracing::debug!(%error, "the banner was not printed");
    }
}

fn text(settings: &Settings, ports: Ports, engine: &str) -> String {
    let options = &settings.options;
    let endpoint = endpoint(options.host(), ports.http);
    // A key chosen by the user is a secret, and standard output often goes to a log.
    let key = match settings.keys.primary.as_str() {
        WELL_KNOWN_KEY => WELL_KNOWN_KEY,
        _ => "<your key>",
    };
    let (emulator, warning) = (log_lines::in_banner(settings, ports), log_lines::warning(settings));
    let data = if options.memory {
        "in memory, gone at the end".to_owned()
    } else {
        options.data_dir().display().to_string()
    };
    let clock = if settings.clock.is_virtual() {
        "\n  Clock         virtual; move it with PUT /_bolide/clock"
    } else {
        ""
    };
    let mongo = ports.mongo.map(|port| mongo_line(settings, port)).unwrap_or_default();
    format!(
        "\
Bolide {version} is ready.

  Endpoint      http://{endpoint}/   https://{endpoint}/
  Key           {key}
  Connection    AccountEndpoint=http://{endpoint}/;AccountKey={key};
  Data          {data} ({engine}){clock}
  Certificate   http://{endpoint}/_explorer/emulator.pem
  Health        http://{endpoint}/_bolide/health{emulator}{mongo}

  Python        CosmosClient(\"http://{endpoint}/\", \"{key}\")
  JavaScript    new CosmosClient({{ endpoint: \"http://{endpoint}/\", key: \"{key}\" }})
  .NET, Java    gateway mode, https://{endpoint}/ (trust the certificate, or switch its validation off)
{warning}
Ctrl-C stops the server.
{last}",
        last = log_lines::last(settings, ports),
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// The line for MongoDB's drivers, with its line break.
fn mongo_line(settings: &Settings, port: u16) -> String {
    let options = &settings.options.mongo;
    let endpoint = endpoint(settings.options.host(), port);
    let user = if options.mongo_no_auth {
        String::new()
    } else {
        // In a URL, `/`, `+` and `=` of a key must be escaped.
        let key = match settings.keys.primary.as_str() {
            WELL_KNOWN_KEY => utf8_percent_encode(WELL_KNOWN_KEY, NON_ALPHANUMERIC).to_string(),
            _ => "<your key>".to_owned(),
        };
        format!("{}:{key}@", mongo::USER)
    };
    let set = &options.mongo_set_name;
    format!("\n  MongoDB       mongodb://{user}{endpoint}/?replicaSet={set}")
}

#[cfg(test)]
mod tests;
