use std::sync::Arc;

use bolide_core::{Account, AccountOptions};
use bolide_model::time::{Clock, Monotonic};
use bolide_storage::memory::MemoryEngine;
use bson::raw::cstr;
use bson::{Binary, DateTime, RawArrayBuf, RawDocumentBuf, rawdoc};

use crate::commands::fixture::{self, NOW, Shell, client, code_of, options, without};
use crate::state::{MongoOptions, MongoState};

fn lsid(byte: u8) -> RawDocumentBuf {
    let id = Binary {
        subtype: bson::spec::BinarySubtype::Uuid,
        bytes: vec![byte; 16],
    };
    rawdoc! { "id": id }
}

fn array(documents: &[RawDocumentBuf]) -> RawArrayBuf {
    let mut array = RawArrayBuf::new();
    for document in documents {
        array.push(document.clone());
    }
    array
}

fn update(statements: &[RawDocumentBuf]) -> RawDocumentBuf {
    rawdoc! { "update": "c", "updates": array(statements) }
}

/// Everything in the collection, by `_id`.
async fn contents(shell: &Shell) -> Vec<RawDocumentBuf> {
    shell.first_batch(rawdoc! { "find": "c", "sort": { "_id": 1 } }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_count_what_matched_and_what_changed() {
    let cases = [
        (
            rawdoc! { "q": { "a": 1 }, "u": { "$set": { "a": 2 } } },
            rawdoc! { "n": 1, "nModified": 1 },
            vec![
                rawdoc! { "_id": 1, "a": 2 },
                rawdoc! { "_id": 2, "a": 1 },
                rawdoc! { "_id": 3, "a": 3 },
            ],
        ),
        (
            rawdoc! { "q": { "a": 1 }, "u": { "$set": { "a": 2 } }, "multi": true },
            rawdoc! { "n": 2, "nModified": 2 },
            vec![
                rawdoc! { "_id": 1, "a": 2 },
                rawdoc! { "_id": 2, "a": 2 },
                rawdoc! { "_id": 3, "a": 3 },
            ],
        ),
        // What does not change counts as matched only.
        (
            rawdoc! { "q": {}, "u": { "$max": { "a": 3 } }, "multi": true },
            rawdoc! { "n": 3, "nModified": 2 },
            vec![
                rawdoc! { "_id": 1, "a": 3 },
                rawdoc! { "_id": 2, "a": 3 },
                rawdoc! { "_id": 3, "a": 3 },
            ],
        ),
        (
            rawdoc! { "q": { "_id": 2 }, "u": { "b": 1 } },
            rawdoc! { "n": 1, "nModified": 1 },
            vec![
                rawdoc! { "_id": 1, "a": 1 },
                rawdoc! { "_id": 2, "b": 1 },
                rawdoc! { "_id": 3, "a": 3 },
            ],
        ),
        (
            rawdoc! { "q": { "_id": 3 }, "u": [{ "$set": { "a": { "$add": ["$a", "$$c"] } } }], "c": { "c": 4 } },
            rawdoc! { "n": 1, "nModified": 1 },
            vec![
                rawdoc! { "_id": 1, "a": 1 },
                rawdoc! { "_id": 2, "a": 1 },
                rawdoc! { "_id": 3, "a": 7 },
            ],
        ),
        (
            rawdoc! { "q": { "_id": 4, "x": 5 }, "u": { "$set": { "a": 4 }, "$setOnInsert": { "b": 1 } }, "upsert": true },
            rawdoc! { "n": 1, "nModified": 0, "upserted": [{ "index": 0, "_id": 4 }] },
            vec![
                rawdoc! { "_id": 1, "a": 1 },
                rawdoc! { "_id": 2, "a": 1 },
                rawdoc! { "_id": 3, "a": 3 },
                rawdoc! { "_id": 4, "x": 5, "a": 4, "b": 1 },
            ],
        ),
        (
            rawdoc! { "q": { "_id": 9 }, "u": { "$set": { "a": 4 } } },
            rawdoc! { "n": 0, "nModified": 0 },
            vec![
                rawdoc! { "_id": 1, "a": 1 },
                rawdoc! { "_id": 2, "a": 1 },
                rawdoc! { "_id": 3, "a": 3 },
            ],
        ),
    ];
    for (statement, reply, expected) in cases {
        let shell = Shell::new().await;
        let documents = [
            rawdoc! { "_id": 1, "a": 1 },
            rawdoc! { "_id": 2, "a": 1 },
            rawdoc! { "_id": 3, "a": 3 },
        ];
        shell.insert("c", &documents).await;
        assert_eq!(
            shell.ok(update(std::slice::from_ref(&statement))).await,
            reply,
            "{statement:?}"
        );
        assert_eq!(contents(&shell).await, expected, "{statement:?}");
    }
}

/// What was changed before an error stays changed; statements after it run if the command is unordered.
#[tokio::test(flavor = "multi_thread")]
async fn errors_stop_the_statement_and_ordered_commands() {
    let statements = [
        rawdoc! { "q": { "_id": { "$lt": 3 } }, "u": { "$set": { "x": 1 } }, "multi": true },
        // Document 1 is changed, document 2 has a string.
        rawdoc! { "q": {}, "u": { "$inc": { "a": 1 } }, "multi": true },
        rawdoc! { "q": { "_id": 3 }, "u": { "$set": { "x": 2 } } },
    ];
    for (is_ordered, n, last) in [
        (true, 2, rawdoc! { "_id": 3, "a": 1 }),
        (false, 3, rawdoc! { "_id": 3, "a": 1, "x": 2 }),
    ] {
        let shell = Shell::new().await;
        let documents = [
            rawdoc! { "_id": 1, "a": 1 },
            rawdoc! { "_id": 2, "a": "text" },
            rawdoc! { "_id": 3, "a": 1 },
        ];
        shell.insert("c", &documents).await;
        let mut command = update(&statements);
        command.append(cstr!("ordered"), is_ordered);
        let reply = shell.ok(command).await;
        assert_eq!(without(&reply, &["writeErrors"]), rawdoc! { "n": n, "nModified": n });
        let errors = reply.get_array("writeErrors").expect("errors");
        let errors: Vec<_> = errors
            .into_iter()
            .map(|error| {
                let error = error.expect("valid").as_document().expect("a document");
                (
                    error.get_i32("index").expect("an index"),
                    error.get_i32("code").expect("a code"),
                )
            })
            .collect();
        assert_eq!(errors, [(1, 14)]);
        let expected = [
            rawdoc! { "_id": 1, "a": 2, "x": 1 },
            rawdoc! { "_id": 2, "a": "text", "x": 1 },
            last,
        ];
        assert_eq!(contents(&shell).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_statements_create_no_collection() {
    let shell = Shell::new().await;
    for (statement, expected) in [
        (
            rawdoc! { "q": { "$nonsense": 1 }, "u": { "$set": { "a": 1 } }, "upsert": true },
            2,
        ),
        (rawdoc! { "q": {}, "u": { "$nonsense": { "a": 1 } }, "upsert": true }, 9),
        (rawdoc! { "q": {}, "u": { "a": 1 }, "upsert": true, "multi": true }, 9),
        (
            rawdoc! { "q": {}, "u": { "$set": { "a": 1 } }, "upsert": true, "c": { "c": 1 } },
            51198,
        ),
    ] {
        let reply = shell.ok(update(std::slice::from_ref(&statement))).await;
        let errors = reply.get_array("writeErrors").expect("errors");
        let error = errors.into_iter().next().expect("one").expect("valid");
        let code = error
            .as_document()
            .expect("a document")
            .get_i32("code")
            .expect("a code");
        assert_eq!(code, expected, "{statement:?}");
    }
    // Those that cannot be read fail the whole command.
    for (statement, expected) in [
        (rawdoc! { "q": {}, "u": { "a": 1 }, "sort": { "a": 1 } }, 40415),
        (rawdoc! { "u": { "a": 1 } }, 40414),
        (rawdoc! { "q": {}, "u": { "a": 1 }, "hint": 1 }, 9),
    ] {
        let good = rawdoc! { "q": {}, "u": { "$set": { "a": 1 } }, "upsert": true };
        assert_eq!(shell.code(update(&[good, statement])).await, expected);
    }
    assert!(shell.state.account.find_collection("db", "c").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_statement_fails_the_command_before_anything_is_written() {
    let shell = Shell::new().await;
    let good = rawdoc! { "q": { "_id": 1 }, "u": { "a": 1 }, "upsert": true };
    for (bad, expected) in [
        (rawdoc! { "q": {}, "u": { "a": 1 }, "sort": { "a": 1 } }, 40415),
        (rawdoc! { "q": {}, "u": { "a": 1 }, "nonsense": 1 }, 40415),
        (rawdoc! { "q": {} }, 40414),
        (rawdoc! { "q": 1, "u": { "a": 1 } }, 14),
    ] {
        assert_eq!(
            shell.code(update(&[good.clone(), bad.clone()])).await,
            expected,
            "{bad:?}"
        );
    }
    shell.ok(rawdoc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
    let good = rawdoc! { "q": { "_id": 1 }, "limit": 1 };
    for (bad, expected) in [
        (rawdoc! { "q": {}, "limit": 2 }, 9),
        (rawdoc! { "q": {} }, 40414),
        (rawdoc! { "q": {}, "limit": 0, "nonsense": 1 }, 40415),
    ] {
        let command = rawdoc! { "delete": "c", "deletes": [good.clone(), bad.clone()] };
        assert_eq!(shell.code(command).await, expected, "{bad:?}");
    }
    assert_eq!(contents(&shell).await, [rawdoc! { "_id": 1 }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_upserts_of_one_key_make_one_document() {
    let shell = Arc::new(Shell::new().await);
    let index = rawdoc! { "key": { "k": 1 }, "name": "k", "unique": true };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    for query in [rawdoc! { "_id": 1 }, rawdoc! { "k": "x" }] {
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (shell, query) = (shell.clone(), query.clone());
            clients.spawn(async move {
                let statement = rawdoc! { "q": query, "u": { "$inc": { "n": 1 } }, "upsert": true };
                shell.ok(update(&[statement])).await
            });
        }
        let replies = clients.join_all().await;
        let upserts = replies
            .iter()
            .filter(|reply| reply.get("upserted").expect("valid").is_some());
        assert_eq!(upserts.count(), 1, "{query:?}");
        assert!(
            replies.iter().all(|reply| reply.get_i32("n").is_ok_and(|n| n == 1)),
            "{query:?}: {replies:?}"
        );
        let found = shell
            .first_batch(rawdoc! { "find": "c", "filter": query.clone() })
            .await;
        assert_eq!(
            (found.len(), found[0].get_i32("n").expect("a number")),
            (1, 20),
            "{query:?}"
        );
    }
}

/// Source: mongo.md §7 and §19.26: a retry returns the stored result; a lower number is too old. Both survive a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_not_carried_out_again() {
    let engine = Arc::new(MemoryEngine::new(Arc::new(Clock::virtual_at(NOW))));
    let open = async || {
        let account_options = AccountOptions {
            virtual_clock: true,
            monotonic: Monotonic::manual(),
            ..AccountOptions::default()
        };
        let account = Account::open(engine.clone(), account_options)
            .await
            .expect("a database");
        let options = MongoOptions {
            requires_authentication: false,
            ..options()
        };
        Arc::new(MongoState::new(account, options))
    };
    let send = |command: &RawDocumentBuf, number: i64| {
        let mut command = command.clone();
        command.append(cstr!("lsid"), lsid(1));
        command.append(cstr!("txnNumber"), number);
        command.append(cstr!("$db"), "db");
        command
    };
    let commands = [
        (
            rawdoc! { "insert": "c", "documents": [{ "_id": 1, "n": 0 }, { "_id": 2, "n": 0 }] },
            rawdoc! { "n": 2 },
        ),
        (
            update(&[
                rawdoc! { "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } },
                rawdoc! { "q": { "_id": 3 }, "u": { "$inc": { "n": 1 } }, "upsert": true },
                rawdoc! { "q": { "n": 0 }, "u": { "$set": { "n": 0 } } },
            ]),
            rawdoc! { "n": 3, "nModified": 1, "upserted": [{ "index": 1, "_id": 3 }] },
        ),
        (
            rawdoc! { "delete": "c", "deletes": [{ "q": { "_id": 2 }, "limit": 1 }, { "q": { "n": 1 }, "limit": 1 }] },
            rawdoc! { "n": 2 },
        ),
    ];
    let added = ["ok", "$clusterTime", "operationTime", "retriedStmtIds"];
    let mut state = open().await;
    for (number, (command, expected)) in (1..).zip(&commands) {
        let command = send(command, number);
        let first = fixture::run(&state, &client(), command.clone()).await;
        assert_eq!(without(&first, &added), *expected);
        assert!(first.get("retriedStmtIds").expect("valid").is_none());
        let again = fixture::run(&state, &client(), command.clone()).await;
        assert_eq!(without(&again, &added), *expected);
        assert!(again.get("retriedStmtIds").expect("valid").is_some());
        drop(state);
        state = open().await;
        let after_restart = fixture::run(&state, &client(), command).await;
        assert_eq!(without(&after_restart, &added), *expected);
    }
    let too_old = fixture::run(&state, &client(), send(&commands[0].0, 1)).await;
    let is_too_old = match too_old.get_array("writeErrors") {
        Ok(errors) => format!("{errors:?}").contains("225"),
        Err(_) => code_of(&too_old) == 225,
    };
    assert!(is_too_old, "{too_old:?}");
    let mut multi = update(&[rawdoc! { "q": {}, "u": { "$set": { "n": 5 } }, "multi": true }]);
    multi = send(&multi, 9);
    let refused = fixture::run(&state, &client(), multi).await;
    assert!(format!("{refused:?}").contains("72"), "{refused:?}");
    let count = rawdoc! { "count": "c", "$db": "db" };
    let left = fixture::run(&state, &client(), count).await;
    assert_eq!(left.get_i32("n").expect("a number"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_a_transaction_are_seen_when_it_commits() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1, "n": 0 }]).await;
    let in_transaction = |command: RawDocumentBuf, starts: bool| {
        let mut command = command;
        command.append(cstr!("lsid"), lsid(1));
        command.append(cstr!("txnNumber"), 1_i64);
        command.append(cstr!("autocommit"), false);
        if starts {
            command.append(cstr!("startTransaction"), true);
        }
        command
    };
    let statements = [
        rawdoc! { "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } },
        rawdoc! { "q": { "_id": 2 }, "u": { "$inc": { "n": 1 } }, "upsert": true },
    ];
    let reply = shell.ok(in_transaction(update(&statements), true)).await;
    assert_eq!(
        reply,
        rawdoc! { "n": 2, "nModified": 1, "upserted": [{ "index": 1, "_id": 2 }] }
    );
    let modify = rawdoc! { "findAndModify": "c", "sort": { "_id": -1 }, "update": { "$inc": { "n": 5 } }, "new": true };
    let reply = shell.ok(in_transaction(modify, false)).await;
    assert_eq!(
        reply
            .get_document("value")
            .and_then(|value| value.get_i32("n"))
            .expect("a number"),
        6
    );
    let inside = rawdoc! { "find": "c", "sort": { "n": -1 }, "projection": { "_id": 0 } };
    let found = shell.first_batch(in_transaction(inside, false)).await;
    assert_eq!(found, [rawdoc! { "n": 6 }, rawdoc! { "n": 1 }]);
    assert_eq!(contents(&shell).await, [rawdoc! { "_id": 1, "n": 0 }]);
    let mut commit = in_transaction(rawdoc! { "commitTransaction": 1 }, false);
    commit.append(cstr!("$db"), "admin");
    shell.ok(commit).await;
    assert_eq!(
        contents(&shell).await,
        [rawdoc! { "_id": 1, "n": 1 }, rawdoc! { "_id": 2, "n": 6 }]
    );
}

/// Source: mongo.md §18.5: no write sees the dead, and their `_id`s and unique keys are free.
#[tokio::test(flavor = "multi_thread")]
async fn the_dead_are_not_in_the_way() {
    let shell = Shell::new().await;
    let indexes = [
        rawdoc! { "key": { "d": 1 }, "name": "d", "expireAfterSeconds": 10 },
        rawdoc! { "key": { "k": 1 }, "name": "k", "unique": true, "sparse": true },
    ];
    shell
        .ok(rawdoc! { "createIndexes": "c", "indexes": array(&indexes) })
        .await;
    let dead = |id: i32| rawdoc! { "_id": id, "k": id, "d": DateTime::from_millis(NOW.0) };
    shell.insert("c", &[dead(1), dead(2), dead(3)]).await;
    shell.advance(9_999);
    let set = rawdoc! { "q": { "_id": 1 }, "u": { "$set": { "x": 1 } }, "upsert": true };
    assert_eq!(
        shell.ok(update(std::slice::from_ref(&set))).await,
        rawdoc! { "n": 1, "nModified": 1 }
    );
    shell.advance(1);
    // A dead match is no match.
    let inserted = rawdoc! { "n": 1, "nModified": 0, "upserted": [{ "index": 0, "_id": 1 }] };
    assert_eq!(shell.ok(update(&[set])).await, inserted);
    let many = rawdoc! { "q": { "k": { "$gt": 0 } }, "u": { "$set": { "x": 1 } }, "multi": true };
    assert_eq!(shell.ok(update(&[many])).await, rawdoc! { "n": 0, "nModified": 0 });
    let delete = rawdoc! { "delete": "c", "deletes": [{ "q": { "k": { "$gt": 0 } }, "limit": 0 }] };
    assert_eq!(shell.ok(delete).await, rawdoc! { "n": 0 });
    let insert = rawdoc! { "insert": "c", "documents": [{ "_id": 2 }, { "_id": 5, "k": 3 }] };
    assert_eq!(shell.ok(insert).await, rawdoc! { "n": 2 });
    let expected = [
        rawdoc! { "_id": 1, "x": 1 },
        rawdoc! { "_id": 2 },
        rawdoc! { "_id": 5, "k": 3 },
    ];
    assert_eq!(contents(&shell).await, expected);
}

/// Source: ttl.md TTL-289: an update that changes nothing restarts the countdown of `_ts`, and means nothing to a date.
#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_changes_nothing_restarts_the_countdown() {
    for (key, lives) in [("_ts", true), ("d", false)] {
        let shell = Shell::new().await;
        let mut pattern = RawDocumentBuf::new();
        pattern.append(if key == "_ts" { cstr!("_ts") } else { cstr!("d") }, 1);
        let index = rawdoc! { "key": pattern, "name": "ttl", "expireAfterSeconds": 10 };
        shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
        let document = rawdoc! { "_id": 1, "a": 1, "d": DateTime::from_millis(NOW.0) };
        shell.insert("c", &[document]).await;
        shell.advance(6_000);
        let same = rawdoc! { "q": { "_id": 1 }, "u": { "$set": { "a": 1 } } };
        assert_eq!(shell.ok(update(&[same])).await, rawdoc! { "n": 1, "nModified": 0 });
        shell.advance(6_000);
        assert_eq!(contents(&shell).await.len(), usize::from(lives), "{key}");
        shell.advance(4_000);
        assert_eq!(contents(&shell).await.len(), 0, "{key}");
    }
}
