//! What a newcomer sees at the start: everything to paste into a client.

use std::io::Write as _;

use crate::options::Settings;
use crate::ready_file::endpoint;

/// Prints where the server is and how to connect.
pub fn print(settings: &Settings, port: u16, engine: &str) {
    // Nobody reads it if standard output is closed, which is no reason to stop.
    let _ = std::io::stdout()
        .lock()
        .write_all(text(settings, port, engine).as_bytes());
}

fn text(settings: &Settings, port: u16, engine: &str) -> String {
    let options = &settings.options;
    let endpoint = endpoint(&options.host, port);
    let key = &settings.primary_key;
    let data = if options.memory {
        "in memory, gone at the end".to_owned()
    } else {
        options.data_dir.display().to_string()
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
  MongoDB       not in this version yet

  Python        CosmosClient(\"http://{endpoint}/\", \"{key}\")
  JavaScript    new CosmosClient({{ endpoint: \"http://{endpoint}/\", key: \"{key}\" }})
  .NET, Java    gateway mode, https://{endpoint}/ (trust the certificate, or switch its validation off)

Ctrl-C stops the server.
",
        version = env!("CARGO_PKG_VERSION"),
    )
}
