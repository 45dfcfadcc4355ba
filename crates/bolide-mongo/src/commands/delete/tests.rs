use bson::rawdoc;

use crate::commands::fixture::Shell;

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_cannot_be_read_fails_the_whole_command() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    for (statement, code, text) in [
        (
            rawdoc! { "limit": 1 },
            40414,
            "BSON field 'delete.deletes.q' is missing but a required field",
        ),
        (
            rawdoc! { "q": {} },
            40414,
            "BSON field 'delete.deletes.limit' is missing but a required field",
        ),
        (
            rawdoc! { "q": {}, "limit": 42.13 },
            9,
            "The limit field in delete objects must be 0 or 1. Got 42.13",
        ),
        (
            rawdoc! { "q": {}, "limit": 1, "x": 1 },
            40415,
            "BSON field 'delete.deletes.x' is an unknown field.",
        ),
    ] {
        let delete = rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }, statement] };
        let reply = shell.run(delete).await;
        let found = (
            reply.get_i32("code").expect("a code"),
            reply.get_str("errmsg").expect("a text"),
        );
        assert_eq!(found, (code, text));
    }
    // `ordered` is no number.
    let delete = rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }], "ordered": 1 };
    assert_eq!(shell.code(delete).await, 14);
    assert_eq!(shell.ok(rawdoc! { "count": "c" }).await, rawdoc! { "n": 1 });
}
