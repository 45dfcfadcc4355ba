use super::*;

#[test]
fn connections_get_what_the_store_leaves() {
    for (limit, connections, store_files) in [
        (64, 16, 32),
        (256, 128, 64),
        (1024, 512, 256),
        (20_000, 4096, 900),
        (1_048_576, 4096, 900),
    ] {
        let expected = Descriptors {
            connections,
            store_files,
        };
        assert_eq!(Descriptors::divide(limit, 4096), expected, "{limit}");
    }
}

#[test]
fn no_more_connections_than_asked_for() {
    assert_eq!(Descriptors::divide(20_000, 3).connections, 3);
}
