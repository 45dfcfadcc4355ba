use std::sync::Arc;

use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, RawDocumentBuf, rawdoc};

use crate::client::Client;
use crate::commands::fixture::log_in::log_in;
use crate::commands::fixture::{self, KEY, code, run};
use crate::state::MongoState;

fn id(byte: u8) -> Binary {
    Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![byte; 16],
    }
}

fn lsid(byte: u8) -> RawDocumentBuf {
    rawdoc! { "id": id(byte) }
}

/// A server with the collection `shop.c`, its administrator, and two users of `shop`.
async fn server() -> (Arc<MongoState>, Client, [Client; 2]) {
    let state = fixture::state(fixture::options()).await;
    let administrator = fixture::authenticated(&state, KEY);
    let documents = rawdoc! { "insert": "c", "documents": [{}, {}, {}, {}, {}, {}], "$db": "shop" };
    assert_eq!(code(&state, &administrator, documents).await, 0);
    let users = [fixture::client(), fixture::client()];
    for (client, name) in users.iter().zip(["ada", "bob"]) {
        let create = rawdoc! { "createUser": name, "pwd": "secret", "roles": ["readWrite"], "$db": "shop" };
        assert_eq!(code(&state, &administrator, create).await, 0);
        assert_eq!(log_in(&state, client, "shop", name, "secret").await, 0);
    }
    (state, administrator, users)
}

/// A session with an open cursor and a transaction that has written.
struct Open<'a> {
    state: &'a Arc<MongoState>,
    client: &'a Client,
    session: u8,
    cursor: i64,
}

impl<'a> Open<'a> {
    async fn new(state: &'a Arc<MongoState>, client: &'a Client, session: u8) -> Open<'a> {
        let find = rawdoc! { "find": "c", "batchSize": 1, "lsid": lsid(session), "$db": "shop" };
        let reply = run(state, client, find).await;
        let cursor = reply.get_document("cursor").and_then(|cursor| cursor.get_i64("id"));
        let open = Open {
            state,
            client,
            session,
            cursor: cursor.expect("an id"),
        };
        let mut insert = rawdoc! { "insert": "c", "documents": [{}] };
        insert.append(cstr!("startTransaction"), true);
        assert_eq!(code(state, client, open.in_transaction(insert)).await, 0);
        open
    }

    fn in_transaction(&self, mut command: RawDocumentBuf) -> RawDocumentBuf {
        command.append(cstr!("lsid"), lsid(self.session));
        command.append(cstr!("txnNumber"), 1_i64);
        command.append(cstr!("autocommit"), false);
        if command.get("$db").expect("valid").is_none() {
            command.append(cstr!("$db"), "shop");
        }
        command
    }

    /// The codes of the next commands of its cursor and its transaction.
    async fn codes(&self) -> (i32, i32) {
        let more = rawdoc! {
            "getMore": self.cursor, "collection": "c", "batchSize": 1, "lsid": lsid(self.session), "$db": "shop",
        };
        let find = self.in_transaction(rawdoc! { "find": "c" });
        (
            code(self.state, self.client, more).await,
            code(self.state, self.client, find).await,
        )
    }
}

