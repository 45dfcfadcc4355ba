//! How a scan becomes a page, with the same bounds in every engine.

use bytes::Bytes;

use crate::{Key, Page, ReadRequest, Scan, Space};

impl Scan {
    /// Scans all rows of a space in one page of any size. For checks and tests of small partitions.
    pub fn whole(space: Space) -> Scan {
        Scan {
            space,
            from: Bytes::new(),
            to: None,
            reverse: false,
            max_rows: usize::MAX,
            max_bytes: usize::MAX,
            keys_only: false,
        }
    }

    /// Whether no key can lie in the range. Engines must check this first: ordered maps panic on ranges that end before they begin.
    pub fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }
}

impl ReadRequest {
    /// Looks up the keys and makes the scans, until the response reaches its limit.
    pub fn answer<E>(
        &self,
        mut get: impl FnMut(&Key) -> Result<Option<Bytes>, E>,
        mut scan: impl FnMut(&Scan) -> Result<Page, E>,
    ) -> Result<(Vec<Option<Bytes>>, Vec<Page>), E> {
        let mut bytes = 0;
        let mut gets = Vec::with_capacity(self.gets.len());
        for key in &self.gets {
            if bytes >= self.max_bytes && !gets.is_empty() {
                break;
            }
            let value = get(key)?;
            bytes += value.as_ref().map_or(0, |value| key.bytes.len() + value.len());
            gets.push(value);
        }
        let mut pages = Vec::with_capacity(self.scans.len());
        for wanted in &self.scans {
            let page = if bytes >= self.max_bytes {
                Page::not_made()
            } else {
                scan(wanted)?
            };
            bytes += page.bytes();
            pages.push(page);
        }
        Ok((gets, pages))
    }
}

impl Page {
    /// The page of a scan that was left out ([`ReadRequest::max_bytes`]).
    fn not_made() -> Page {
        Page {
            rows: Vec::new(),
            more: true,
        }
    }

    /// Whether the scan of this page was made.
    pub fn is_made(&self) -> bool {
        !self.rows.is_empty() || !self.more
    }

    /// Total length of its keys and values.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|(key, value)| key.len() + value.len()).sum()
    }

    /// Takes rows until the scan's bounds are reached.
    ///
    /// `rows` are the rows of the range in the order of the scan, with empty values if the scan wants keys only. One row more than the page holds is
    /// read from it, so that `more` is exact.
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
