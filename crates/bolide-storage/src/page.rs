//! How a scan becomes a page: the same bounds in every engine.

use bytes::Bytes;

use crate::{Ask, Page, Scan};

impl Scan {
    /// Whether no key can lie in the range. Engines ask first: ordered maps refuse ranges that end before they begin.
    pub fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }
}

impl Ask {
    /// Makes the scans until the pages hold as much as they may.
    pub fn pages<E>(&self, mut make: impl FnMut(&Scan) -> Result<Page, E>) -> Result<Vec<Page>, E> {
        let mut pages = Vec::with_capacity(self.scans.len());
        let mut bytes = 0;
        for scan in &self.scans {
            let page = if bytes >= self.max_bytes {
                Page {
                    rows: Vec::new(),
                    more: true,
                }
            } else {
                make(scan)?
            };
            bytes += page.bytes();
            pages.push(page);
        }
        Ok(pages)
    }
}

impl Page {
    /// How long its keys and values are together.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|(key, value)| key.len() + value.len()).sum()
    }

    /// Takes rows until the scan's bounds are reached.
    ///
    /// `rows` are the rows of the range in the order of the scan, values empty if the scan wants keys only. One row more than the
    /// page holds is asked for, so that `more` is exact.
    pub fn fill<E>(scan: &Scan, rows: impl Iterator<Item = Result<(Bytes, Bytes), E>>) -> Result<Page, E> {
        let mut page = Page::default();
        let mut bytes = 0;
        for row in rows {
            let (key, value) = row?;
            if !page.rows.is_empty() && (page.rows.len() >= scan.max_rows || bytes >= scan.max_bytes) {
                page.more = true;
                break;
            }
            bytes += key.len() + value.len();
            page.rows.push((key, value));
        }
        Ok(page)
    }
}
