use super::*;

fn status_of(method: Method, path: &str) -> u16 {
    let status = json!({"status": "ok"});
    match answer(&method, path, &status, true) {
        Ok(reply) => reply.status.as_u16(),
        Err(failure) => failure.status.http.as_u16(),
    }
}

#[test]
fn a_ready_server_answers_on_three_paths() {
    for path in ["/alive", "/ready", "/status", "/ready/"] {
        assert_eq!(status_of(Method::GET, path), 200, "{path}");
        assert_eq!(status_of(Method::HEAD, path), 200, "{path}");
        assert_eq!(status_of(Method::POST, path), 405, "{path}");
    }
    for path in ["/", "/dbs", "/_bolide/metrics", "/readyz"] {
        assert_eq!(status_of(Method::GET, path), 404, "{path}");
    }
}
