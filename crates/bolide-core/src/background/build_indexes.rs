//! Builds indexes of collections: gives the documents that existed before an index its keys, deadlines and entries.
//!
//! From the change of the definition on, writers maintain the index. The builder goes through the documents in steps, as background work of the
//! partition's worker, and rewrites the records whose index fields differ from what the definition says. A rewritten record stays the same version: it
//! keeps its LSN, `_ts` and etag. Keys of dropped indexes go at the same time.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::epk::Epk;
use bolide_storage::{Key, Scan, Space};
use bytes::Bytes;

use crate::container::{CollectionDefinition, Container, ContainerState};
use crate::documents::{DraftOptions, StoredDocument, index_fields};
use crate::format::entries;
use crate::format::keys::{self, UniqueKey};
use crate::format::record::{Content, Record};
use crate::index::PropertyIndex;
use crate::items::{add, remove, remove_ghost};
use crate::partition::visibility::{Slot, StoredVersion};
use crate::partition::write_batch::{Decision, WriteBatch};
use crate::runtime::Runtime;

/// Maximum number of documents of one step, and approximately of bytes, so that writers in the same write batch do not wait long.
const STEP_ROWS: usize = 200;
const STEP_BYTES: usize = 1024 * 1024;

/// Why an index cannot be built.
#[derive(Debug)]
pub enum BuildFailure {
    /// Two documents have the same key in a unique index.
    Duplicate {
        /// The index, by its id.
        index: u32,
        /// One of the documents.
        document: StoredDocument,
    },
    /// A document has no valid keys.
    Keys(bolide_mql::Error),
}

/// A document's key, its record, and the record that takes its place.
type Rewritten = (Bytes, Record, Record);

/// The result of a step.
enum Step {
    /// The step ended before this key.
    More(Bytes),
    Done,
    Failed(BuildFailure),
}

impl Runtime {
    /// See `Account::build_indexes`.
    pub(crate) async fn build_indexes(
        &self,
        container: &Arc<Container>,
        options: DraftOptions,
    ) -> Result<Result<(), BuildFailure>> {
        let guard = container.enter().await?;
        let unbuilt = guard.state.indexes.list.iter().filter(|index| !index.is_ready);
        let unbuilt: Arc<[PropertyIndex]> = unbuilt.cloned().collect();
        for partition in &guard.state.layout.partitions {
            // Writes that were queued before the indexes changed decide by those of before, also if their requests are gone.
            partition.write(|_| Ok(())).await?;
            partition.write_batch(|_| Ok(())).await?;
        }
        drop(guard);
        let mut from = Bytes::new();
        loop {
            let guard = container.enter().await?;
            // Its ranges one after the other, by their keys: they may be split meanwhile.
            let partition = guard.state.layout.partition_of(&Epk::from_bytes(&from[..]))?.clone();
            let end = partition.epk.max.clone();
            let builder = Builder {
                state: guard.state.clone(),
                options,
                unbuilt: unbuilt.clone(),
                from: from.clone(),
            };
            match partition.background(move |batch| builder.step(batch)).await? {
                Step::More(next) => from = next,
                Step::Done if end < Epk::end() => from = Bytes::copy_from_slice(end.as_bytes()),
                Step::Done => return Ok(Ok(())),
                Step::Failed(failure) => return Ok(Err(failure)),
            }
        }
    }
}

struct Builder {
    state: Arc<ContainerState>,
    options: DraftOptions,
    /// Indexes whose entries documents may lack.
    unbuilt: Arc<[PropertyIndex]>,
    from: Bytes,
}

