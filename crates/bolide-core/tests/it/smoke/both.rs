//! Two containers with the same history, one with indexes and one without, and all pages of a query.

use bolide_core::{AccountOptions, DeleteItem, IndexUse, ItemTarget, QueryItems, QueryPage};
use serde_json::Value;

use crate::test_container::{TestContainer, key, options};

pub(super) fn with_use(index_use: IndexUse) -> AccountOptions {
    AccountOptions { index_use, ..options() }
}

/// Two containers with the same history: one whose queries use indexes, and one that is scanned.
pub(super) struct Both {
    pub with: TestContainer,
    pub without: TestContainer,
}

impl Both {
    pub async fn new(definition: Value) -> Both {
        Both {
            with: TestContainer::with_options(definition.clone(), None, with_use(IndexUse::Always)).await,
            without: TestContainer::with_options(definition, None, with_use(IndexUse::Never)).await,
        }
    }

    pub fn each(&self) -> [&TestContainer; 2] {
        [&self.with, &self.without]
    }

    pub async fn upsert(&self, item: &Value) {
        for test in self.each() {
            test.upsert(item.clone(), None).await.unwrap();
        }
    }

    pub async fn delete(&self, id: &str) {
        for test in self.each() {
            let delete = DeleteItem {
                target: ItemTarget::Id(id.into()),
                partition_key: key(id),
                if_match: None,
            };
            let ctx = test.begin().await;
            test.account.delete_item(&ctx, &test.container, delete).await.unwrap();
        }
    }

    pub fn at(&self, second: i64) {
        for test in self.each() {
            test.at(second);
        }
    }

    pub async fn split(&self) {
        for test in self.each() {
            test.account.split(&test.container, None).await.unwrap();
        }
    }
}

/// Returns the rows of all pages of a query over all ranges, in order, and the first page.
pub(super) async fn all_pages(test: &TestContainer, query: QueryItems) -> (Vec<Value>, QueryPage) {
    let mut query = QueryItems {
        cross_partition: true,
        merges_ranges: true,
        ..query
    };
    let (mut rows, mut first): (_, Option<QueryPage>) = (Vec::new(), None);
    loop {
        let ctx = test.begin().await;
        let page = test.account.query(&ctx, &test.container, &query).await;
        let page = page
            .unwrap_or_else(|refusal| panic!("{}: {:?}", query.text, refusal.error))
            .value;
        let page_rows: Vec<Value> = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
        rows.extend(page_rows);
        query.continuation.clone_from(&page.continuation);
        let first = first.get_or_insert(page);
        if query.continuation.is_none() {
            return (rows, first.clone());
        }
    }
}
