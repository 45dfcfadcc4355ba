use super::*;
use crate::value::parse_json;

/// The hashes listed in the .NET SDK's own tests.
#[test]
fn hashes_are_those_of_clients() {
    let cases = [
        ("null", "898EFBF2680DAEA39E24D6AE6653417D"),
        ("false", "6E88AA4242F017B7705F12581A61118F"),
        ("true", "CD4D51AB869F071FF019C3E4A55C0125"),
        ("\"\"", "A78446CF287029A585B395A161A2A9A1"),
        ("\"asdfasdfasdfasdfasdfasdf\"", "8F124368401E0B91AD580CA542E035DB"),
        ("1234", "A94BF61335C9FBA42C28D7D9895D1434"),
        ("[]", "7D54F729FF4A63FFA2EF3CA359538082"),
        ("[null]", "3E8E8C77472338352F80EA6235FB6E41"),
        ("[false]", "7A84EFC2656DEC53D3E8BABB1478F746"),
        (
            "[null,false,true,1234,\"asdfasdfasdfasdfasdfasdf\"]",
            "A9407916DE27F316CC5A8E4EB9AFD5E6",
        ),
        ("{}", "14B86A60AA01A7381438743E80B965D8"),
        ("{\"prop\":null}", "A3D5880C264194B40E763E0B097A94D4"),
        ("{\"prop\":false}", "E153B742E17353146267B841E32DC5EE"),
        (
            "{\"null\":null,\"false\":false,\"true\":true,\"cosmosNumber\":1234,\"cosmosString\":\"asdfasdfasdfasdfasdfasdf\"}",
            "3B6AA9F4F43AAEC0E48EBE2BC020D55C",
        ),
    ];
    for (json, expected) in cases {
        let hash = u128::from_le_bytes(sort_hash(&parse_json(json).expect(json)));
        assert_eq!(format!("{hash:032X}"), expected, "{json}");
    }
}

#[test]
fn the_order_of_members_does_not_matter_and_the_order_of_elements_does() {
    let hash = |json: &str| sort_hash(&parse_json(json).expect(json));
    assert_eq!(hash("{\"a\":1,\"b\":[2]}"), hash("{\"b\":[2],\"a\":1}"));
    assert_ne!(hash("[1,2]"), hash("[2,1]"));
}

/// Two integers that convert to one double differ in the extra bits: 2^53 has none, 2^53 + 1 has its last bit there.
#[test]
fn integers_beyond_a_double_differ() {
    let bytes = |value| extended_double(Number::Int(value));
    assert_eq!(bytes(1 << 53)[..8], ((1u64 << 53) as f64).to_le_bytes());
    assert_eq!(bytes(1 << 53)[8..], [0, 0]);
    assert_eq!(bytes((1 << 53) + 1)[..8], ((1u64 << 53) as f64).to_le_bytes());
    assert_eq!(
        u16::from_le_bytes([bytes((1 << 53) + 1)[8], bytes((1 << 53) + 1)[9]]),
        1 << 15
    );
    assert_eq!(bytes(i64::MIN), extended_double(Number::Float(i64::MIN as f64)));
}
