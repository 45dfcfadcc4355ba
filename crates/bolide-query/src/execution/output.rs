//! The page: OFFSET, LIMIT, and how much fits.

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
    full: bool,
}

impl Output {
    pub fn new(page: PageLimit, skip: u64, drop: u64, take: Option<u64>, returned: u64, skipped: u64) -> Output {
        Output {
            rows: Rows::default(),
            page,
            skip,
            drop,
            take,
            returned,
            skipped,
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

    pub fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    pub fn returned(&self) -> u64 {
        self.returned
    }

    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    pub fn into_rows(self) -> Rows {
        self.rows
    }

    /// Lets `write` append a row and keeps it if it counts and fits. `write` tells whether there is a row.
    pub fn offer(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<bool>) -> Result<Offer> {
        if self.is_done() {
            return Ok(Offer::Refused);
        }
        let before = self.rows.joined.len();
        if before > 0 {
            self.rows.joined.push(b',');
        }
        let written = write(&mut self.rows.joined)?;
        let offer = if written { self.judge() } else { Some(Offer::Settled) };
        match offer {
            None => {
                self.rows.ends.push(self.rows.joined.len());
                self.returned += 1;
                self.take = self.take.map(|take| take - 1);
                Ok(Offer::Settled)
            }
            Some(offer) => {
                self.rows.joined.truncate(before);
                Ok(offer)
            }
        }
    }

    /// What to do with a row that was written, unless it stays.
    fn judge(&mut self) -> Option<Offer> {
        if self.skip > 0 {
            self.skip -= 1;
            self.skipped += 1;
            return Some(Offer::Settled);
        }
        if self.drop > 0 {
            self.drop -= 1;
            return Some(Offer::Settled);
        }
        let rows = self.rows.len();
        if rows >= self.page.rows || (rows > 0 && self.rows.joined.len() > self.page.bytes) {
            self.full = true;
            return Some(Offer::Refused);
        }
        None
    }
}
