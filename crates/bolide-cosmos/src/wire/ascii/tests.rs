use super::*;

#[test]
fn a_text_is_split_at_the_first_occurrence() {
    assert_eq!(split_once("name=value=more", b'='), Some(("name", "value=more")));
    assert_eq!(split_once("=", b'='), Some(("", "")));
    assert_eq!(split_once("ünïcode=ß", b'='), Some(("ünïcode", "ß")));
    assert_eq!(split_once("name", b'='), None);
    assert_eq!(split_once("", b'='), None);
}

#[test]
fn empty_parts_count() {
    let parts = |text| split(text, b'/').collect::<Vec<_>>();
    assert_eq!(parts(""), [""]);
    assert_eq!(parts("dbs"), ["dbs"]);
    assert_eq!(parts("dbs/ß//"), ["dbs", "ß", "", ""]);
    assert_eq!(parts("/"), ["", ""]);
}
