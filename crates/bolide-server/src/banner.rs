//! The message at the start, with everything to paste into a client: short and coloured in a terminal, plain text elsewhere.

mod terminal;

use std::io::{IsTerminal as _, Write as _};

use bolide_model::account_key::WELL_KNOWN_KEY;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use self::terminal::Colours;
use crate::demo;
use crate::emulator::log_lines;
use crate::mongo;
use crate::options::Settings;
use crate::postgres;
use crate::ready_file::endpoint;
use crate::server::Ports;

/// What the message says.
struct Facts {
    /// Host and port for HTTP and HTTPS.
    endpoint: String,
    /// The well-known key, or a placeholder: a key chosen by the user is a secret, and standard output often goes to a log.
    key: &'static str,
    /// Where the data is.
    data: String,
    /// The name of the engine.
    engine: String,
    is_clock_virtual: bool,
    /// The URL for MongoDB's drivers, if the server listens for them.
    mongo: Option<String>,
    /// The other ports of an emulator: a name and a URL.
    emulator: Vec<(&'static str, String)>,
    /// The warning of a server to which everybody on the network has full access, a line each.
    warning: Vec<String>,
    /// The lines after the message that tools wait for; nothing may follow them.
    last: String,
    /// Commands for the sample database: what they show, and their text.
    to_try: Vec<(&'static str, String)>,
}

/// Prints the server's address and how to connect.
pub fn print(settings: &Settings, ports: Ports, engine: &str) {
    let facts = Facts::of(settings, ports, engine);
    let text = if std::io::stdout().is_terminal() {
        let variable = |name: &str| std::env::var(name).ok();
        let colours = Colours::of_terminal(variable("NO_COLOR").as_deref(), variable("TERM").as_deref());
        terminal::text(&facts, colours)
    } else {
        plain(&facts)
    };
    // Standard output may be closed, or a full pipe that nobody reads and that would keep the server from stopping.
    let printing = std::thread::Builder::new().name("banner".to_owned());
    let printed = printing.spawn(move || std::io::stdout().lock().write_all(text.as_bytes()));
    if let Err(error) = printed {
        tracing::debug!(%error, "the banner was not printed");
    }
}

impl Facts {
    fn of(settings: &Settings, ports: Ports, engine: &str) -> Facts {
        let options = &settings.options;
        let mut facts = Facts {
            endpoint: endpoint(options.host(), ports.http),
            key: match settings.keys.primary.as_str() {
                WELL_KNOWN_KEY => WELL_KNOWN_KEY,
                _ => "<your key>",
            },
            data: match &settings.store {
                Some(store) => postgres::place(store),
                None if options.memory => "in memory, gone at the end".to_owned(),
                None => options.data_dir().display().to_string(),
            },
            engine: engine.to_owned(),
            is_clock_virtual: settings.clock.is_virtual(),
            mongo: ports.mongo.map(|port| mongo_url(settings, port)),
            emulator: log_lines::in_banner(settings, ports),
            warning: log_lines::warning(settings),
            last: log_lines::last(settings, ports),
            to_try: Vec::new(),
        };
        if options.is_demo {
            facts.to_try = facts.demo_commands();
        }
        facts
    }

    /// Three commands that show the sample database.
    fn demo_commands(&self) -> Vec<(&'static str, String)> {
        let Facts { endpoint, key, .. } = self;
        let (database, codes, carts) = (demo::DATABASE, demo::CODES, demo::CARTS);
        let mut commands = vec![
            (
                "one of these items ends every 5 seconds: run it again",
                format!(
                    "bolide query 'SELECT c.id, ROUND(c.ttl - (GetCurrentTimestamp() / 1000 - c._ts)) AS secondsLeft FROM c' \
                     --database {database} --container {codes} --format table --endpoint http://{endpoint}"
                ),
            ),
            (
                "what expires when, and what was purged",
                format!(
                    "curl -s -H 'Authorization: Bearer {key}' http://{endpoint}/_bolide/dbs/{database}/colls/sessions/ttl"
                ),
            ),
        ];
        commands.push(match &self.mongo {
            Some(url) => (
                "a TTL index of MongoDB: one of these documents ends every 10 seconds",
                format!("mongosh '{url}' --quiet --eval 'db.getSiblingDB(\"{database}\").{carts}.countDocuments()'"),
            ),
            None => (
                "their container has no TTL: the ttl of some of these items has no effect",
                format!(
                    "bolide query 'SELECT c.id, c.ttl FROM c' --database {database} --container orders --endpoint http://{endpoint}"
                ),
            ),
        });
        commands
    }
}

/// The message for logs and files.
fn plain(facts: &Facts) -> String {
    let Facts {
        endpoint,
        key,
        data,
        engine,
        ..
    } = facts;
    let emulator: String = facts
        .emulator
        .iter()
        .map(|(name, url)| format!("\n  {name:<13} {url}"))
        .collect();
    let mut warning: String = facts.warning.iter().map(|line| format!("\n  {line}")).collect();
    if !warning.is_empty() {
        warning.push('\n');
    }
    let clock = if facts.is_clock_virtual {
        "\n  Clock         virtual; move it with PUT /_bolide/clock"
    } else {
        ""
    };
    let mongo = facts.mongo.as_ref();
    let mongo = mongo.map(|url| format!("\n  MongoDB       {url}")).unwrap_or_default();
    let to_try: String = facts
        .to_try
        .iter()
        .map(|(what, command)| format!("\n  Try           # {what}\n  {command}\n"))
        .collect();
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
{warning}{to_try}
Ctrl-C stops the server.
{last}",
        last = facts.last,
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// The URL for MongoDB's drivers, with user and password.
fn mongo_url(settings: &Settings, port: u16) -> String {
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
    format!("mongodb://{user}{endpoint}/?replicaSet={set}")
}

#[cfg(test)]
mod tests;
