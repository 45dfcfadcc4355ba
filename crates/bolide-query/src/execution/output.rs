//! The page: OFFSET, LIMIT, and the size limit.

use super::emitted_rows::EmittedRows;
use crate::error::Result;

/// The maximum size of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// Maximum number of rows.
    pub rows: usize,
    /// Maximum bytes of rows; a single larger row is still returned alone.
    pub bytes: usize,
}

impl PageLimit {
    /// No limit: all rows are returned on one page.
    pub const NONE: PageLimit = PageLimit {
        rows: usize::MAX,
        bytes: usize::MAX,
    };
}

/// Result rows as JSON texts, kept in one buffer with commas between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    joined: Vec<u8>,
    /// The end of each row.
    ends: Vec<usize>,
}

impl Rows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The rows with commas between them: the inside of a JSON array.
    pub fn joined(&self) -> &[u8] {
        &self.joined
    }

    /// Takes the buffer of [`Rows::joined`].
    pub fn into_joined(self) -> Vec<u8> {
        self.joined
    }

    /// Each row's JSON text.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().enumerate().map(|(n, end)| {
            let start = if n == 0 { 0 } else { self.ends[n - 1] + 1 };
            &self.joined[start..*end]
        })
    }

    /// The bytes of the rows, without commas.
    pub fn row_bytes(&self) -> usize {
        self.joined.len() - self.ends.len().saturating_sub(1)
    }
}

/// The result of offering a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    /// It is on the page, or OFFSET skipped it, or there was no row.
    Accepted,
    /// The page is full or the query complete.
    Refused,
}

/// The result of writing a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// There is no row.
    Nothing,
    /// A row that is identified by its position in an order.
    Row,
    /// A row that is identified by its hash.
    Named(u64),
}

/// The rows that earlier pages returned or skipped.
#[derive(Debug, Default)]
pub(super) struct EarlierPages {
    /// Rows that OFFSET still has to skip.
    pub skip: u64,
    /// Rows already returned, if the scan started again and they are identified only by count.
    pub drop: u64,
    /// Rows returned so far.
    pub returned: u64,
    /// Rows that OFFSET has skipped so far.
    pub skipped: u64,
    /// Those of them that are identified by a hash.
    pub emitted: EmittedRows,
}

#[derive(Debug)]
pub(super) struct Output {
    rows: Rows,
    page: PageLimit,
    /// Rows that OFFSET still has to skip.
    skip: u64,
    /// Rows that earlier pages returned, if the scan started again.
    drop: u64,
    /// Rows that may still be returned, on any page.
    take: Option<u64>,
    returned: u64,
    skipped: u64,
    emitted: EmittedRows,
    full: bool,
}

impl Output {
    pub fn new(page: PageLimit, take: Option<u64>, before: EarlierPages) -> Output {
        let EarlierPages {
            skip,
            drop,
            returned,
            skipped,
            emitted,
        } = before;
        Output {
            rows: Rows::default(),
            page,
            skip,
            drop,
            take,
            returned,
            skipped,
            emitted,
            full: false,
        }
    }

    /// Number of ordered rows needed to fill the page and to know whether more follow; `None`: all.
    pub fn rows_wanted(&self) -> Option<usize> {
        let page = (self.page.rows as u64).min(self.take.unwrap_or(u64::MAX));
        usize::try_from(self.skip.checked_add(self.drop)?.checked_add(page)?.checked_add(1)?).ok()
    }

    /// Number of rows that OFFSET still has to skip.
    pub fn skip(&self) -> u64 {
        self.skip
    }

    /// Skips a row that OFFSET has to skip.
    pub fn skip_row(&mut self) {
        self.skip = self.skip.saturating_sub(1);
        self.skipped += 1;
    }

    /// No earlier page returned or skipped a row.
    pub fn is_fresh(&self) -> bool {
        self.returned == 0 && self.skipped == 0
    }

    /// Maximum number of rows of the page.
    pub fn page_rows(&self) -> usize {
        self.page.rows
    }

    /// No row can be returned any more, on any page.
    pub fn is_done(&self) -> bool {
        self.take == Some(0)
    }

    /// A row was refused because the page is full.
    pub fn is_full(&self) -> bool {
        self.full
    }

    pub fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    pub fn row_bytes(&self) -> u64 {
        self.rows.row_bytes() as u64
    }

    pub fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    pub fn returned(&self) -> u64 {
        self.returned
    }

    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The hashes of the rows that were returned or skipped.
    pub fn emitted(&self) -> &EmittedRows {
        &self.emitted
    }

    pub fn into_rows(self) -> Rows {
        self.rows
    }

    /// Lets `write` append a row, and keeps it if it counts and fits. A row that was returned before is left out.
    pub fn offer(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<Written>) -> Result<Offer> {
        if self.is_done() {
            return Ok(Offer::Refused);
        }
        let before = self.rows.joined.len();
        if before > 0 {
            self.rows.joined.push(b',');
        }
        let written = write(&mut self.rows.joined)?;
        let outcome = self.classify(written);
        match outcome {
            RowOutcome::Kept => {
                self.rows.ends.push(self.rows.joined.len());
                self.returned += 1;
                self.take = self.take.map(|take| take - 1);
            }
            RowOutcome::Skipped | RowOutcome::Absent | RowOutcome::Refused => self.rows.joined.truncate(before),
        }
        if let (Written::Named(hash), RowOutcome::Kept | RowOutcome::Skipped) = (written, outcome) {
            self.emitted.note(hash);
        }
        Ok(if outcome == RowOutcome::Refused {
            Offer::Refused
        } else {
            Offer::Accepted
        })
    }

    fn classify(&mut self, written: Written) -> RowOutcome {
        let is_absent = match written {
            Written::Nothing => true,
            Written::Row => false,
            Written::Named(hash) => self.emitted.contains(hash),
        };
        if is_absent {
            return RowOutcome::Absent;
        }
        if self.skip > 0 {
            self.skip -= 1;
            self.skipped += 1;
            return RowOutcome::Skipped;
        }
        if self.drop > 0 {
            self.drop -= 1;
            return RowOutcome::Skipped;
        }
        let rows = self.rows.len();
        if rows >= self.page.rows || (rows > 0 && self.rows.joined.len() > self.page.bytes) {
            self.full = true;
            return RowOutcome::Refused;
        }
        RowOutcome::Kept
    }
}

/// What happens to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowOutcome {
    Kept,
    /// OFFSET skipped it, or an earlier page returned it, identified by count.
    Skipped,
    /// There is no row, or an earlier page returned it, identified by its hash.
    Absent,
    Refused,
}
