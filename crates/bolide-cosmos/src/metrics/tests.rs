use bolide_core::Usage;
use bolide_model::rid::{ContainerRid, DatabaseRid};
use http::StatusCode;

use super::*;

/// A container with 3 live items and a name that needs escapes.
fn container() -> ContainerFigures {
    let usage = Usage { items: 3, bytes: 300 };
    ContainerFigures {
        rid: ContainerRid::new(DatabaseRid::new(1), 1),
        database_id: "d".to_owned(),
        id: "a\\b\"c\nd".to_owned(),
        usage,
        ghosts: Usage::default(),
        purged_total: 7,
        ru_spent_total: 1.5,
        ru_billed_total: 0.0,
        lag_seconds: 0,
        credit: None,
        purge_rate: 0.25,
        state: TtlState::Idle,
    }
}

#[test]
fn families_keep_the_names_and_types_that_scrapers_know() {
    let memory = MemoryBudget::new(1024 * 1024);
    let definitions = DefinitionUsage {
        used_bytes: 1,
        limit_bytes: 2,
    };
    let process = render_process(&memory, definitions, 0);
    let text = Metrics::default().render(&[]) + &process + &render_servers(&Servers::of(&[]));
    let families: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert_eq!(
        families,
        [
            "bolide_requests_total counter",
            "bolide_throttled_total counter",
            "bolide_request_charge_total counter",
            "bolide_request_duration_seconds histogram",
            "bolide_container_items gauge",
            "bolide_container_bytes gauge",
            "bolide_ttl_backlog_items gauge",
            "bolide_ttl_backlog_bytes gauge",
            "bolide_ttl_purged_total counter",
            "bolide_ttl_ru_spent_total counter",
            "bolide_ttl_ru_billed_total counter",
            "bolide_ttl_oldest_pending_seconds gauge",
            "bolide_ttl_credit gauge",
            "bolide_ttl_purge_rate gauge",
            "bolide_ttl_state gauge",
            "bolide_connections gauge",
            "bolide_memory_used_bytes gauge",
            "bolide_memory_limit_bytes gauge",
            "bolide_definitions_used_bytes gauge",
            "bolide_definitions_limit_bytes gauge",
            "bolide_servers gauge",
            "bolide_partitions_owned gauge",
            "bolide_commit_conflicts_total counter",
            "bolide_clock_error_seconds gauge",
            "bolide_heartbeat_age_seconds gauge",
        ]
    );
}

#[test]
fn a_request_counts_in_its_class_its_charge_and_every_bucket_that_it_fits() {
    let metrics = Metrics::default();
    let reply = Reply::empty(StatusCode::CREATED);
    metrics.observe(Operation::CreateItem, &reply, Duration::from_micros(60));
    let text = metrics.render(&[]);
    for line in [
        "# HELP bolide_requests_total Requests answered, by operation and class of status.",
        "bolide_requests_total{operation=\"CreateItem\",status=\"2xx\"} 1",
        "bolide_requests_total{operation=\"CreateItem\",status=\"5xx\"} 0",
        "bolide_request_charge_total{operation=\"CreateItem\"} 1",
        "bolide_request_duration_seconds_bucket{operation=\"CreateItem\",le=\"0.00005\"} 0",
        "bolide_request_duration_seconds_bucket{operation=\"CreateItem\",le=\"0.0001\"} 1",
        "bolide_request_duration_seconds_bucket{operation=\"CreateItem\",le=\"30\"} 1",
        "bolide_request_duration_seconds_bucket{operation=\"CreateItem\",le=\"+Inf\"} 1",
        "bolide_request_duration_seconds_sum{operation=\"CreateItem\"} 0.00006",
        "bolide_request_duration_seconds_count{operation=\"CreateItem\"} 1",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
    assert!(!text.contains("ReadItem"), "what was not asked for has no samples");
}

#[test]
fn samples_of_a_container_have_its_names_escaped_and_leave_out_what_it_has_not() {
    let text = Metrics::default().render(&[container()]);
    let labels = r#"{database="d",container="a\\b\"c\nd""#;
    for line in [
        format!("bolide_container_items{labels}}} 3"),
        format!("bolide_ttl_purge_rate{labels}}} 0.25"),
        format!("bolide_ttl_state{labels},state=\"idle\"}} 1"),
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
    assert!(
        !text.lines().any(|line| line.starts_with("bolide_ttl_credit")),
        "{text}"
    );
}

#[test]
fn a_server_that_is_dead_to_the_others_says_so() {
    let text = render_servers(&Servers::of(&[]));
    assert!(
        text.lines().any(|line| line == "bolide_heartbeat_age_seconds +Inf"),
        "{text}"
    );
    let servers = Servers {
        live: 3,
        partitions_owned: 7,
        conflicts: 12,
        clock_error: 0.0015,
        heartbeat_age: 0.25,
    };
    let text = render_servers(&servers);
    for line in [
        "bolide_servers 3",
        "bolide_partitions_owned 7",
        "bolide_commit_conflicts_total 12",
        "bolide_clock_error_seconds 0.0015",
        "bolide_heartbeat_age_seconds 0.25",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
}
