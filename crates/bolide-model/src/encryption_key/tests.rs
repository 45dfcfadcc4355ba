use serde_json::json;

use super::*;

fn sent() -> Value {
    json!({
        "id": "k", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "AAEC",
        "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP"},
    })
}

#[test]
fn a_definition_returns_the_members_that_were_sent() {
    let key = EncryptionKeyProperties::from_json(&sent()).expect("well formed");
    assert_eq!(Value::Object(key.to_json()), sent());
}

#[test]
fn missing_and_malformed_members_are_named() {
    let names = [
        "id",
        "encryptionAlgorithm",
        "wrappedDataEncryptionKey",
        "keyWrapMetadata",
    ];
    for name in names {
        let mut bad = sent();
        bad[name] = 7.into();
        let error = EncryptionKeyProperties::from_json(&bad).expect_err(name);
        assert!(error.to_string().contains(name), "{}", error.to_string());
    }
    for name in METADATA {
        let mut bad = sent();
        bad["keyWrapMetadata"]
            .as_object_mut()
            .expect("an object")
            .shift_remove(name);
        let error = EncryptionKeyProperties::from_json(&bad).expect_err(name);
        assert!(error.to_string().contains(name), "{}", error.to_string());
    }
    let mut bad = sent();
    bad["wrappedDataEncryptionKey"] = "no base64".into();
    assert!(EncryptionKeyProperties::from_json(&bad).is_err());
}