impl Builder {
    fn step(&self, batch: &mut WriteBatch<'_>) -> Decision<Step> {
        let Some(collection) = self.state.collection.as_deref() else {
            return Ok(Step::Done);
        };
        let scan = Scan {
            space: Space::Item,
            from: self.from.clone(),
            to: None,
            reverse: false,
            max_rows: STEP_ROWS,
            max_bytes: STEP_BYTES,
            keys_only: false,
        };
        let page = batch.scan_raw(&[scan])?.pop().unwrap_or_default();
        let horizon = batch.horizon(&self.state.settings);
        let mut rewritten = Vec::new();
        let mut needed = Vec::new();
        let mut entries = Vec::new();
        for (key, value) in &page.rows {
            let record = Record::decode(value.clone())?;
            entries.extend(entries::property_entries(&self.unbuilt, key, &record));
            // Ghosts hold no keys, and get none.
            if !record.is_live(&horizon) {
                continue;
            }
            match rewrite(&record, collection, self.options) {
                Ok(None) => {}
                Ok(Some(new)) => {
                    let keys = added_keys(&record, &new);
                    needed.extend(keys.map(|unique| unique_entry(keys::epk_of_item(key), &unique)));
                    rewritten.push((key.clone(), record, new));
                }
                Err(error) => return Ok(Step::Failed(BuildFailure::Keys(error))),
            }
        }
        batch.foresee(&needed)?;
        // Everything is read before anything is written.
        let ghosts = match self.displaced(batch, &rewritten)? {
            Ok(ghosts) => ghosts,
            Err(duplicate) => return Ok(Step::Failed(duplicate)),
        };
        // Before documents are rewritten or removed together with their entries.
        for (key, value) in entries {
            batch.put(key, value);
        }
        self.write(batch, &ghosts, &rewritten);
        Ok(match page.rows.last() {
            Some((last, _)) if page.more => Step::More(keys::after(last)),
            _ => Step::Done,
        })
    }

    fn write(&self, batch: &mut WriteBatch<'_>, ghosts: &[StoredVersion], rewritten: &[Rewritten]) {
        for ghost in ghosts {
            let version = batch.next_version();
            remove_ghost(batch, &self.state, version, ghost);
        }
        for (key, record, new) in rewritten {
            remove(batch, &self.state.indexes, &Key::new(Space::Item, key.clone()), record);
            add(
                batch,
                &self.state.indexes,
                &Epk::from_bytes(keys::epk_of_item(key)),
                new,
            );
        }
    }

    /// Returns the ghosts that hold unique keys which rewritten documents get; a failure if a live document holds one.
    fn displaced(
        &self,
        batch: &mut WriteBatch<'_>,
        rewritten: &[Rewritten],
    ) -> Decision<Result<Vec<StoredVersion>, BuildFailure>> {
        let mut ghosts: Vec<StoredVersion> = Vec::new();
        let mut taken: Vec<Key> = Vec::new();
        for (key, record, new) in rewritten {
            for unique in added_keys(record, new) {
                let holder = self.holder(batch, &unique, key)?;
                let entry = unique_entry(keys::epk_of_item(key), &unique);
                if taken.contains(&entry) || matches!(holder, Slot::Live(_)) {
                    return Ok(Err(BuildFailure::Duplicate {
                        index: unique.index,
                        document: StoredDocument::new(key.clone(), record.clone()),
                    }));
                }
                if let Some(ghost) = holder.ghost()
                    && ghosts.iter().all(|known| known.key != ghost.key)
                {
                    ghosts.push(ghost);
                }
                taken.push(entry);
            }
        }
        Ok(Ok(ghosts))
    }

    /// Returns what holds a unique key; the document itself does not count.
    fn holder(&self, batch: &mut WriteBatch<'_>, unique: &UniqueKey, itself: &Bytes) -> Decision<Slot> {
        match batch.entry(&unique_entry(keys::epk_of_item(itself), unique))? {
            Some(holder) if holder != *itself => {
                batch.slot_at_once(Key::new(Space::Item, holder), &self.state.settings)
            }
            _ => Ok(Slot::Free),
        }
    }
}

/// Returns a record with the index fields that the definition says; `None` if it has them already.
fn rewrite(
    record: &Record,
    collection: &CollectionDefinition,
    options: DraftOptions,
) -> Result<Option<Record>, bolide_mql::Error> {
    let document = StoredDocument::new(Bytes::new(), record.clone());
    let (deadlines, unique) = index_fields(document.document(), collection, options.ttl_mode)?;
    if record.deadlines().eq(deadlines.iter().copied()) && record.unique().eq(unique.iter().copied()) {
        return Ok(None);
    }
    Ok(Some(record.with_index_fields(&deadlines, &unique)))
}

fn added_keys<'r>(record: &'r Record, new: &'r Record) -> impl Iterator<Item = UniqueKey> + 'r {
    new.unique()
        .filter(|unique| record.unique().all(|known| known != *unique))
}

fn unique_entry(place: &[u8], unique: &UniqueKey) -> Key {
    keys::unique_index(place, Content::Bson, unique)
}
