//! Continuations of the change feed: any text is a place in the feed or a 400.

use bolide_core::{FeedStart, ReadChanges, ScanScope};
use bolide_model::{Error, ErrorKind};

use super::test_account::TestAccount;

const RANGES: u32 = 3;

thread_local! {
    static RIG: TestAccount = TestAccount::new(RANGES);
}

/// Reads on from the bytes.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    RIG.with(|rig| match read(rig, text) {
        Ok(mut next) => {
            // A page is of one range.
            for _ in 0..RANGES {
                next = read(rig, &next).expect("the server's own continuation");
            }
            let again = read(rig, &next).expect("the server's own continuation");
            assert_eq!(again, next, "there is nothing new");
        }
        Err(error) => assert_eq!(error.kind, ErrorKind::BadRequest, "{error}"),
    });
}

fn read(rig: &TestAccount, continuation: &str) -> Result<String, Error> {
    rig.run(async {
        let ctx = rig.account.begin().await?;
        let read = ReadChanges {
            scope: ScanScope::default(),
            start: FeedStart::After(continuation.to_owned()),
            max_items: None,
        };
        let page = rig
            .account
            .change_feed(&ctx, &rig.container, &read)
            .await
            .map_err(|refusal| refusal.error)?;
        Ok(page.value.continuation)
    })
}
