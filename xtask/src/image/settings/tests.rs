use super::*;

fn production() -> Value {
    json!({
        "config": {
            "User": "65532:65532",
            "Volumes": {"/data": {}},
            "Entrypoint": ["/usr/local/bin/bolide"],
            "Env": ["PATH=/usr/local/bin", "BOLIDE_HOST=0.0.0.0", "BOLIDE_DATA_DIR=/data"],
            "ExposedPorts": {"1234/tcp": {}, "8080/tcp": {}, "8081/tcp": {}, "10255/tcp": {}},
            "Healthcheck": {"Test": ["CMD", "/usr/local/bin/bolide", "health"]},
        },
        "rootfs": {"diff_ids": ["sha256:00"]},
    })
}

#[test]
fn the_promised_settings_pass() {
    assert_eq!(problems(&production(), "bolide"), Vec::<String>::new());
}

#[test]
fn emulator_mode_is_only_in_its_own_variant() {
    assert_eq!(problems(&production(), "emulator").len(), 1);
    let mut emulator = production();
    emulator["config"]["Env"] = json!(["PATH=/usr/local/bin", "BOLIDE_EMULATOR=1"]);
    assert_eq!(problems(&emulator, "emulator"), Vec::<String>::new());
    assert_eq!(problems(&emulator, "bolide").len(), 1);
}

#[test]
fn every_difference_is_reported() {
    let mut root = production();
    root["config"]["User"] = json!("");
    root["config"]["Healthcheck"] = Value::Null;
    root["rootfs"]["diff_ids"] = json!(["sha256:00", "sha256:01"]);
    let problems = problems(&root, "bolide");
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[0].starts_with("User "), "{problems:?}");
}
