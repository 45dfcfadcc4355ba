//! Resume filters: a query number, a filter, then items, one per line. A filter is refused, or keeps the rows from some position on, in their order.

use std::sync::Arc;

use bolide_query::{PageLimit, Parameters, Query, ResumeFilter, Schema};

use super::input::Input;
use super::query::{ITEM_BYTES, Run, SEPARATOR, rows, with_fixed};

/// They sort by values of every kind, and by several; two rows of an item may be equal.
const QUERIES: [&str; 8] = [
    "SELECT VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.o DESC",
    "SELECT VALUE [c.id, c.tags] FROM c ORDER BY c.tags",
    "SELECT VALUE [c.id, t] FROM c JOIN t IN c.tags ORDER BY c.s",
    "SELECT VALUE c.id FROM c ORDER BY c.n, c.s DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.pk DESC, c.n, c.id DESC",
    "SELECT VALUE c.id FROM c",
];

/// Reads the filter and runs the query with it.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let text = QUERIES[usize::from(input.byte()) % QUERIES.len()];
    let (filter, items) = (input.until(SEPARATOR), input.0);
    let Ok(filter) = serde_json::from_slice(filter) else {
        return;
    };
    let Ok(filter) = ResumeFilter::from_json(&filter, |rid| rid.parse().ok()) else {
        return;
    };
    if items.len() > ITEM_BYTES {
        return;
    }
    let query = Query::compile(text, &Parameters::none(), &Schema::metadata()).expect("a query as above");
    let items = with_fixed(items);
    let mut run = Run {
        query: &query,
        items: &items,
        filter: None,
    };
    let whole = run.page(0, PageLimit::NONE, None).expect("few items");
    let whole = rows(&whole.finished);
    run.filter = Some(Arc::new(filter));
    // A refusal: the filter does not match the query.
    let Ok(left) = run.page(0, PageLimit::NONE, None) else {
        return;
    };
    let left = rows(&left.finished);
    assert!(whole.ends_with(&left), "{text}");
    assert_eq!(run.in_pages(), left, "{text}");
}
