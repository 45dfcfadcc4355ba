use super::*;

#[test]
fn what_clients_ask_for_is_understood() {
    // rntbd.md §1.2, as .NET writes it.
    let container = "$resolveFor=dbs%2fagsBAA%3d%3d%2fcolls%2fagsBAIoLAfg%3d%2fdocs&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds=0,1,2";
    assert_eq!(parameter(container, "$filter").as_deref(), Some("protocol eq rntbd"));
    let Ok(Asked::Ranges { text, ranges, rid }) = Asked::of(container) else {
        panic!("ranges")
    };
    assert_eq!(
        (text.as_str(), rid.to_string().as_str()),
        ("agsBAIoLAfg=", "agsBAIoLAfg=")
    );
    assert_eq!(ranges, ["0", "1", "2"]);
    let escaped = "%24resolveFor=dbs&%24filter=protocol%20eq%20rntbd";
    assert!(matches!(Asked::of(escaped), Ok(Asked::Master)));
}

#[test]
fn what_is_malformed_is_refused() {
    let status = |query: &str| Asked::of(query).err().expect("a refusal").status.http.as_u16();
    assert_eq!(status(""), 400);
    assert_eq!(status("$resolveFor=colls"), 400);
    assert_eq!(status("$resolveFor=dbs%2fx%2fcolls%2fnone%2fdocs"), 404);
    let many = ["1"; RANGES + 1].join(",");
    assert_eq!(
        status(&format!(
            "$resolveFor=dbs%2fagsBAA%3d%3d%2fcolls%2fagsBAIoLAfg%3d%2fdocs&$partitionKeyRangeIds={many}"
        )),
        400
    );
}

#[test]
fn a_range_has_a_primary_and_a_secondary_at_the_same_place() {
    let both = addresses(&["db.example:8081"], "3");
    assert_eq!(both.len(), 2);
    for (address, (is_primary, replica)) in both.iter().zip([(true, "0p"), (false, "1s")]) {
        assert_eq!(
            (&address["isPrimary"], &address["protocol"]),
            (&json!(is_primary), &json!("rntbd"))
        );
        assert_eq!(address["partitionKeyRangeId"], "3");
        let uri = format!("rntbd://db.example:8081/apps/bolide/services/s/partitions/p3/replicas/{replica}/");
        assert_eq!(address["physcialUri"], uri);
    }
    assert_eq!(addresses(&["db"], MASTER)[0]["partitionKeyRangeId"], "M");
    // On two servers the first one is the owner.
    let two = addresses(&["one:1", "two:2"], "3");
    let urls: Vec<&str> = two.iter().filter_map(|one| one["physcialUri"].as_str()).collect();
    assert!(
        urls[0].starts_with("rntbd://one:1/") && urls[0].ends_with("/0p/"),
        "{urls:?}"
    );
    assert!(
        urls[1].starts_with("rntbd://two:2/") && urls[1].ends_with("/1s/"),
        "{urls:?}"
    );
    // And its path says which range it is.
    let path = urls[0].trim_start_matches("rntbd://one:1").trim_end_matches('/');
    assert_eq!(range_of(path), Some(3));
}
