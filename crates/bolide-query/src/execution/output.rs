//! The page: OFFSET, LIMIT, and how much fits.

use super::emitted_rows::EmittedRows;
use crate::error::Result;

/// How much a page may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// Most rows.
    pub rows: usize,
    /// Most bytes of rows; a single larger row still goes out alone.
    pub bytes: usize,
}

impl PageLimit {
    /// No limit: everything comes out on one page.
    pub const NONE: PageLimit = PageLimit {
        rows: usize::MAX,
        bytes: usize::MAX,
    };
}

/// Result rows as JSON texts, kept in one buffer with commas between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    joined: Vec<u8>,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl Rows {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
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

    /// The bytes of the rows, commas left out.
    pub fn row_bytes(&self) -> usize {
        self.joined.len() - self.ends.len().saturating_sub(1)
    }
}

/// What became of an offered row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    /// It is on the page, or OFFSET swallowed it, or there was none.
    Settled,
    /// The page is full or the query complete.
    Refused,
}

/// What a write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// There is no row.
    Nothing,
    /// A row that a place in some order tells from others.
    Row,
    /// A row that its hash tells from others.
    Named(u64),
}

/// What the pages before gave out.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// Rows OFFSET still swallows.
    pub skip: u64,
    /// Rows that were given out already, when the scan began anew and they are not told apart otherwise.
    pub drop: u64,
    /// Rows given out so far.
    pub returned: u64,
    /// Rows OFFSET has swallowed so far.
    pub skipped: u64,
    /// Those of them that have names.
    pub emitted: EmittedRows,
}

#[derive(Debug)]
pub(super) struct Output {
    rows: Rows,
    page: PageLimit,
    /// Rows OFFSET still swallows.
    skip: u64,
    /// Rows earlier pages gave out already, when the scan began anew.
    drop: u64,
    /// Rows that may still come out, on any page.
    take: Option<u64>,
    returned: u64,
    skipped: u64,
    emitted: EmittedRows,
    full: bool,
}

impl Output {
    pub fn new(page: PageLimit, take: Option<u64>, before: Before) -> Output {
        let Before {
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

    /// How many rows in order are needed to fill the page and to know whether there are more; `None`: all.
    pub fn rows_wanted(&self) -> Option<usize> {
        let page = (self.page.rows as u64).min(self.take.unwrap_or(u64::MAX));
        usize::try_from(self.skip.checked_add(self.drop)?.checked_add(page)?.checked_add(1)?).ok()
    }

    /// No page before this one gave or swallowed anything.
    pub fn is_fresh(&self) -> bool {
        self.returned == 0 && self.skipped == 0
    }

    /// Most rows of the page.
    pub fn page_rows(&self) -> usize {
        self.page.rows
    }

    /// No row can come out any more, on no page.
    pub fn is_done(&self) -> bool {
        self.take == Some(0)
    }

    /// A row was refused for lack of room.
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

    /// The named rows that were given out or swallowed.
    pub fn emitted(&self) -> &EmittedRows {
        &self.emitted
    }

    pub fn into_rows(self) -> Rows {
        self.rows
    }

    /// Lets `write` append a row and keeps it if it counts and fits. A row that was given out before is left out.
    pub fn offer(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<Written>) -> Result<Offer> {
        if self.is_done() {
            return Ok(Offer::Refused);
        }
        let before = self.rows.joined.len();
        if before > 0 {
            self.rows.joined.push(b',');
        }
        let written = write(&mut self.rows.joined)?;
        let fate = self.judge(written);
        match fate {
            Fate::Kept => {
                self.rows.ends.push(self.rows.joined.len());
                self.returned += 1;
                self.take = self.take.map(|take| take - 1);
            }
            Fate::Swallowed | Fate::Absent | Fate::Refused => self.rows.joined.truncate(before),
        }
        if let (Written::Named(hash), Fate::Kept | Fate::Swallowed) = (written, fate) {
            self.emitted.note(hash);
        }
        Ok(if fate == Fate::Refused {
            Offer::Refused
        } else {
            Offer::Settled
        })
    }

    fn judge(&mut self, written: Written) -> Fate {
        let is_absent = match written {
            Written::Nothing => true,
            Written::Row => false,
            Written::Named(hash) => self.emitted.contains(hash),
        };
        if is_absent {
            return Fate::Absent;
        }
        if self.skip > 0 {
            self.skip -= 1;
            self.skipped += 1;
            return Fate::Swallowed;
        }
        if self.drop > 0 {
            self.drop -= 1;
            return Fate::Swallowed;
        }
        let rows = self.rows.len();
        if rows >= self.page.rows || (rows > 0 && self.rows.joined.len() > self.page.bytes) {
            self.full = true;
            return Fate::Refused;
        }
        Fate::Kept
    }
}

/// What becomes of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    /// OFFSET took it, or an earlier page had it by count.
    Swallowed,
    /// There is none, or an earlier page had it by name.
    Absent,
    Refused,
}
