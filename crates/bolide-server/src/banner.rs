//! The message at the start, with everything to paste into a client.

use std::io::Write as _;

use bolide_cosmos::WELL_KNOWN_KEY;

use crate::options::{Settings, is_loopback};
use crate::ready_file::endpoint;

/// Prints the server's address and how to connect.
pub fn print(settings: &Settings, port: u16, engine: &str) {
    let text = text(settings, port, engine);
    // Standard output may be closed, or a full pipe that nobody reads and that would keep the server from stopping.
    let printing = std::thread::Builder::new().name("banner".to_owned());
    let printed = printing.spawn(move || std::io::stdout().lock().write_all(text.as_bytes()));
    if let Err(error) = printed {
        tracing::debug!(%error, "the banner was not printed");
    }
}

fn text(settings: &Settings, port: u16, engine: &str) -> String {
    let options = &settings.options;
    let endpoint = endpoint(&options.host, port);
    // A key chosen by the user is a secret, and standard output often goes to a log.
    let key = match settings.keys.primary.as_str() {
        WELL_KNOWN_KEY => WELL_KNOWN_KEY,
        _ => "<your key>",
    };
    let warning = if settings.keys.is_public && !is_loopback(&options.host) {
        "\n  Anyone who reaches this address has full access: the key is public.\n"
    } else {
        ""
    };
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
    format!(
        "\
Bolide {version} is ready.

  Endpoint      http://{endpoint}/   https://{endpoint}/
  Key           {key}
  Connection    AccountEndpoint=http://{endpoint}/;AccountKey={key};
  Data          {data} ({engine}){clock}
  Certificate   http://{endpoint}/_explorer/emulator.pem
  Health        http://{endpoint}/_bolide/health

  Python        CosmosClient(\"http://{endpoint}/\", \"{key}\")
  JavaScript    new CosmosClient({{ endpoint: \"http://{endpoint}/\", key: \"{key}\" }})
  .NET, Java    gateway mode, https://{endpoint}/ (trust the certificate, or switch its validation off)
{warning}
Ctrl-C stops the server.
",
        version = env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests;
