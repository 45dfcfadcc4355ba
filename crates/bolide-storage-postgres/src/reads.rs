//! Reads: keys and ranges of a partition with its head, all of one snapshot.
//!
//! One statement is one snapshot. Keys alone, and one range alone, are a single statement; everything else is a transaction that keeps its snapshot, and so is a
//! range that is longer than one statement asks for.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use bolide_storage::{EngineError, Page, PartitionId, ReadRequest, ReadResponse, Scan};
use bytes::Bytes;
use tokio_postgres::{Error, Row};

use crate::connection::Connection;
use crate::error::{is_lock_timeout, unavailable, was_closed};
use crate::rows::{self, CommitRecord};
use crate::statements::Query;

/// Rows of one statement. The server sums up their bytes, so it looks at all of them.
const ROWS: usize = 2_048;
/// Keeps its snapshot until it ends.
pub(crate) const BEGIN_SNAPSHOT: &str = "begin isolation level repeatable read read only";

/// What a read found.
pub(crate) struct Found {
    /// The newest commit.
    pub record: CommitRecord,
    pub gets: Vec<Option<Bytes>>,
    pages: Vec<Page>,
}

impl Found {
    /// What a request asks for, out of what was read for it.
    fn of(
        partition: PartitionId,
        request: &ReadRequest,
        (record, values): Parts,
        pages: Vec<Page>,
    ) -> Result<Found, ReadError> {
        let mut pages = pages.into_iter();
        let Ok((gets, pages)) = request.answer(
            |key| Ok::<_, Infallible>(values.get(&rows::key(partition, key)).cloned()),
            |_| Ok(pages.next().unwrap_or_default()),
        );
        Ok(Found {
            record: record.ok_or(ReadError::NoPartition)?,
            gets,
            pages,
        })
    }

    /// What is in the rows of a request of keys.
    pub(crate) fn of_rows(partition: PartitionId, request: &ReadRequest, found: &[Row]) -> Result<Found, ReadError> {
        Found::of(partition, request, parts(found)?, Vec::new())
    }

    pub(crate) fn into_response(self) -> ReadResponse {
        ReadResponse {
            head: self.record.head,
            gets: self.gets,
            pages: self.pages,
        }
    }
}

/// Why there is no answer.
pub(crate) enum ReadError {
    Statement(Error),
    NoPartition,
    /// A row is not what was written.
    Corrupt(&'static str),
}

impl From<Error> for ReadError {
    fn from(error: Error) -> ReadError {
        ReadError::Statement(error)
    }
}

impl ReadError {
    /// Whether the connection had ended, which nobody had noticed: another one may do.
    pub(crate) fn was_closed(&self) -> bool {
        matches!(self, ReadError::Statement(error) if was_closed(error))
    }

    /// Whether others did not let go of a lock in time.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        matches!(self, ReadError::Statement(error) if is_lock_timeout(error))
    }

    pub(crate) fn of(self, partition: PartitionId) -> EngineError {
        match self {
            ReadError::Statement(error) => unavailable(&error),
            ReadError::NoPartition => EngineError::NoPartition(partition),
            ReadError::Corrupt(what) => EngineError::Corrupt(format!("{what}. partition={partition}")),
        }
    }
}

/// Reads at a snapshot of its own.
pub(crate) async fn read(
    connection: &mut Connection,
    partition: PartitionId,
    request: &ReadRequest,
) -> Result<Found, ReadError> {
    let is_one_statement = match (request.gets.is_empty(), request.scans.as_slice()) {
        (_, []) => true,
        (true, [scan]) => scan.max_rows < ROWS && !scan.is_empty(),
        _ => false,
    };
    if is_one_statement {
        return read_in_snapshot(connection, partition, request).await;
    }
    connection.begin();
    connection.client().batch_execute(BEGIN_SNAPSHOT).await?;
    let found = read_in_snapshot(connection, partition, request).await;
    connection.client().batch_execute("commit").await?;
    connection.end();
    found
}

/// Reads in a transaction that keeps its snapshot, or what is a single statement.
pub(crate) async fn read_in_snapshot(
    connection: &mut Connection,
    partition: PartitionId,
    request: &ReadRequest,
) -> Result<Found, ReadError> {
    let mut record = None;
    let mut values = HashMap::new();
    if !request.gets.is_empty() || request.scans.iter().all(Scan::is_empty) {
        let (newest, found) = get(connection, partition, request).await?;
        record = newest;
        values = found;
    }
    let mut pages = Vec::with_capacity(request.scans.len());
    for wanted in &request.scans {
        let mut page = Page::default();
        if !wanted.is_empty() {
            let (newest, scanned) = scan(connection, partition, wanted).await?;
            record = record.or(newest);
            page = scanned;
        }
        pages.push(page);
    }
    Found::of(partition, request, (record, values), pages)
}

