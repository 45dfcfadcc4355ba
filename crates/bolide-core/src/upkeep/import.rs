//! The loader that keeps `_ts` (TTL-275): only into a fresh container, in the order of `_ts`, and never later than now.
//!
//! Where the container keeps history, a loaded item is a create in it, at the time of loading.

use std::collections::HashMap;
use std::sync::Arc;

use bolide_model::document::Document;
use bolide_model::epk::Epk;
use bolide_model::ttl::{Own, Stamp};
use bolide_model::{Error, Lsn, Result, UnixSeconds};

use crate::account::Account;
use crate::container::{Container, ContainerState};
use crate::etag::Etag;
use crate::history::{self, Change};
use crate::items::{add, number_in_range, unique_digests};
use crate::logical;
use crate::partition::Partition;
use crate::record::{Parts, Record};

/// Items of one commit.
const COMMIT_ITEMS: usize = 500;

/// An item to load.
#[derive(Clone)]
struct Loaded {
    line: usize,
    document: Document,
    last_modified: UnixSeconds,
    epk: Epk,
}

impl Account {
    /// Loads items that keep their `_ts`, one JSON object a line. Returns how many were written.
    ///
    /// # Errors
    /// - `BadRequest`: the container is not fresh (TTL-275), or a line is no item; the message has the line's number. Lines are all
    ///   checked before anything is written.
    /// - `Conflict`, `UniqueKeyConflict`: two lines hold the same id or unique key; nothing is written either.
    pub async fn import(&self, container: &Arc<Container>, ndjson: &[u8]) -> Result<u64> {
        let change = container.lock().await;
        let state = change.state();
        check_fresh(&state)?;
        let mut items = parse(&state, ndjson, self.server_time().seconds())?;
        check_distinct(&state, &items)?;
        items.sort_by_key(|item| item.last_modified);
        let count = items.len() as u64;
        for partition in &state.layout.partitions {
            let mine: Vec<Loaded> = items
                .iter()
                .filter(|item| partition.epk.contains(&item.epk))
                .cloned()
                .collect();
            for chunk in mine.chunks(COMMIT_ITEMS) {
                load(&state, partition, chunk.to_vec()).await?;
            }
            partition.expect_due(i64::MIN);
        }
        Ok(count)
    }
}

/// Empty, never written, settings never changed.
fn check_fresh(state: &ContainerState) -> Result<()> {
    let is_unwritten = state
        .layout
        .partitions
        .iter()
        .all(|partition| partition.lsn() == Lsn(0));
    if is_unwritten && state.history.len() == 1 && state.layout.version == 1 {
        return Ok(());
    }
    Err(Error::bad_request(
        "items that keep their _ts can only be loaded into a fresh container: never written, its settings never changed",
    ))
}

fn parse(state: &ContainerState, ndjson: &[u8], now: UnixSeconds) -> Result<Vec<Loaded>> {
    let lines = ndjson
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty());
    lines.map(|(at, line)| parse_line(state, at + 1, line, now)).collect()
}

fn parse_line(state: &ContainerState, line: usize, text: &[u8], now: UnixSeconds) -> Result<Loaded> {
    let at_line = |error: Error| Error::new(error.kind, format!("line {line}: {}", error.message));
    let last_modified = serde_json::from_slice::<serde_json::Value>(text)
        .ok()
        .and_then(|item| item.get("_ts")?.as_i64())
        .ok_or_else(|| at_line(Error::bad_request("every item needs an integer _ts")))?;
    let document = Document::parse(text).map_err(at_line)?;
    document.id().map_err(at_line)?;
    own_ttl(&document, state).map_err(at_line)?;
    let definition = &state.properties.partition_key;
    let key = document.partition_key(definition);
    definition.check_full(&key).map_err(at_line)?;
    let epk = logical::of(definition, &key);
    Ok(Loaded {
        line,
        document,
        last_modified: UnixSeconds(last_modified).min(now),
        epk,
    })
}

/// An item's own ttl. Stores have held unusable ones where TTL was off (TTL-217), and must come back from what was exported of them.
fn own_ttl(document: &Document, state: &ContainerState) -> Result<Own> {
    match document.own_ttl() {
        Err(_) if !state.properties.policy.is_on() => Ok(Own::Absent),
        own => own,
    }
}

fn check_distinct(state: &ContainerState, items: &[Loaded]) -> Result<()> {
    let mut ids = HashMap::new();
    let mut unique = HashMap::new();
    for item in items {
        let id = item.document.id()?.to_owned();
        if let Some(other) = ids.insert((item.epk.clone(), id), item.line) {
            return Err(Error::conflict(format!(
                "lines {other} and {} hold the same id",
                item.line
            )));
        }
        for (at, digest) in unique_digests(&item.document, state).into_iter().enumerate() {
            if let Some(other) = unique.insert((item.epk.clone(), at, digest), item.line) {
                return Err(Error::conflict(format!(
                    "lines {other} and {} hold the same unique key",
                    item.line
                )));
            }
        }
    }
    Ok(())
}

async fn load(state: &Arc<ContainerState>, partition: &Arc<Partition>, items: Vec<Loaded>) -> Result<()> {
    let (state, owner) = (state.clone(), partition.clone());
    let (range, id) = (partition.range, partition.id.0);
    partition
        .write_batch(move |round| {
            for item in &items {
                let text = item.document.to_stored_text()?;
                let version = round.next_version();
                round.state.next_number += 1;
                let own = own_ttl(&item.document, &state)?;
                let record = Record::new(&Parts {
                    version,
                    last_modified: item.last_modified,
                    stamp: Stamp::new(item.last_modified, own),
                    etag: Etag::of_write(id, version.lsn, version.seq),
                    number: number_in_range(range, round.state.next_number),
                    id: item.document.id()?,
                    unique: &unique_digests(&item.document, &state),
                    document: text.as_bytes(),
                });
                let key = add(round, &item.epk, &record);
                history::log(round, &owner, &state, version, Change::written(&key, &record, None));
            }
            Ok(())
        })
        .await
}
