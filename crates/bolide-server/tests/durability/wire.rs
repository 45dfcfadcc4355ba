//! Requests that only these tests use.

use std::io;
use std::net::TcpStream;

use serde_json::Value;

use crate::client::{Client, Request, Response};

/// Connects; fails if the server is gone.
pub fn connect(port: u16) -> io::Result<Client> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    // Requests are small and wait for their responses.
    stream.set_nodelay(true)?;
    Ok(Client::over(stream))
}

/// A request for items of one logical partition.
pub fn keyed(method: &str, path: &str, partition_key: &str) -> Request {
    Request::new(method, path).header("x-ms-documentdb-partitionkey", &format!("[\"{partition_key}\"]"))
}

/// Sends a request that must get one of several statuses.
#[track_caller]
pub fn expect(client: &mut Client, request: &Request, statuses: &[u16]) -> Response {
    let response = client.send(request);
    assert!(
        statuses.contains(&response.status),
        "{} {}",
        response.status,
        response.text()
    );
    response
}

/// Server time in milliseconds.
pub fn clock(client: &mut Client) -> io::Result<i64> {
    let response = client.try_send(&Request::get("/_bolide/clock"))?;
    Ok(response.json()["nowMs"].as_i64().expect("the clock shows milliseconds"))
}

/// The full check of a container, which must find no errors.
#[track_caller]
pub fn verify(client: &mut Client, container: &str) {
    let report = client
        .send(&Request::post(&format!("/_bolide{container}/verify"), ""))
        .expect(200)
        .json();
    assert_eq!(report["ok"], true, "{container}: {report}");
}

/// The range of a request and the position of its log, from the session token.
pub fn position(response: &Response) -> (u32, u64) {
    let token = response
        .header("x-ms-session-token")
        .expect("a request about an item touches a range");
    let position = token
        .split_once(":-1#")
        .and_then(|(range, lsn)| Some((range.parse().ok()?, lsn.parse().ok()?)));
    position.unwrap_or_else(|| panic!("expected one range. token=`{token}`"))
}

/// An item as its user wrote it.
pub fn user_members(item: &Value) -> Value {
    let members = item
        .as_object()
        .expect("an item")
        .iter()
        .filter(|(name, _)| !name.starts_with('_'));
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// A member with a string value.
pub fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item[name]
        .as_str()
        .unwrap_or_else(|| panic!("`{name}` is no text: {item}"))
}
