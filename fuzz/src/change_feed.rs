//! Continuations of the change feed: any text is either a valid position or gives a 400.

use bolide_core::{FeedStart, ReadChanges, ScanScope};
use bolide_model::{Error, ErrorKind};

use super::test_account::TestAccount;

const RANGES: u32 = 3;

thread_local! {
    static RIG: TestAccount = TestAccount::new(RANGES);
}

/// Continues the feed from the bytes.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    RIG.with(|test_account| match read(test_account, text) {
        Ok(mut next) => {
            // Each page is of one range.
            for _ in 0..RANGES {
                next = read(test_account, &next).expect("the server's own continuation");
            }
            let again = read(test_account, &next).expect("the server's own continuation");
            assert_eq!(again, next, "there is nothing new");
        }
        Err(error) => assert_eq!(error.kind, ErrorKind::BadRequest, "{error}"),
    });
}

fn read(test_account: &TestAccount, continuation: &str) -> Result<String, Error> {
    test_account.run(async {
        let ctx = test_account.account.begin().await?;
        let read = ReadChanges {
            scope: ScanScope::default(),
            start: FeedStart::After(continuation.to_owned()),
            max_items: None,
        };
        let page = test_account
            .account
            .change_feed(&ctx, &test_account.container, &read)
            .await
            .map_err(|refusal| refusal.error)?;
        Ok(page.value.continuation)
    })
}
