use super::*;

fn problems(path: &str, text: &str) -> usize {
    let file = TextFile {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    check(&[file]).len()
}

#[test]
fn texts_of_the_protocol_are_for_its_front_end() {
    let text = "Error::not_found(\"Resource Not Found: there is no such item\")\n";
    assert_eq!(problems("crates/bolide-core/src/items/read.rs", text), 1);
    assert_eq!(problems("crates/bolide-model/src/document.rs", text), 1);
    assert_eq!(problems("crates/bolide-cosmos/src/status/messages.rs", text), 0);
    let header = "set(\"x-ms-request-charge\", charge)\n";
    assert_eq!(problems("crates/bolide-core/src/query/mod.rs", header), 1);
    let reason = "Err(Reason::ItemMissing.into())\n";
    assert_eq!(problems("crates/bolide-core/src/items/read.rs", reason), 0);
}