const ALIVE: (i32, i32) = (0, 0);
const ENDED: (i32, i32) = (43, 251);

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_session_closes_its_cursors_and_aborts_its_transaction() {
    let (state, _, [ada, _]) = server().await;
    for command in ["endSessions", "killSessions"] {
        let (one, other) = (Open::new(&state, &ada, 1).await, Open::new(&state, &ada, 2).await);
        let mut end = RawDocumentBuf::new();
        end.append(
            bson::raw::CString::try_from(command).expect("a name"),
            [lsid(1)].into_iter().collect::<bson::RawArrayBuf>(),
        );
        assert_eq!(code(&state, &ada, end).await, 0, "{command}");
        assert_eq!(one.codes().await, ENDED, "{command}");
        assert_eq!(other.codes().await, ALIVE, "{command}");
        let abort = other.in_transaction(rawdoc! { "abortTransaction": 1, "$db": "admin" });
        assert_eq!(code(&state, &ada, abort).await, 0);
        let end = rawdoc! { "endSessions": [lsid(1), lsid(2)] };
        assert_eq!(code(&state, &ada, end).await, 0);
    }
    let count = rawdoc! { "count": "c", "$db": "shop" };
    assert_eq!(run(&state, &ada, count).await.get_i32("n").expect("a number"), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_ends_only_its_own_sessions() {
    let (state, _, [ada, bob]) = server().await;
    let (of_ada, of_bob) = (Open::new(&state, &ada, 1).await, Open::new(&state, &bob, 1).await);
    assert_eq!(code(&state, &ada, rawdoc! { "killSessions": [lsid(1)] }).await, 0);
    assert_eq!((of_ada.codes().await, of_bob.codes().await), (ENDED, ALIVE));
    let of_ada = Open::new(&state, &ada, 3).await;
    assert_eq!(code(&state, &ada, rawdoc! { "killSessions": [] }).await, 0);
    assert_eq!(of_ada.codes().await, ENDED);
    assert_eq!(
        code(&state, &bob, of_bob.in_transaction(rawdoc! { "find": "c" })).await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_ends_sessions_by_user_and_by_pattern() {
    let (state, administrator, [ada, bob]) = server().await;
    // SHA-256 of `shop.ada`.
    let digest = ring::digest::digest(&ring::digest::SHA256, b"shop.ada");
    let digest = Binary {
        subtype: BinarySubtype::Generic,
        bytes: digest.as_ref().to_vec(),
    };
    let user = rawdoc! { "user": "ada", "db": "shop" };
    for (session, (command, ends_bob)) in (1..).zip([
        (rawdoc! { "killAllSessions": [user.clone()] }, false),
        (
            rawdoc! { "killAllSessions": [{ "user": "ada", "db": "other" }, user.clone()] },
            false,
        ),
        (rawdoc! { "killAllSessions": [] }, true),
        (
            rawdoc! { "killAllSessionsByPattern": [{ "users": [user.clone()] }] },
            false,
        ),
        (
            rawdoc! { "killAllSessionsByPattern": [{ "uid": digest.clone() }] },
            false,
        ),
        (
            rawdoc! { "killAllSessionsByPattern": [{ "lsid": { "id": id(6), "uid": digest } }] },
            false,
        ),
        (
            rawdoc! { "killAllSessionsByPattern": [{ "lsid": { "id": id(7) } }] },
            true,
        ),
        (rawdoc! { "killAllSessionsByPattern": [] }, true),
    ]) {
        let (of_ada, of_bob) = (
            Open::new(&state, &ada, session).await,
            Open::new(&state, &bob, session).await,
        );
        assert_eq!(code(&state, &ada, command.clone()).await, 13);
        assert_eq!(of_ada.codes().await, ALIVE, "{command:?}");
        assert_eq!(code(&state, &administrator, command.clone()).await, 0, "{command:?}");
        assert_eq!(of_ada.codes().await, ENDED, "{command:?}");
        let expected = if ends_bob { ENDED } else { ALIVE };
        assert_eq!(of_bob.codes().await, expected, "{command:?}");
        let end = rawdoc! { "endSessions": [lsid(session)] };
        assert_eq!(code(&state, &bob, end).await, 0);
    }
    for (command, expected) in [
        (rawdoc! { "killAllSessionsByPattern": [{ "roles": [] }] }, 238),
        (rawdoc! { "killAllSessionsByPattern": [{ "foo": 1 }] }, 40415),
        (rawdoc! { "killAllSessions": [{ "user": "ada" }] }, 40414),
        (rawdoc! { "killSessions": 1 }, 14),
    ] {
        assert_eq!(
            code(&state, &administrator, command.clone()).await,
            expected,
            "{command:?}"
        );
    }
}
