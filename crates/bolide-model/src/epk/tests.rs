use proptest::prelude::*;
use serde_json::json;

use super::*;

fn definition(kind: &str, version: u8, paths: usize) -> PartitionKeyDefinition {
    let paths: Vec<String> = (0..paths).map(|n| format!("/p{n}")).collect();
    PartitionKeyDefinition::from_json(&json!({"paths": paths, "kind": kind, "version": version})).unwrap()
}

fn hex(kind: &str, version: u8, header: &str) -> String {
    let key = PartitionKey::from_header(header).unwrap();
    Epk::of(&definition(kind, version, 1), &key).to_hex()
}

/// Header, version 2, version 1. Source: cosmos-rest §7.4.
const VECTORS: &[(&str, &str, &str)] = &[
    (r#"[""]"#, "32E9366E637A71B4E710384B2F4970A0", "05C1CF33970FF80800"),
    (
        r#"["partitionKey"]"#,
        "013AEFCF77FA271571CF665A58C933F1",
        "05C1E1B3D9CD2608716273756A756A706F4C667A00",
    ),
    ("[null]", "378867E4430E67857ACE5C908374FE16", "05C1ED45D7475601"),
    ("[{}]", "11622DAA78F835834610ABE56EFF5CB5", "05C1D529E345DC00"),
    ("[true]", "0E711127C5B5A8E4726AC6DD306A3E59", "05C1D7C5A903D803"),
    ("[false]", "2FE1BE91E90A3439635E0E9E37361EF2", "05C1DB857D857C02"),
    ("[-128]", "01DAEDABF913540367FE219B2AD06148", "05C1D73349F54C053FA0"),
    ("[127]", "0C507ACAC853ECA7977BF4CEFB562A25", "05C1DD539DDFCC05C05FE0"),
    (
        "[-9223372036854775808]",
        "23D5C6395512BDFEAFADAD15328AD2BB",
        "05C1DB35F33D1C053C20",
    ),
    (
        "[9223372036854775807]",
        "2EDB959178DFCCA18983F89384D1629B",
        "05C1B799AB2DD005C3E0",
    ),
    (
        "[-2147483648]",
        "0B1660D5233C3171725B30D4A5F4CC1F",
        "05C1DFBF252BCC053E20",
    ),
    (
        "[2147483647]",
        "2D9349D64712AEB5EB1406E2F0BE2725",
        "05C1E1F503DFB205C1DFFFFFFFFC",
    ),
    (
        "[5e-324]",
        "0E6CBA63A280927DE485DEF865800139",
        "05C1E5C91F4D3005800101010101010102",
    ),
    (
        "[1.7976931348623157e308]",
        "31424D996457102634591FF245DBCC4D",
        "05C1CBE367C53005FFEFFFFFFFFFFFFFFE",
    ),
];

/// Header, version 2. Source: cosmos-rest §7.4.
const VECTORS_V2: &[(&str, &str)] = &[
    ("[5.0]", "19C08621B135968252FB34B4CF66F811"),
    ("[5.123124190509124]", "0EF2E2D82460884AF0F6440BE4F726A8"),
    (r#"["redmond"]"#, "22E342F38A486A088463DFF7838A5963"),
    (r#"["1"]"#, "3C80B1B7310BB39F29CC4EA05BDD461E"),
    (r#"["pk"]"#, "20FD8FE780DCFA0692905152C35E10D9"),
    (r#"["pk2"]"#, "3843C9E049014F2D32BF729C993CA1BB"),
    (r#"["pk3"]"#, "229B445B5EA4854C51B5F9B0E17C8300"),
    (r#"["pk4"]"#, "3952E109E67D1D66B13F26DB30D4297E"),
    (r#"["pk-8584"]"#, "2CFEC89758718B14884B5AEBD3E64975"),
    (r#"[5,"redmond",true,null]"#, "3032DECBE2AB1768D8E0AEDEA35881DF"),
];

#[test]
fn a_key_is_separated_from_the_bytes_that_follow() {
    let long = format!("[\"{}\"]", "ü".repeat(99));
    let lengths = [99, 100, 101, 500].map(|length| format!("[\"{}\"]", "x".repeat(length)));
    let published = VECTORS.iter().map(|(header, ..)| (*header).to_owned());
    for header in published.chain(lengths).chain([long]) {
        let key = PartitionKey::from_header(&header).unwrap();
        for (kind, version) in [("Hash", 1), ("Hash", 2), ("MultiHash", 2), ("Range", 1)] {
            let definition = definition(kind, version, 1);
            let epk = Epk::of(&definition, &key);
            for follows in [&b""[..], b"\0", b"\x01", b"id", &[0xFF; 40]] {
                let bytes = [epk.as_bytes(), follows].concat();
                let length = Epk::length_in(&definition, &bytes);
                assert_eq!(
                    length,
                    Some(epk.as_bytes().len()),
                    "{kind} {version} {header} {follows:?}"
                );
            }
            for shorter in 0..epk.as_bytes().len() {
                assert_eq!(
                    Epk::length_in(&definition, &epk.as_bytes()[..shorter]),
                    None,
                    "{header}"
                );
            }
        }
    }
    let hierarchy = definition("MultiHash", 2, 3);
    let key = PartitionKey::from_header(r#"["a",null,5]"#).unwrap();
    let bytes = [Epk::of(&hierarchy, &key).as_bytes(), b"id"].concat();
    assert_eq!(Epk::length_in(&hierarchy, &bytes), Some(48));
}

#[test]
fn published_keys_have_their_published_positions() {
    for (header, v2, v1) in VECTORS {
        assert_eq!(hex("Hash", 2, header), *v2, "version 2 of {header}");
        assert_eq!(hex("Hash", 1, header), *v1, "version 1 of {header}");
    }
    for (header, v2) in VECTORS_V2 {
        assert_eq!(hex("Hash", 2, header), *v2, "version 2 of {header}");
    }
}

#[test]
fn long_strings_are_cut_under_version_1_only() {
    let header = json!(["a".repeat(1024)]).to_string();
    assert_eq!(hex("Hash", 2, &header), "332BDF5512AE49615F32C7D98C2DB86C");
    assert_eq!(
        hex("Hash", 1, &header),
        format!("05C1EB5921F70608{}00", "62".repeat(100))
    );
    let header = json!([format!("{}😀", "a".repeat(99))]).to_string();
    assert_eq!(hex("Hash", 2, &header), "3DCDC7ABFC5BF49867B328ECDB14F0BF");
}

#[test]
fn cutting_a_surrogate_pair_leaves_a_replacement_character() {
    let text = format!("{}😀", "a".repeat(99));
    assert_eq!(cut_utf16(&text), format!("{}\u{FFFD}", "a".repeat(99)));
    let text = format!("{}😀b", "a".repeat(98));
    assert_eq!(cut_utf16(&text), &text[..102]);
    assert_eq!(cut_utf16("é"), "é");
}

#[test]
fn strings_over_100_bytes_are_encoded_without_an_end() {
    // U+FFFD has three bytes, EF BF BD; each is encoded plus one.
    let header = json!([format!("{}😀", "a".repeat(99))]).to_string();
    assert!(hex("Hash", 1, &header).ends_with(&format!("08{}F0C0", "62".repeat(99))));
    assert_eq!(
        hex("Range", 1, &json!(["b".repeat(101)]).to_string()),
        format!("08{}", "63".repeat(101))
    );
}

#[test]
fn range_kind_keeps_the_order_of_values() {
    let headers = [
        "[{}]", "[null]", "[false]", "[true]", "[-1.5]", "[-1]", "[0]", "[0.1]", "[7]", r#"[""]"#, r#"["a"]"#,
        r#"["b"]"#,
    ];
    let hexes: Vec<String> = headers.iter().map(|header| hex("Range", 1, header)).collect();
    assert!(hexes.is_sorted(), "{hexes:?}");
}

#[test]
fn hierarchical_keys_are_the_hashes_of_their_parts() {
    let definition = definition("MultiHash", 2, 3);
    let epk = |header: &str| Epk::of(&definition, &PartitionKey::from_header(header).unwrap()).to_hex();
    assert_eq!(
        epk(r#"["pk","1"]"#),
        "20FD8FE780DCFA0692905152C35E10D93C80B1B7310BB39F29CC4EA05BDD461E"
    );
    assert_eq!(
        epk(r#"["redmond",{}]"#),
        "22E342F38A486A088463DFF7838A596311622DAA78F835834610ABE56EFF5CB5"
    );
    assert_eq!(epk("[]"), "");
}

#[test]
fn numbers_that_are_equal_live_together() {
    assert_eq!(hex("Hash", 2, "[1]"), hex("Hash", 2, "[1.0]"));
    let zero = |number| {
        Epk::of(
            &definition("Hash", 2, 1),
            &PartitionKey(vec![Component::Number(number)]),
        )
    };
    assert_eq!(zero(-0.0), zero(0.0));
}

fn inner_boundaries(version: u8, n: u32) -> Vec<String> {
    let ranges = boundaries(&definition("Hash", version, 1), n);
    assert_eq!(ranges.len(), n as usize);
    assert_eq!(
        (ranges[0].min.to_hex(), ranges[ranges.len() - 1].max.to_hex()),
        (String::new(), "FF".to_owned())
    );
    for pair in ranges.windows(2) {
        assert_eq!(pair[0].max, pair[1].min);
    }
    ranges[1..].iter().map(|range| range.min.to_hex()).collect()
}

#[test]
fn version_2_boundaries_are_the_published_ones() {
    assert_eq!(inner_boundaries(2, 1), Vec::<String>::new());
    assert_eq!(inner_boundaries(2, 2), ["1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"]);
    assert_eq!(
        inner_boundaries(2, 4),
        [
            "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
            "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE",
            "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFD"
        ]
    );
    assert_eq!(
        inner_boundaries(2, 5),
        [
            "0CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC",
            "19999999999999999999999999999998",
            "26666666666666666666666666666664",
            "33333333333333333333333333333330"
        ]
    );
}

#[test]
fn version_1_boundaries_are_the_published_ones() {
    assert_eq!(inner_boundaries(1, 2), ["05C1DFFFFFFFFC"]);
    assert_eq!(
        inner_boundaries(1, 4),
        ["05C1CFFFFFFFF8", "05C1DFFFFFFFF8", "05C1E7FFFFFFFA"]
    );
    assert_eq!(
        inner_boundaries(1, 5),
        ["05C1C9CD673398", "05C1D9CD673398", "05C1E399CD6732", "05C1E9CD673398"]
    );
}

#[test]
fn range_kind_gets_one_range() {
    assert_eq!(boundaries(&definition("Range", 1, 1), 5), [EpkRange::all()]);
}

fn range(min: &str, max: &str) -> EpkRange {
    EpkRange::new(Epk::from_hex(min).unwrap(), Epk::from_hex(max).unwrap())
}

#[test]
fn hex_of_either_case_is_read() {
    assert_eq!(Epk::from_hex("0aFf").unwrap().as_bytes(), [0x0a, 0xff]);
    assert_eq!(Epk::from_hex("0aFf").unwrap().to_hex(), "0AFF");
    assert_eq!(Epk::from_hex("ff").unwrap(), Epk::end());
    assert_eq!(Epk::from_hex("").unwrap(), Epk::start());
    for text in ["F", "0G", "+1", "é0", "0x"] {
        assert!(Epk::from_hex(text).is_err(), "{text}");
    }
}

#[test]
fn point_ends_one_up_in_the_last_digits() {
    let point = |hex: &str| EpkRange::point(Epk::from_hex(hex).unwrap());
    assert_eq!(point("20FD10D9"), range("20FD10D9", "20FD10DA"));
    assert_eq!(point("20FDFFFF"), range("20FDFFFF", "20FE"));
    assert_eq!(point(""), EpkRange::all());
}

#[test]
fn prefix_of_a_hierarchy_covers_what_begins_with_it() {
    let definition = definition("MultiHash", 2, 2);
    let key = |header: &str| PartitionKey::from_header(header).unwrap();
    let prefix = EpkRange::of_prefix(&definition, &key(r#"["pk"]"#));
    assert_eq!(
        prefix,
        range("20FD8FE780DCFA0692905152C35E10D9", "20FD8FE780DCFA0692905152C35E10D9FF")
    );
    let whole = Epk::of(&definition, &key(r#"["pk","1"]"#));
    assert!(prefix.contains(&whole));
    assert!(!prefix.contains(&Epk::of(&definition, &key(r#"["pk2","1"]"#))));
    assert_eq!(
        EpkRange::of_prefix(&definition, &key(r#"["pk","1"]"#)),
        EpkRange::point(whole)
    );
    assert_eq!(EpkRange::of_prefix(&definition, &key("[]")), EpkRange::all());
}

#[test]
fn ranges_that_touch_have_nothing_in_common() {
    let (low, high) = (range("", "10"), range("10", "FF"));
    assert!(!low.overlaps(&high));
    assert_eq!(low.intersect(&high), None);
    assert_eq!(range("", "20").intersect(&high), Some(range("10", "20")));
    assert!(EpkRange::all().covers(&high) && !high.covers(&EpkRange::all()));
    assert!(!range("05", "05").overlaps(&low));
}

#[test]
fn midpoint_of_everything_is_the_boundary_of_two() {
    for version in [1, 2] {
        let definition = definition("Hash", version, 1);
        let middle = EpkRange::all().midpoint(&definition).unwrap();
        assert_eq!(middle, boundaries(&definition, 2)[1].min);
    }
}

#[test]
fn cuts_divide_the_hashes_of_a_range_evenly() {
    for version in [1, 2] {
        let definition = definition("Hash", version, 1);
        let whole = EpkRange::all();
        let half = EpkRange::new(boundaries(&definition, 2)[1].min.clone(), Epk::end());
        assert_eq!(whole.share_of(&definition, &whole), Some(1.0));
        assert!((half.share_of(&definition, &whole).unwrap() - 0.5).abs() < 1e-9);
        let cuts = half.cuts(&definition, 3);
        let ends: Vec<Epk> = [half.min].into_iter().chain(cuts).chain([half.max]).collect();
        assert_eq!(ends.len(), 4);
        for pair in ends.windows(2) {
            let part = EpkRange::new(pair[0].clone(), pair[1].clone());
            assert!((part.share_of(&definition, &whole).unwrap() - 1.0 / 6.0).abs() < 1e-9);
        }
    }
    let version_2 = definition("Hash", 2, 1);
    let three = range("00000000000000000000000000000001", "00000000000000000000000000000004");
    let cuts = three.cuts(&version_2, 3);
    assert_eq!(cuts.iter().map(|cut| cut.as_bytes()[15]).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(three.cuts(&version_2, 9), [], "there are not nine keys");
    assert_eq!(EpkRange::all().cuts(&definition("Range", 1, 1), 4), []);
    assert_eq!(
        EpkRange::all().share_of(&definition("Range", 1, 1), &EpkRange::all()),
        None
    );
}

#[test]
fn no_midpoint_lies_between_neighbours() {
    let definition = definition("Hash", 2, 1);
    let neighbours = range("00000000000000000000000000000001", "00000000000000000000000000000002");
    assert_eq!(neighbours.midpoint(&definition), None);
    assert_eq!(EpkRange::all().midpoint(&self::definition("Range", 1, 1)), None);
}

fn component() -> impl Strategy<Value = Component> {
    prop_oneof![
        Just(Component::Undefined),
        Just(Component::Null),
        any::<bool>().prop_map(Component::Bool),
        any::<f64>()
            .prop_filter("JSON has finite numbers", |n| n.is_finite())
            .prop_map(Component::Number),
        ".{0,120}".prop_map(Component::String),
    ]
}

#[test]
fn items_without_a_key_live_in_the_first_range() {
    for version in [1, 2] {
        let mut system = PartitionKeyDefinition::system().to_json();
        system["version"] = version.into();
        let system = PartitionKeyDefinition::from_json(&system).unwrap();
        let none = Epk::of(&system, &system.key_of_none().unwrap());
        assert_eq!(Epk::length_in(&system, none.as_bytes()), Some(none.as_bytes().len()));
        for n in [1, 2, 50, 10_000] {
            let ranges = boundaries(&system, n);
            assert!(ranges[0].contains(&none));
            assert!(ranges[0].covers(&EpkRange::point(none.clone())));
        }
        let meant = |min: &str, max: &str| range(min, max).meant_by_client(&system);
        // As Python's SDK sends them.
        assert_eq!(
            meant("", "00"),
            EpkRange::new(Epk::start(), EpkRange::point(none.clone()).max)
        );
        assert!(!meant("00", "FF").contains(&none));
        // As a query plan names them.
        assert!(meant(&none.to_hex(), "FF").contains(&none));
        assert!(!meant("", &none.to_hex()).contains(&none));
        assert_eq!(meant("", "FF"), EpkRange::all());
    }
}

proptest! {
    #[test]
    fn every_key_lives_in_one_range_of_a_container(
        components in prop::collection::vec(component(), 1..4), version in 1_u8..3, n in 1_u32..20,
    ) {
        let definition = definition("Hash", version, 1);
        let epk = Epk::of(&definition, &PartitionKey(components));
        let holders = boundaries(&definition, n).iter().filter(|range| range.contains(&epk)).count();
        prop_assert_eq!(holders, 1);
    }

    #[test]
    fn a_longer_hierarchical_key_lies_within_its_prefixes(components in prop::collection::vec(component(), 3), length in 1_usize..4) {
        let definition = definition("MultiHash", 2, 3);
        let whole = Epk::of(&definition, &PartitionKey(components.clone()));
        prop_assert_eq!(whole.as_bytes().len(), 48);
        let prefix = PartitionKey(components[..length].to_vec());
        prop_assert!(EpkRange::of_prefix(&definition, &prefix).contains(&whole));
    }

    #[test]
    fn encoded_numbers_keep_their_order_and_value(a in any::<f64>(), b in any::<f64>()) {
        prop_assume!(a.is_finite() && b.is_finite());
        let encoded = |number| encode(&[Component::Number(number)]);
        prop_assert_eq!(encoded(a).cmp(&encoded(b)), a.partial_cmp(&b).unwrap());
        prop_assert_eq!(decode_number(&encoded(a)), Some(a));
    }

    #[test]
    fn halves_of_a_range_make_the_whole(version in 1_u8..3, n in 1_u32..50, at in 0_usize..50) {
        let definition = definition("Hash", version, 1);
        let ranges = boundaries(&definition, n);
        let range = &ranges[at % ranges.len()];
        let middle = range.midpoint(&definition).unwrap();
        prop_assert!(range.min < middle && middle < range.max);
    }

    #[test]
    fn any_bytes_have_a_midpoint_or_none(min in any::<Vec<u8>>(), max in any::<Vec<u8>>(), version in 1_u8..3) {
        let range = EpkRange::new(Epk::from_bytes(min), Epk::from_bytes(max));
        if let Some(middle) = range.midpoint(&definition("Hash", version, 1)) {
            prop_assert!(range.contains(&middle));
        }
    }

    #[test]
    fn hex_reads_back(bytes in any::<Vec<u8>>()) {
        let epk = Epk::from_bytes(bytes);
        prop_assert_eq!(Epk::from_hex(&epk.to_hex()).unwrap(), epk);
    }

    #[test]
    fn any_text_is_hex_or_refused(text in any::<String>()) {
        let _ = Epk::from_hex(&text);
    }
}
