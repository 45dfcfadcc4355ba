//! `bolide nodes`: the servers that use the store of a running server, through its admin API.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use clap::Args;
use serde_json::Value;

use crate::admin_client::AdminClient;
use crate::server::Failure;
use crate::target::ServerOptions;

/// The options of `nodes`.
#[derive(Debug, Clone, Args)]
pub struct NodesOptions {
    #[command(flatten)]
    pub server: ServerOptions,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// Prints the servers.
///
/// # Errors
/// Why they cannot be asked for, in one line.
pub fn run(options: &NodesOptions) -> Result<(), Failure> {
    let cluster = AdminClient::new(&options.server)?.get("cluster")?;
    let text = match options.json {
        true => format!("{cluster}\n"),
        false => table(&cluster),
    };
    let written = io::stdout().lock().write_all(text.as_bytes());
    written.map_err(|error| Failure::new(format!("cannot write to standard output: {error}")))
}

/// The servers as a table; an asterisk marks the one that was asked. `lag` is the age of the last heartbeat, `clock` how uncertain its time is.
fn table(cluster: &Value) -> String {
    let mut text = String::from("  id                alive      lag    clock  partitions  conflicts  endpoint\n");
    for node in cluster["nodes"].as_array().into_iter().flatten() {
        let number = |name: &str| node[name].as_u64().unwrap_or_default();
        let clock = |name: &str| node["clock"][name].as_i64().unwrap_or_default();
        let _ = writeln!(
            text,
            "{} {:16} {:>6} s {:>5} ms {:>5} ms {:>11} {:>10}  {}",
            if node["isSelf"] == true { '*' } else { ' ' },
            node["id"].as_str().unwrap_or_default(),
            number("aliveMs") / 1000,
            number("heartbeatAgeMs"),
            clock("hiMs").saturating_sub(clock("loMs")),
            number("partitionsOwned"),
            number("conflicts"),
            node["endpoint"].as_str().unwrap_or_default(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_server() {
        let node = |id: &str, is_self: bool| {
            json!({
                "id": id, "endpoint": "http://10.0.0.1:8081", "isSelf": is_self, "aliveMs": 61_500, "heartbeatAgeMs": 320,
                "clock": {"loMs": 1_000, "hiMs": 1_002}, "partitionsOwned": 7, "conflicts": 12,
            })
        };
        let cluster = json!({"nodes": [node("00000000000000aa", true), node("00000000000000bb", false)]});
        assert_eq!(
            table(&cluster),
            "  id                alive      lag    clock  partitions  conflicts  endpoint\n\
             * 00000000000000aa     61 s   320 ms     2 ms           7         12  http://10.0.0.1:8081\n\
             \x20 00000000000000bb     61 s   320 ms     2 ms           7         12  http://10.0.0.1:8081\n"
        );
    }
}
