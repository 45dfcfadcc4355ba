use super::*;
use crate::doctor::report::Verdict;

/// The verdict for an endpoint in an environment.
fn proxies(endpoint: &str, environment: &[(&str, &str)]) -> Verdict {
    let mut report = Report::default();
    let target = Target::parse("--endpoint", endpoint).expect("valid");
    check_proxies(&mut report, &target, |name| {
        let found = environment.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    });
    report.on("proxy")[0].0
}

#[test]
fn a_proxy_for_loopback_fails_and_for_others_warns() {
    let proxy = ("HTTP_PROXY", "http://proxy:3128");
    assert_eq!(proxies("http://localhost:8081", &[]), Verdict::Ok);
    assert_eq!(proxies("http://localhost:8081", &[("http_proxy", "")]), Verdict::Ok);
    assert_eq!(proxies("http://localhost:8081", &[proxy]), Verdict::Fail);
    assert_eq!(proxies("http://db.example:8081", &[proxy]), Verdict::Warn);
    assert_eq!(
        proxies("https://localhost:8081", &[proxy]),
        Verdict::Ok,
        "only for http"
    );
    assert_eq!(
        proxies("https://localhost:8081", &[("all_proxy", "socks5://p")]),
        Verdict::Fail
    );
    assert_eq!(
        proxies(
            "http://localhost:8081",
            &[proxy, ("NO_PROXY", "example.com, localhost")]
        ),
        Verdict::Ok
    );
}

#[test]
fn exceptions_are_names_suffixes_and_networks() {
    for exceptions in ["*", "LOCALHOST", "a,127.0.0.0/8"] {
        let host = if exceptions.contains('/') {
            "127.0.0.1"
        } else {
            "localhost"
        };
        assert!(is_exempt(host, exceptions), "{exceptions}");
    }
    assert!(is_exempt("db.corp.example", ".corp.example") && is_exempt("db.corp.example", "example"));
    for exceptions in ["", ",", "host", "10.0.0.0/8", "127.0.0.0/99x"] {
        assert!(
            !is_exempt("127.0.0.1", exceptions) && !is_exempt("localhost", exceptions),
            "{exceptions}"
        );
    }
}

#[test]
fn a_data_directory_must_be_a_directory_that_can_be_written() {
    let files = tempfile::TempDir::new().expect("a temporary directory");
    let verdict = |path: &Path| {
        let mut report = Report::default();
        check_data_directory(&mut report, Some(path));
        report.on("data")[0].0
    };
    assert_eq!(verdict(files.path()), Verdict::Ok);
    assert_eq!(verdict(&files.path().join("new")), Verdict::Ok);
    assert_eq!(verdict(&files.path().join("a/b/c")), Verdict::Fail);
    let file = files.path().join("file");
    fs::write(&file, "x").expect("written");
    assert_eq!(verdict(&file), Verdict::Fail);
    assert_eq!(
        fs::read_dir(files.path()).expect("readable").count(),
        1,
        "nothing is left behind"
    );
}
