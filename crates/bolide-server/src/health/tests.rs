use super::*;

fn options(endpoint: Option<&str>, port: Option<u16>, emulator: bool) -> HealthOptions {
    HealthOptions {
        endpoint: endpoint.map(str::to_owned),
        port,
        emulator,
        timeout: 1,
    }
}

#[track_caller]
fn leads_to(options: &HealthOptions, emulator_port: Option<&str>, expected: &str) {
    assert_eq!(endpoint(options, emulator_port).expect("a valid endpoint"), expected);
}

#[test]
fn the_port_comes_from_the_option_then_the_emulators_variable_then_the_default() {
    leads_to(&options(None, None, false), None, "http://127.0.0.1:8081");
    leads_to(&options(None, Some(9000), false), None, "http://127.0.0.1:9000");
    leads_to(&options(None, None, true), Some("9001"), "http://127.0.0.1:9001");
    leads_to(&options(None, Some(9000), true), Some("9001"), "http://127.0.0.1:9000");
}

#[test]
fn the_emulators_variable_counts_only_in_emulator_mode() {
    leads_to(&options(None, None, false), Some("9001"), "http://127.0.0.1:8081");
}

#[test]
fn an_endpoint_is_plain_http() {
    leads_to(&options(Some("http://db:8081/"), None, false), None, "http://db:8081");
    for refused in ["https://db:8081", "db:8081", ""] {
        let failure = endpoint(&options(Some(refused), None, false), None).expect_err("refused");
        assert!(failure.to_string().contains("--endpoint"), "{failure}");
    }
}

#[test]
fn an_emulator_port_that_is_none_is_named() {
    let failure = endpoint(&options(None, None, true), Some("None")).expect_err("refused");
    assert!(failure.to_string().contains("PORT"), "{failure}");
}
