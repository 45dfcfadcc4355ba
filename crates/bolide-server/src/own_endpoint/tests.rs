use clap::Parser as _;

use super::*;
use crate::options::{Cli, Command};

fn told(arguments: &[&str]) -> (String, Option<String>) {
    let cli = Cli::try_parse_from([&["bolide"], arguments].concat()).expect("options");
    let Command::Serve(options) = cli.into_command() else {
        panic!("another command");
    };
    let settings = options
        .validate()
        .map_err(|failure| failure.to_string())
        .expect("settings");
    let ports = Ports {
        http: 8081,
        mongo: None,
        health: None,
        explorer: None,
    };
    let Endpoint { http, frames, .. } = of(&settings, ports);
    (http, frames)
}

#[test]
fn others_are_told_what_clients_use() {
    let both = |host: &str| (format!("http://{host}"), Some(host.to_owned()));
    // Nobody has said under which name clients know it.
    assert_eq!(told(&[]), ("http://127.0.0.1:8081".to_owned(), None));
    assert_eq!(told(&["--advertise-host", "db1"]), both("db1:8081"));
    let whole = told(&["--public-endpoint", "https://db.example"]);
    assert_eq!(
        whole,
        ("https://db.example".to_owned(), Some("db.example:443".to_owned()))
    );
    let (http, frames) = told(&["--peer-host", "inner", "--advertise-host", "db1"]);
    assert_eq!(
        (http.as_str(), frames.as_deref()),
        ("http://inner:8081", Some("db1:8081"))
    );
    assert_eq!(told(&["--no-direct", "--advertise-host", "db1"]).1, None);
}
