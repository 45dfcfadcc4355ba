//! Restores while other clients read and write.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bson::rawdoc;

use super::{assert_items, mongo, on_both_engines, restore, take};
use crate::client::{Request, create_container, create_item};

/// Restores of the test.
const RESTORES: usize = 10;

#[test]
fn connections_stay_open_and_requests_get_clean_answers() {
    on_both_engines(&["--mongo-no-auth"], |server| {
        let mut client = server.client();
        create_container(&mut client);
        create_item(&mut client, "0");
        take(&mut client, "base");
        let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let (is_over, written) = (&is_over, &written);
                let mut client = server.client();
                scope.spawn(move || {
                    for number in 0.. {
                        if is_over.load(Ordering::SeqCst) {
                            return;
                        }
                        let body = format!(r#"{{"id":"{writer}-{number}","pk":"p"}}"#);
                        let response = client.send(&Request::post("/dbs/d/colls/c/docs", body).pk());
                        assert!([201, 503].contains(&response.status), "{}", response.text());
                        written.fetch_add(1, Ordering::SeqCst);
                        let read = client.send(&Request::get("/dbs/d/colls/c/docs/0").pk());
                        assert!([200, 503].contains(&read.status), "{}", read.text());
                    }
                });
            }
            let mut mongo = mongo(server);
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let insert = rawdoc! { "insert": "m", "$db": "docs", "documents": [{"a": 1}] };
                    let reply = mongo.run(&insert).expect("the connection stays open");
                    // 11602: drivers repeat it.
                    let is_clean = reply.get_i32("n").is_ok() || reply.get_i32("code").ok() == Some(11602);
                    assert!(is_clean, "{reply:?}");
                }
            });
            for _ in 0..RESTORES {
                let before = written.load(Ordering::SeqCst);
                while written.load(Ordering::SeqCst) < before + 10 {
                    std::thread::yield_now();
                }
                restore(&mut client, "base");
            }
            is_over.store(true, Ordering::SeqCst);
        });
        restore(&mut client, "base");
        assert_items(&mut client, 1);
    });
}
