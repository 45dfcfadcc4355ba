//! Continuations of the read feed and of queries: any text is either a valid position to continue from, or gives a 400.
//!
//! A continuation has a checksum but no secret, so anybody can make one that passes it. The target does this too, because otherwise only the checksum
//! would be tested.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bolide_core::{QueryItems, ReadFeed};
use bolide_model::{Error, ErrorKind};
use bolide_query::{Parameters, Query, Schema};
use sha2::{Digest, Sha256};

use super::input::Input;
use super::test_account::TestAccount;

/// Queries with different kinds of continuations.
const QUERIES: [&str; 6] = [
    "SELECT * FROM c",
    "SELECT VALUE t FROM c JOIN t IN c.tags",
    "SELECT * FROM c ORDER BY c.n",
    "SELECT DISTINCT VALUE c.n FROM c",
    "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
    "SELECT * FROM c OFFSET 1 LIMIT 5",
];
/// More pages than there can be items.
const PAGES: usize = 100;

thread_local! {
    static RIG: TestAccount = checked_account();
}

/// Requests the page that the bytes name.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (kind, query) = (input.byte(), QUERIES[usize::from(input.byte()) % QUERIES.len()]);
    RIG.with(|test_account| {
        let is_query = kind & 1 == 1;
        let token = match (kind & 2 == 2, is_query) {
            (false, _) => match std::str::from_utf8(input.0) {
                Ok(text) => text.to_owned(),
                Err(_) => return,
            },
            (true, true) => {
                let length = usize::from(input.byte());
                let position = input.bytes(length);
                match std::str::from_utf8(input.0) {
                    Ok(resume) => seal_query(test_account, query, position, resume),
                    Err(_) => return,
                }
            }
            (true, false) => seal(&feed_owner(test_account), input.0),
        };
        let ask = |token: String| {
            if is_query {
                query_page(test_account, query, Some(token))
            } else {
                feed_page(test_account, Some(token))
            }
        };
        follow(ask, token);
    });
}

/// Reads page after page until the end.
fn follow(ask: impl Fn(String) -> Result<Option<String>, Error>, token: String) {
    let mut next = token;
    for page in 0..PAGES {
        match ask(next) {
            Ok(Some(token)) => next = token,
            Ok(None) => return,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::BadRequest, "{error}");
                assert_eq!(page, 0, "the server refuses its own continuation: {error}");
                return;
            }
        }
    }
    panic!("the pages do not end");
}

fn feed_page(test_account: &TestAccount, continuation: Option<String>) -> Result<Option<String>, Error> {
    test_account.run(async {
        let ctx = test_account.account.begin().await?;
        let read = ReadFeed {
            max_items: Some(2),
            continuation,
            ..ReadFeed::default()
        };
        let page = test_account
            .account
            .read_feed(&ctx, &test_account.container, &read)
            .await
            .map_err(|refusal| refusal.error)?;
        Ok(page.value.continuation)
    })
}

fn query_page(test_account: &TestAccount, text: &str, continuation: Option<String>) -> Result<Option<String>, Error> {
    test_account.run(async {
        let ctx = test_account.account.begin().await?;
        let query = QueryItems {
            text: text.to_owned(),
            cross_partition: true,
            max_items: Some(2),
            continuation,
            ..QueryItems::default()
        };
        let page = test_account
            .account
            .query(&ctx, &test_account.container, &query)
            .await
            .map_err(|refusal| refusal.error)?;
        Ok(page.value.continuation)
    })
}

/// An account of one range, so that the server can run every query itself; also checks that [`seal`] does the same as the server.
fn checked_account() -> TestAccount {
    let test_account = TestAccount::new(1);
    let feed = feed_page(&test_account, None)
        .expect("the first page")
        .expect("there are more");
    assert_eq!(seal(&feed_owner(&test_account), payload(&feed).as_slice()), feed);
    for text in QUERIES {
        let query = query_page(&test_account, text, None)
            .expect("the first page")
            .expect("there are more");
        let (sealed, resume) = query.split_once('.').expect("a position, and what the execution says");
        assert_eq!(seal_query(&test_account, text, &payload(sealed), resume), query);
    }
    test_account
}

fn feed_owner(test_account: &TestAccount) -> Vec<Vec<u8>> {
    vec![b"read feed".to_vec(), test_account.container.rid().bytes().to_vec()]
}

/// A continuation of a query in the server's format: the sealed position, and the state of the execution.
fn seal_query(test_account: &TestAccount, text: &str, position: &[u8], resume: &str) -> String {
    let rid = test_account.container.rid().bytes().to_vec();
    let query = Query::compile(text, &Parameters::none(), &Schema::default()).expect("a query");
    let owner = [
        b"query".to_vec(),
        rid,
        query.identity().to_vec(),
        resume.as_bytes().to_vec(),
    ];
    format!("{}.{resume}", seal(&owner, position))
}

/// A sealed position in the server's format: format, checksum of owner and payload, payload.
fn seal(owner: &[Vec<u8>], payload: &[u8]) -> String {
    let mut hash = Sha256::new();
    for part in owner {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.update(payload);
    let mut bytes = vec![1];
    bytes.extend(&hash.finalize()[..8]);
    bytes.extend(payload);
    URL_SAFE_NO_PAD.encode(bytes)
}

fn payload(continuation: &str) -> Vec<u8> {
    let bytes = URL_SAFE_NO_PAD
        .decode(continuation)
        .expect("the server's own continuation");
    bytes[9..].to_vec()
}
