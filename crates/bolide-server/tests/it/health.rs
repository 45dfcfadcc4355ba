//! `bolide health`, as the health check of a container calls it.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::server::{Server, command, run};

#[test]
fn a_ready_server_is_healthy() {
    let server = Server::in_memory(&[]);
    let endpoint = format!("http://127.0.0.1:{}", server.port());
    let ended = run(&["health", "--endpoint", &endpoint]);
    assert!(ended.status.success(), "{}", ended.stderr);
    assert_eq!(ended.stderr, "");
}

#[test]
fn the_port_is_the_one_of_the_environment() {
    let server = Server::in_memory(&[]);
    let port = server.port().to_string();
    let status = command().arg("health").env("BOLIDE_PORT", &port).status();
    assert!(status.expect("the binary starts").success());
    let mut emulator = command();
    let emulator = emulator.arg("health").env("BOLIDE_EMULATOR", "1").env("PORT", &port);
    assert!(emulator.status().expect("the binary starts").success());
}

#[test]
fn a_port_where_nobody_listens_is_not_healthy() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", free.local_addr().expect("an address"));
    drop(free);
    let ended = run(&["health", "--endpoint", &endpoint]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains(&endpoint), "{}", ended.stderr);
}

#[test]
fn a_server_that_recovers_is_not_healthy_and_a_proxy_is_not_asked() {
    let recovering = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", recovering.local_addr().expect("an address"));
    let answering = std::thread::spawn(move || {
        let (mut client, _) = recovering.accept().expect("a connection");
        let mut head = [0; 1024];
        let read = client.read(&mut head).expect("a request");
        let answer = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        client.write_all(answer.as_bytes()).expect("an answer");
        String::from_utf8_lossy(&head[..read]).into_owned()
    });
    let output = command()
        .args(["health", "--endpoint", &endpoint])
        // Nobody listens on the discard port.
        .env("HTTP_PROXY", "http://127.0.0.1:9")
        .env("http_proxy", "http://127.0.0.1:9")
        .output()
        .expect("the binary starts");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("status=503"), "{error}");
    let asked = answering.join().expect("the answering thread ends");
    assert!(asked.starts_with("GET /_bolide/health "), "{asked}");
}

#[test]
fn a_server_that_never_answers_is_not_healthy() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", silent.local_addr().expect("an address"));
    let ended = run(&["health", "--endpoint", &endpoint, "--timeout", "1"]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("timeout"), "{}", ended.stderr);
}
