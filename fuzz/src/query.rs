//! Queries: a text, then items, one per line. Every query that compiles has a plan or a refusal, and its pages add up to its result.

use std::sync::Arc;

use bolide_query::schema::PartitionKeyKind;
use bolide_query::{
    Environment, Finished, PageLimit, Parameters, Progress, Query, Result, ResumeFilter, Schema, SupportedFeatures,
};

use super::input::Input;

/// Separates the text and the items: a byte that neither contains.
pub(super) const SEPARATOR: u8 = 0;
/// Items of any kind, always present. Arrays are short, so that joins stay small.
pub(super) const ITEMS: [&str; 5] = [
    r#"{"id":"a","pk":"p","n":1,"s":"Red fox","tags":["x","y"],"o":{"k":[1,{"z":null}]},"_ts":100}"#,
    r#"{"id":"b","pk":"p","n":-2.5e3,"s":"","tags":[],"b":true,"_ts":101}"#,
    r#"{"id":"c","pk":"q","n":9007199254740993,"s":"ä\u0000\ud83d\ude00","v":[0.5,1],"_ts":102}"#,
    r#"{"id":"d","pk":null,"n":"1","d":"2024-02-29T23:59:59.9999999Z","_ts":103}"#,
    r#"{"id":"e","g":{"type":"Point","coordinates":[31.9,-4.8]},"n":null,"_ts":104}"#,
];
/// More pages than any of these results has; paging must end before.
const PAGES: usize = 200;
/// Maximum size of an item; a join over larger fuzzed arrays could have too many rows.
pub(super) const ITEM_BYTES: usize = 400;

/// Compiles and runs the text.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (text, items) = (input.until(SEPARATOR), input.0);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let parameters = Parameters::none()
        .with("@p", &serde_json::json!({"k": [1, "x"]}))
        .with("@n", &1.into());
    let container = Schema::container(vec![vec!["pk".to_owned()]], PartitionKeyKind::Hash);
    for schema in [Schema::metadata(), container] {
        let Ok(query) = Query::compile(text, &parameters, &schema) else {
            continue;
        };
        let _ = query.plan(&SupportedFeatures::all());
        let _ = (
            query.info(),
            query.explain(),
            query.partition_key_ranges(),
            query.needs_merge(),
        );
        if items.len() > ITEM_BYTES {
            continue;
        }
        let items = with_fixed(items);
        let run = Run {
            query: &query,
            items: &items,
            filter: None,
        };
        let Ok(whole) = run.page(0, PageLimit::NONE, None) else {
            continue;
        };
        assert_eq!(whole.finished.resume, None, "without a limit there is one page");
        if is_repeatable(text) {
            let (mut paged, mut whole) = (run.in_pages(), rows(&whole.finished));
            if !has_an_order(text) {
                paged.sort();
                whole.sort();
            }
            assert_eq!(paged, whole, "{text}");
        }
    }
}

/// Whether the bytes could be stored: an object that the parser accepts.
fn is_item(bytes: &[u8]) -> bool {
    bolide_model::document::Document::parse(bytes).is_ok()
}

/// Whether the rows have an order. Groups come in the order of their keys if pages must continue after one, and otherwise as they were found: SQL
/// promises neither.
fn has_an_order(text: &str) -> bool {
    !text.to_ascii_uppercase().contains("GROUP")
}

/// Random numbers differ from page to page.
fn is_repeatable(text: &str) -> bool {
    !text.to_ascii_uppercase().contains("RAND")
}

/// The fixed items followed by those of the input.
pub(super) fn with_fixed(items: &[u8]) -> Vec<&[u8]> {
    let own = items.split(|byte| *byte == b'\n').filter(|item| is_item(item));
    ITEMS.iter().map(|item| item.as_bytes()).chain(own).collect()
}

pub(super) struct Page {
    pub finished: Finished,
    /// The item that the next page begins with.
    next: usize,
}

/// A query over items, whose numbers are their positions, from 1.
pub(super) struct Run<'a> {
    pub query: &'a Query,
    pub items: &'a [&'a [u8]],
    pub filter: Option<Arc<ResumeFilter>>,
}

impl Run<'_> {
    pub fn page(&self, first: usize, limit: PageLimit, resume: Option<&str>) -> Result<Page> {
        let environment = Environment {
            now_ms: 1_700_000_000_000,
            ..Environment::default()
        };
        let mut execution = self
            .query
            .filtered_execution(environment, limit, resume, self.filter.clone())?;
        let mut next = first;
        let mut is_end = true;
        if self.query.reads_items() {
            for (at, item) in self.items.iter().enumerate().skip(first) {
                next = at;
                let progress = execution.push(item, at as u64 + 1)?;
                if progress != Progress::Continue {
                    is_end = progress == Progress::Done;
                    break;
                }
                next = at + 1;
            }
        }
        Ok(Page {
            finished: execution.finish(is_end)?,
            next,
        })
    }

    /// The rows of all pages of two rows each.
    pub fn in_pages(&self) -> Vec<Vec<u8>> {
        let limit = PageLimit {
            rows: 2,
            ..PageLimit::NONE
        };
        let mut all = Vec::new();
        let (mut first, mut resume) = (0, None::<String>);
        for _ in 0..PAGES.max(self.items.len() * PAGES) {
            let page = self
                .page(first, limit, resume.as_deref())
                .expect("the same query ran in one page");
            all.extend(rows(&page.finished));
            resume = page.finished.resume;
            if resume.is_none() {
                return all;
            }
            first = if self.query.rescans() { 0 } else { page.next };
        }
        panic!("the pages do not end");
    }
}

pub(super) fn rows(finished: &Finished) -> Vec<Vec<u8>> {
    finished.rows.iter().map(<[u8]>::to_vec).collect()
}
