use serde_json::json;

use super::*;

#[test]
fn a_manifest_without_description_licence_or_lints_is_reported() {
    let metadata = json!({"packages": [{"name": "bare", "description": null, "license": ""}]});
    let manifest = TextFile {
        path: "crates/bare/Cargo.toml".to_owned(),
        text: "[package]\n".to_owned(),
    };
    assert_eq!(check(&metadata, &[manifest]).len(), 3);
}

#[test]
fn a_complete_manifest_is_fine() {
    let metadata = json!({"packages": [{"name": "full", "description": "d", "license": "MIT"}]});
    let text = "[package]\n\n[lints]\nworkspace = true\n".to_owned();
    assert!(
        check(
            &metadata,
            &[TextFile {
                path: "crates/full/Cargo.toml".to_owned(),
                text
            }]
        )
        .is_empty()
    );
}
