//! Checks the journals before the store opens them.
//!
//! The store replays a journal up to the first thing it cannot read, cuts the rest off, and continues. This is right for one write that a crash cut
//! off, and wrong for everything else: a flipped bit in the middle would lose all later commits. So what the store would cut off is classified here
//! first, while it still exists.
//!
//! A journal is a sequence of batches, filled up with zeros. Integers little-endian:
//!
//! ```text
//! batch   1 | items (4) | number (8)   then its items, then   3 | checksum of the items (8) | "FJL" 3
//! item    2 | kind | compression | key space (8) | key bytes (2) | value bytes (4) | stored bytes (4) | key | stored value
//!         4 | key space (8)                                                            a key space was cleared
//! ```
//!
//! Source: fjall 3.1.13, `journal/entry.rs` and `journal/writer.rs`; the version is pinned.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

use bytes::Buf;
use xxhash_rust::xxh3::Xxh3;

use crate::OpenError;
use crate::store_dir::io_error;

const TRAILER: [u8; 4] = *b"FJL\x03";
const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;

/// What follows the last complete batch of a journal.
#[derive(Debug, PartialEq, Eq)]
enum Tail {
    /// Nothing, or zeros.
    Clean,
    /// The beginning of a batch, as left by a crash.
    Torn,
    /// Complete batches follow something unreadable.
    Damaged,
}

/// Refuses journals of the store at `path` in which the store would cut off more than an incomplete last write.
pub(crate) fn check(path: &Path) -> Result<(), OpenError> {
    let journals = journals(path).map_err(io_error("listing the journals", path))?;
    let newest = journals.last();
    // There are a few of 64 MiB, and the server waits for all of them.
    let examined: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = journals
            .iter()
            .map(|journal| scope.spawn(|| examine(journal)))
            .collect();
        let joined = started.into_iter().map(|thread| thread.join());
        joined
            .map(|examined| examined.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    for (journal, examined) in journals.iter().zip(examined) {
        let (at, tail) = examined.map_err(io_error("reading a journal", journal))?;
        let is_newest = Some(journal) == newest;
        // A journal is synced before the next one begins: only the newest can be incomplete.
        if tail == Tail::Damaged || (tail == Tail::Torn && !is_newest) {
            let name = journal.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Err(OpenError::Corrupt(format!(
                "a journal is damaged, and what follows would be lost. file={name} offset={at} \
                 (restore a backup, or open with accept_data_loss)"
            )));
        }
    }
    Ok(())
}

/// The path of a journal.
pub(crate) fn path(store: &Path, number: u64) -> PathBuf {
    store.join(format!("{number}.jnl"))
}

/// The bytes of a journal up to the end of its last complete batch; `None` if they are more than `limit`.
pub(crate) fn written_bytes(path: &Path, limit: u64) -> io::Result<Option<u64>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(1 << 16, &file);
    let mut whole = 0;
    while let Some(bytes) = read_batch(&mut reader, length - whole)? {
        whole += bytes;
        if whole > limit {
            return Ok(None);
        }
    }
    Ok(Some(whole))
}

/// Opens the journal that is written to, for changing its length.
pub(crate) fn open_newest(path: &Path) -> io::Result<File> {
    let newest = journals(path)?.pop().ok_or(io::ErrorKind::NotFound)?;
    File::options().write(true).open(newest)
}

/// The number of the journal that is written to.
pub(crate) fn newest_number(path: &Path) -> Option<u64> {
    let newest = journals(path).ok()?.pop()?;
    newest.file_stem()?.to_str()?.parse().ok()
}

/// The journals of a store, the oldest first. Empty if there is no store yet.
fn journals(path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut journals = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_journal = path.extension().is_some_and(|ext| ext == "jnl");
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        journals.extend(number.filter(|_| is_journal).map(|number| (number, path)));
    }
    journals.sort();
    Ok(journals.into_iter().map(|(_, path)| path).collect())
}

/// The offset where the last complete batch of a journal ends, and what follows.
fn examine(path: &Path) -> io::Result<(u64, Tail)> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(1 << 16, &file);
    let mut whole = 0;
    while let Some(bytes) = read_batch(&mut reader, len - whole)? {
        whole += bytes;
    }
    file.seek(SeekFrom::Start(whole))?;
    Ok((whole, classify_tail(&mut file)?))
}