/// The values of the keys, as far as the limit on bytes goes, and the newest commit.
async fn get(connection: &mut Connection, partition: PartitionId, request: &ReadRequest) -> Result<Parts, ReadError> {
    let mut keys: Vec<Vec<u8>> = request.gets.iter().map(|key| rows::key(partition, key)).collect();
    // Each once: several may have asked for it.
    let mut seen = HashSet::with_capacity(keys.len());
    keys.retain(|key| seen.insert(key.clone()));
    let (from, to) = rows::commits(partition);
    // There is at least one row, whatever the limit.
    let is_limited = keys.len() > 1 && request.max_bytes != usize::MAX;
    let home = partition.home();
    let found = match keys.as_slice() {
        [] => connection.rows(Query::Head, home, &[&from, &to]).await?,
        _ if is_limited => {
            let limit = sql_number(request.max_bytes.max(1));
            connection.rows(Query::Get, home, &[&keys, &limit, &from, &to]).await?
        }
        _ => connection.rows(Query::GetAll, home, &[&keys, &from, &to]).await?,
    };
    parts(&found)
}

/// The newest commit, and the values of keys.
type Parts = (Option<CommitRecord>, HashMap<Vec<u8>, Bytes>);

/// What is in an answer.
fn parts(found: &[Row]) -> Result<Parts, ReadError> {
    let mut record = None;
    let mut values = HashMap::with_capacity(found.len());
    for row in found {
        match Part::of(row)? {
            Part::Record(newest) => record = Some(newest),
            Part::Row(key, value) => {
                values.insert(key.to_vec(), Bytes::copy_from_slice(value));
            }
        }
    }
    Ok((record, values))
}

/// The page of a range that is not empty, and the newest commit.
async fn scan(
    connection: &mut Connection,
    partition: PartitionId,
    scan: &Scan,
) -> Result<(Option<CommitRecord>, Page), ReadError> {
    let query = match (scan.keys_only, scan.reverse) {
        (false, false) => Query::Scan,
        (false, true) => Query::ScanDown,
        (true, false) => Query::ScanKeys,
        (true, true) => Query::ScanKeysDown,
    };
    let (mut from, mut to) = rows::scanned(partition, scan);
    let (commits_from, commits_to) = rows::commits(partition);
    let mut record = None;
    let mut read: Vec<(Bytes, Bytes)> = Vec::new();
    let mut bytes = 0;
    loop {
        let limit = scan
            .max_rows
            .max(1)
            .saturating_add(1)
            .saturating_sub(read.len())
            .min(ROWS);
        let limit_bytes = sql_number(scan.max_bytes.saturating_sub(bytes).max(1));
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
            [&from, &to, &sql_number(limit), &limit_bytes, &commits_from, &commits_to];
        let found = connection.rows(query, partition.home(), &parameters).await?;
        let mut next: Vec<(Bytes, Bytes)> = Vec::with_capacity(found.len());
        for row in &found {
            match Part::of(row)? {
                Part::Record(newest) => record = record.or(Some(newest)),
                Part::Row(key, value) => next.push((rows::stripped(key), Bytes::copy_from_slice(value))),
            }
        }
        next.sort_unstable_by(|a, b| if scan.reverse { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) });
        let is_cut = next.len() == limit;
        bytes += next.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        read.append(&mut next);
        let is_full = read.len() > scan.max_rows.max(1) || bytes >= scan.max_bytes;
        if !is_cut || is_full {
            break;
        }
        // Further rows begin behind the last one.
        let (first, end) = rows::scanned(partition, scan);
        let last = &read.last().ok_or(ReadError::Corrupt("a full page has no row"))?.0;
        let at = [&first[..rows::PREFIX_BYTES], last].concat();
        (from, to) = if scan.reverse {
            (first, at)
        } else {
            ([&at[..], &[0]].concat(), end)
        };
    }
    let Ok(page) = Page::fill(scan, read.into_iter().map(Ok::<_, Infallible>));
    Ok((record, page))
}

/// A row of an answer.
enum Part<'a> {
    Record(CommitRecord),
    Row(&'a [u8], &'a [u8]),
}

impl Part<'_> {
    fn of(row: &Row) -> Result<Part<'_>, ReadError> {
        let (kind, key, value): (i32, &[u8], &[u8]) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        match kind {
            0 => Ok(Part::Record(record(key, value)?)),
            _ => Ok(Part::Row(key, value)),
        }
    }
}

fn record(key: &[u8], value: &[u8]) -> Result<CommitRecord, ReadError> {
    CommitRecord::read(key, value).ok_or(ReadError::Corrupt("a commit record is damaged"))
}

/// The newest commit of a partition.
pub(crate) async fn newest(
    connection: &mut Connection,
    partition: PartitionId,
) -> Result<Option<CommitRecord>, ReadError> {
    let (from, to) = rows::commits(partition);
    let found = connection.rows(Query::Head, partition.home(), &[&from, &to]).await?;
    records(&found).map(|records| records.first().copied())
}

/// The commit records in an answer that has nothing else.
pub(crate) fn records(found: &[Row]) -> Result<Vec<CommitRecord>, ReadError> {
    found
        .iter()
        .map(|row| record(row.try_get(1)?, row.try_get(2)?))
        .collect()
}

/// A number as the server counts; the largest stands for no limit.
pub(crate) fn sql_number(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
