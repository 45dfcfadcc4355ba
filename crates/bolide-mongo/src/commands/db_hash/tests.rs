use bson::{RawDocumentBuf, rawdoc};

use crate::commands::fixture::{Shell, only};

async fn hash(shell: &Shell, collection: &str) -> String {
    let reply: RawDocumentBuf = shell.ok(rawdoc! { "dbHash": 1 }).await;
    let collections = reply.get_document("collections").expect("hashes");
    collections.get_str(collection).expect("a hash").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_data_have_equal_hashes_in_any_order() {
    let shell = Shell::new().await;
    let documents = [rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }];
    shell.insert("a", &documents).await;
    shell.insert("b", &[documents[1].clone(), documents[0].clone()]).await;
    shell.insert("c", &[documents[0].clone()]).await;
    let a = hash(&shell, "a").await;
    assert_eq!((a.len(), &hash(&shell, "b").await), (32, &a));
    assert_ne!(hash(&shell, "c").await, a);
    shell.insert("c", &[rawdoc! { "_id": 2 }]).await;
    assert_eq!(hash(&shell, "c").await, a);
    let one = shell.ok(rawdoc! { "dbHash": 1, "collections": ["a"] }).await;
    assert_eq!(only(&one, &["collections"]), rawdoc! { "collections": { "a": a } });
}