/// Reads a batch of at most `limit` bytes. Returns its length, or `None` if there is no complete batch.
fn read_batch(reader: &mut impl BufRead, limit: u64) -> io::Result<Option<u64>> {
    match try_read_batch(reader, limit) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        read => read,
    }
}

fn try_read_batch(reader: &mut impl BufRead, limit: u64) -> io::Result<Option<u64>> {
    let start: [u8; 13] = read_array(reader)?;
    if start[0] != START {
        return Ok(None);
    }
    let items = (&start[1..5]).get_u32_le();
    let mut bytes = start.len() as u64;
    let mut sum = Xxh3::new();
    for _ in 0..items {
        match read_item(reader, &mut sum, limit.saturating_sub(bytes))? {
            Some(item_bytes) => bytes += item_bytes,
            None => return Ok(None),
        }
    }
    let end: [u8; 13] = read_array(reader)?;
    let is_whole = end[0] == END && (&end[1..9]).get_u64_le() == sum.digest() && end[9..] == TRAILER;
    Ok(is_whole.then_some(bytes + end.len() as u64))
}

/// Reads an item and adds it to the checksum. Returns its length, or `None` if it is invalid or exceeds `limit`.
fn read_item(reader: &mut impl BufRead, sum: &mut Xxh3, limit: u64) -> io::Result<Option<u64>> {
    let [tag] = read_array(reader)?;
    sum.update(&[tag]);
    match tag {
        ITEM => {
            let head: [u8; 20] = read_array(reader)?;
            sum.update(&head);
            let body = u64::from((&head[10..12]).get_u16_le()) + u64::from((&head[16..20]).get_u32_le());
            if body > limit {
                return Ok(None);
            }
            feed(reader, sum, body)?;
            Ok(Some(1 + head.len() as u64 + body))
        }
        CLEAR => {
            let space: [u8; 8] = read_array(reader)?;
            sum.update(&space);
            Ok(Some(1 + space.len() as u64))
        }
        _ => Ok(None),
    }
}

/// Reads `bytes` bytes and adds them to the checksum.
fn feed(reader: &mut impl BufRead, sum: &mut Xxh3, mut bytes: u64) -> io::Result<()> {
    while bytes > 0 {
        let buffered = match reader.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            buffered => buffered?,
        };
        if buffered.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let part = buffered.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        sum.update(&buffered[..part]);
        reader.consume(part);
        bytes -= part as u64;
    }
    Ok(())
}

fn read_array<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut array = [0; N];
    reader.read_exact(&mut array)?;
    Ok(array)
}

/// Classifies the rest of a journal, which does not begin with a complete batch.
fn classify_tail(rest: &mut impl Read) -> io::Result<Tail> {
    let bytes = read_to_last_byte(rest)?;
    if bytes.is_empty() {
        return Ok(Tail::Clean);
    }
    let begins_batch = |at: &usize| {
        // Most positions fail at the first byte, and nearly all others at the first item.
        let rest = &bytes[*at..];
        rest[0] == START && rest.get(13).is_some_and(|tag| [ITEM, CLEAR].contains(tag))
    };
    for at in (1..bytes.len()).filter(begins_batch) {
        let mut rest = &bytes[at..];
        let limit = rest.len() as u64;
        if read_batch(&mut rest, limit)?.is_some() {
            return Ok(Tail::Damaged);
        }
    }
    Ok(Tail::Torn)
}

/// Reads everything but the zeros at the end.
fn read_to_last_byte(rest: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut zeros = 0;
    let blank = vec![0; 1 << 16];
    let mut buffer = blank.clone();
    loop {
        let read = rest.read(&mut buffer)?;
        if read == 0 {
            return Ok(bytes);
        }
        // Journals are padded with tens of megabytes of zeros; whole buffers of zeros are counted without looking at each byte.
        if buffer[..read] == blank[..read] {
            zeros += read;
            continue;
        }
        bytes.resize(bytes.len() + zeros, 0);
        let kept = buffer[..read]
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        bytes.extend_from_slice(&buffer[..kept]);
        zeros = read - kept;
    }
}

#[cfg(test)]
mod tests;
