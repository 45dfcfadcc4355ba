use bolide_model::UnixSeconds;
use bolide_model::ttl::Own;

use super::*;
use crate::value::write_json;

struct System;

const MEMBERS: &str = r#""_rid":"r==","_self":"dbs/x/","_ts":17"#;

impl SystemProperties for System {
    fn last_modified(&self) -> i64 {
        17
    }

    fn stamp(&self) -> Stamp {
        Stamp::new(UnixSeconds(17), Own::Never)
    }

    fn members_bytes(&self) -> usize {
        MEMBERS.len()
    }

    fn write_members(&self, out: &mut String) {
        out.push_str(MEMBERS);
    }
}

fn found(item: &Item<'_>, paths: &[&[&str]]) -> Vec<String> {
    let mut scan = ItemScan::of(item);
    let text = |path: &&[&str]| {
        let steps: Vec<PathStep> = path.iter().map(|name| PathStep::name(name)).collect();
        let mut out = Vec::new();
        write_json(&scan.walk(item, &steps), &mut out);
        String::from_utf8(out).expect("JSON is UTF-8")
    };
    paths.iter().map(text).collect()
}

#[test]
fn paths_are_found_in_any_order() {
    let item = Item::stored(br#"{"a":1,"b":{"c":2},"d":[3],"e":4}"#, &System).expect("UTF-8");
    let paths: [&[&str]; 8] = [
        &["e"],
        &["a"],
        &["x"],
        &["b", "c"],
        &["b"],
        &["d"],
        &["b", "x"],
        &["a", "c"],
    ];
    assert_eq!(found(&item, &paths), ["4", "1", "", "2", r#"{"c":2}"#, "[3]", "", ""]);
}

#[test]
fn system_properties_follow_the_document() {
    let item = Item::stored(br#"{"a":1,"_b":2}"#, &System).expect("UTF-8");
    let paths: [&[&str]; 6] = [&["_ts"], &["_rid"], &["_b"], &["_x"], &["_ts", "x"], &["ts"]];
    assert_eq!(found(&item, &paths), ["17", "\"r==\"", "2", "", "", ""]);
    assert_eq!(found(&item, &[&[]]), [format!(r#"{{"a":1,"_b":2,{MEMBERS}}}"#)]);
    assert_eq!(item.bytes(), item.whole().len());
}

#[test]
fn an_empty_document_has_system_properties_and_no_comma_before_them() {
    let item = Item::stored(b"{}", &System).expect("UTF-8");
    assert_eq!(item.whole(), format!("{{{MEMBERS}}}"));
    assert_eq!(item.bytes(), item.whole().len());
    assert_eq!(found(&item, &[&["_ts"], &["a"]]), ["17", ""]);
}

#[test]
fn a_complete_text_is_an_item_without_further_properties() {
    let item = Item::complete(b" {\"a\" : 1, \"_ts\" : 5}\n").expect("UTF-8");
    assert_eq!(found(&item, &[&["_ts"], &["a"], &["_rid"]]), ["5", "1", ""]);
    assert!(Item::complete(b"\xff").is_err());
}
