//! Continuations of the read feed and of queries: any text is a place that pages go on from, or a 400.
//!
//! A continuation has a check but no secret, so anybody can make one up that passes it. The target does that too, or the check would
//! be all that is ever tested.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bolide_core::{QueryItems, ReadFeed};
use bolide_model::{Error, ErrorKind};
use bolide_query::{Parameters, Query, Schema};
use sha2::{Digest, Sha256};

use super::input::Input;
use super::test_account::TestAccount;

/// Queries whose continuations say different things.
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
    static RIG: TestAccount = checked_rig();
}

/// Asks for the page that the bytes name.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (kind, query) = (input.byte(), QUERIES[usize::from(input.byte()) % QUERIES.len()]);
    RIG.with(|rig| {
        let is_query = kind & 1 == 1;
        let token = match (kind & 2 == 2, is_query) {
            (false, _) => match std::str::from_utf8(input.0) {
                Ok(text) => text.to_owned(),
                Err(_) => return,
            },
            (true, true) => {
                let length = usize::from(input.byte());
                let place = input.bytes(length);
                match std::str::from_utf8(input.0) {
                    Ok(resume) => seal_query(rig, query, place, resume),
                    Err(_) => return,
                }
            }
            (true, false) => seal(&feed_owner(rig), input.0),
        };
        let ask = |token: String| {
            if is_query {
                query_page(rig, query, Some(token))
            } else {
                feed_page(rig, Some(token))
            }
        };
        follow(ask, token);
    });
}

/// Goes on from page to page until the end.
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

fn feed_page(rig: &TestAccount, continuation: Option<String>) -> Result<Option<String>, Error> {
    rig.run(async {
        let ctx = rig.account.begin().await?;
        let read = ReadFeed {
            max_items: Some(2),
            continuation,
            ..ReadFeed::default()
        };
        let page = rig
            .account
            .read_feed(&ctx, &rig.container, &read)
            .await
            .map_err(|refusal| refusal.error)?;
        Ok(page.value.continuation)
    })
}

fn query_page(rig: &TestAccount, text: &str, continuation: Option<String>) -> Result<Option<String>, Error> {
    rig.run(async {
        let ctx = rig.account.begin().await?;
        let query = QueryItems {
            text: text.to_owned(),
            cross_partition: true,
            max_items: Some(2),
            continuation,
            ..QueryItems::default()
        };
        let page = rig
            .account
            .query(&ctx, &rig.container, &query)
            .await
            .map_err(|refusal| refusal.error)?;
        Ok(page.value.continuation)
    })
}

/// A rig of one range, so that the server answers every query itself, and the proof that [`seal`] does as the server does.
fn checked_rig() -> TestAccount {
    let rig = TestAccount::new(1);
    let feed = feed_page(&rig, None).expect("the first page").expect("there are more");
    assert_eq!(seal(&feed_owner(&rig), payload(&feed).as_slice()), feed);
    for text in QUERIES {
        let query = query_page(&rig, text, None)
            .expect("the first page")
            .expect("there are more");
        let (sealed, resume) = query.split_once('.').expect("a place, and what the execution says");
        assert_eq!(seal_query(&rig, text, &payload(sealed), resume), query);
    }
    rig
}

fn feed_owner(rig: &TestAccount) -> Vec<Vec<u8>> {
    vec![b"read feed".to_vec(), rig.container.rid().bytes().to_vec()]
}

/// A continuation of a query as the server writes it: the place sealed, and what the execution says.
fn seal_query(rig: &TestAccount, text: &str, place: &[u8], resume: &str) -> String {
    let rid = rig.container.rid().bytes().to_vec();
    let query = Query::compile(text, &Parameters::none(), &Schema::default()).expect("a query");
    let owner = [
        b"query".to_vec(),
        rid,
        query.identity().to_vec(),
        resume.as_bytes().to_vec(),
    ];
    format!("{}.{resume}", seal(&owner, place))
}

/// A checked place as the server writes it: format, check of owner and payload, payload.
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
