//! Exports: the live items of a container, or the live documents of a collection, as lines that an import reads.

use std::sync::Arc;

use bolide_model::{Result, UnixSeconds};
use bolide_mql::value;

use super::Admin;
use crate::container::Container;
use crate::content::StoredItem;
use crate::documents::{DocumentScan, ReadScope, StoredDocument};
use crate::feeds::ReadFeed;
use crate::runtime::RequestContext;
use crate::scan::ScanScope;

/// Items of one page; small enough that a page of large items stays in memory easily.
const PAGE_ITEMS: usize = 500;

/// Where an export goes on.
#[derive(Debug, Clone)]
pub struct ExportPosition(Position);

#[derive(Debug, Clone)]
enum Position {
    /// A continuation of the feed of all items.
    Items(Option<String>),
    Documents(Box<DocumentScan>),
}

/// A part of an export.
#[derive(Debug)]
pub struct ExportPage {
    /// Lines of JSON, each with its line end. May be empty before the end.
    pub lines: Vec<u8>,
    /// The times of the last change of each item.
    pub last_modified: Vec<UnixSeconds>,
    /// Where the export goes on; `None` at the end.
    pub next: Option<ExportPosition>,
}

impl ExportPosition {
    /// Returns the position before the first item of a container.
    pub fn start(container: &Container) -> ExportPosition {
        ExportPosition(match container.collection() {
            None => Position::Items(None),
            Some(_) => Position::Documents(Box::default()),
        })
    }
}

impl Admin<'_> {
    /// See `Account::export`.
    pub(crate) async fn export(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        position: ExportPosition,
    ) -> Result<ExportPage> {
        match position.0 {
            Position::Items(continuation) => self.export_items(ctx, container, continuation).await,
            Position::Documents(scan) => self.export_documents(ctx, container, scan).await,
        }
    }

    async fn export_items(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        continuation: Option<String>,
    ) -> Result<ExportPage> {
        let read = ReadFeed {
            scope: ScanScope::default(),
            max_items: Some(PAGE_ITEMS),
            continuation,
        };
        let page = self.runtime.read_feed(ctx, container, &read).await;
        let page = page.map_err(|refusal| refusal.error)?.value;
        let (next, items) = (page.continuation, page.items);
        let last_modified = items.iter().map(|item| item.last_modified()).collect();
        let lines = self.runtime.aside(move || lines(&items, StoredItem::to_json)).await?;
        Ok(ExportPage {
            lines,
            last_modified,
            next: next.map(|next| ExportPosition(Position::Items(Some(next)))),
        })
    }

    async fn export_documents(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        mut scan: Box<DocumentScan>,
    ) -> Result<ExportPage> {
        // Every page is judged at the time when it is made, as in a feed (TTL-247).
        let page = scan.next_page(&ReadScope::new(ctx.now), container).await?;
        let next = page.is_some().then_some(ExportPosition(Position::Documents(scan)));
        let documents = page.map(|page| page.documents).unwrap_or_default();
        let last_modified = documents.iter().map(StoredDocument::last_modified).collect();
        let line = |document: &StoredDocument| value::json::write_line(document.document(), document.last_modified().0);
        let lines = self.runtime.aside(move || lines(&documents, line)).await?;
        Ok(ExportPage {
            lines,
            last_modified,
            next,
        })
    }
}

fn lines<T, L: AsRef<[u8]>>(items: &[T], line: impl Fn(&T) -> L) -> Vec<u8> {
    let mut lines = Vec::new();
    for item in items {
        lines.extend_from_slice(line(item).as_ref());
        lines.push(b'\n');
    }
    lines
}
