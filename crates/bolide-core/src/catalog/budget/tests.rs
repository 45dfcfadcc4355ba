use bolide_model::epk;
use bolide_model::ttl::Settings;
use bolide_storage::PartitionId;
use serde_json::json;

use super::*;
use crate::catalog::permissions::PermissionMode;
use crate::format::etag::Etag;
use crate::partition::Placement;
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
        settings: Settings::new(properties.policy),
        properties,
        history: vec![],
        offer: None,
        pacing: PacingSettings::of(None),
        keeps_all_versions: false,
        layout_version: 1,
        next_range: 1,
        placements: vec![placement],
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
    };
    let permission = PermissionRow {
        grant: std::sync::Arc::new(PermissionProperties {
            id: "permission-1234".into(),
            mode: PermissionMode::Read,
            mode_text: "Read".into(),
            resource: "dbs/database-1234/colls/container-1234".into(),
            partition_key: None,
        }),
        etag: Etag(1),
        last_modified: UnixSeconds(1),
    };
    let bytes = 10_000 * Definition::Database(&database).bytes()
        + 2_000 * Definition::Container(&container(&json!({}))).bytes()
        + 100_000 * Definition::Permission(&permission).bytes();
    assert!(bytes <= limit_of(0), "{bytes}");
}

#[test]
fn settings_of_a_usual_container_count_nothing_and_many_paths_what_they_take() {
    let bytes = |more: &Value| Definition::Container(&container(more)).bytes();
    let paths = |count: usize| -> Value { (0..count).map(|n| json!({"path": format!("/p{n}/?")})).collect() };
    let plain = bytes(&json!({}));
    let usual = json!({"defaultTtl": 1000, "indexingPolicy": {"includedPaths": paths(5)}});
    assert_eq!(bytes(&usual), plain);
    // What 64 KiB of paths take was measured: 0.8 MB, 1.9 MB if they are one long one.
    let many = bytes(&json!({"indexingPolicy": {"includedPaths": paths(3_600)}})) - plain;
    assert!((800_000..1_200_000).contains(&many), "{many}");
    let deep = format!("/{}?", "a/".repeat(32_000));
    let deep = bytes(&json!({"indexingPolicy": {"includedPaths": [{"path": deep}]}})) - plain;
    assert!((1_900_000..2_400_000).contains(&deep), "{deep}");
}
