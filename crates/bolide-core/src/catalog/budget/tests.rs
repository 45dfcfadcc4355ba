use std::sync::Arc;

use bolide_model::ttl::Settings;
use bolide_model::{UnixSeconds, epk};
use bolide_storage::PartitionId;
use serde_json::json;

use super::*;
use crate::catalog::permissions::PermissionMode;
use crate::catalog::rows::{ContainerRow, DatabaseRow, PermissionRow, Unknown};
use crate::format::etag::Etag;
use crate::partition::Placement;
use crate::partition::SettingsNumber;
use crate::throughput::PacingSettings;

fn container(more: &Value) -> ContainerRow {
    let mut sent =
        json!({"id": "container-1234", "partitionKey": {"paths": ["/tenantId"], "kind": "Hash", "version": 2}});
    for (name, value) in more.as_object().into_iter().flatten() {
        sent[name] = value.clone();
    }
    let properties = ContainerProperties::from_json(&sent).expect("a definition");
    let epk = epk::boundaries(&properties.partition_key, 1).remove(0);
    let placement = Placement {
        id: PartitionId(1),
        range: 0,
        epk,
        parents: vec![],
    };
    ContainerRow {
        etag: Etag(1),
        last_modified: UnixSeconds(1),
        floors: Settings::new(properties.policy).floors,
        properties: Arc::new(properties),
        history: vec![],
        offer: None,
        pacing: PacingSettings::of(None),
        keeps_all_versions: false,
        settings_number: SettingsNumber::default(),
        pending: None,
        collection: None,
        indexes: Arc::default(),
        layout_version: 1,
        next_range: 1,
        placements: vec![placement],
        unknown: Unknown::default(),
    }
}

#[test]
fn thousands_of_small_definitions_fit_in_any_account() {
    let database = DatabaseRow {
        id: "database-1234".into(),
        etag: Etag(1),
        last_modified: UnixSeconds(1),
        next_container: 1,
        next_user: 1,
        offer: None,
        home: None,
        unknown: Unknown::default(),
    };
    let permission = PermissionRow {
        grant: Arc::new(PermissionProperties {
            id: "permission-1234".into(),
            mode: PermissionMode::Read,
            mode_text: "Read".into(),
            resource: "dbs/database-1234/colls/container-1234".into(),
            partition_key: None,
        }),
        etag: Etag(1),
        last_modified: UnixSeconds(1),
        unknown: Unknown::default(),
    };
    let bytes = 10_000 * bytes_of(&database.into())
        + 2_000 * bytes_of(&container(&json!({})).into())
        + 100_000 * bytes_of(&permission.into());
    assert!(bytes <= limit_of(0), "{bytes}");
}

#[test]
fn settings_of_a_usual_container_count_nothing_and_many_paths_what_they_take() {
    let bytes = |more: &Value| bytes_of(&container(more).into());
    let paths = |count: usize| -> Value { (0..count).map(|n| json!({"path": format!("/p{n}/?")})).collect() };
    let plain = bytes(&json!({}));
    let usual = json!({"defaultTtl": 1000, "indexingPolicy": {"includedPaths": paths(5)}});
    assert_eq!(bytes(&usual), plain);
    // The memory of 64 KiB of paths was measured: 0.8 MB for many paths, 1.9 MB for one long path.
    let many = bytes(&json!({"indexingPolicy": {"includedPaths": paths(3_600)}})) - plain;
    assert!((800_000..1_200_000).contains(&many), "{many}");
    let deep = format!("/{}?", "a/".repeat(32_000));
    let deep = bytes(&json!({"indexingPolicy": {"includedPaths": [{"path": deep}]}})) - plain;
    assert!((1_900_000..2_400_000).contains(&deep), "{deep}");
}
