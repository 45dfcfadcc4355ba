//! Write conflicts that a transaction can know when it writes, so that it need not go on until its commit: with what other open transactions have
//! written, and with what was committed since it began. The commit decides again.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_model::Result;
use bolide_model::ttl::Settings;
use bolide_storage::{Key, ReadRequest, Space};
use bytes::Bytes;

use super::write::JournalEntry;
use super::{DocumentDraft, StoredDocument};
use crate::format::keys;
use crate::format::record::Content;
use crate::partition::{AsOf, Claims, Partition};

/// What one transaction has claimed; given back when it is dropped.
pub(super) struct Claimed {
    owner: u64,
    keys: Vec<(Arc<Claims>, Key)>,
}

impl Default for Claimed {
    /// Nothing, for a new transaction.
    fn default() -> Claimed {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Claimed {
            owner: LAST.fetch_add(1, Ordering::Relaxed),
            keys: Vec::new(),
        }
    }
}

impl Claimed {
    /// Claims keys of a partition. Returns false if another transaction has one of them; then nothing new is claimed.
    pub fn claim(&mut self, claims: &Arc<Claims>, keys: &[Key]) -> bool {
        let Some(new) = claims.claim(keys, self.owner) else {
            return false;
        };
        self.keys.extend(new.into_iter().map(|key| (claims.clone(), key)));
        true
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        for (claims, key) in &self.keys {
            claims.give_back(key);
        }
    }
}

/// What one decision of a transaction is about to write.
#[derive(Default)]
pub(super) struct Intent {
    /// Documents of the snapshot that it changes for the first time.
    bases: Vec<StoredDocument>,
    /// The entries that new versions have in unique indexes, that on `_id` included.
    entries: Vec<Key>,
    /// The documents of the snapshot that the transaction has changed, whose entries it may take.
    own: HashSet<Bytes>,
}

impl Intent {
    /// `is_known`: whether the transaction has inserted or changed the document with this number before.
    pub fn of(journal: &[JournalEntry], is_known: impl Fn(u64) -> bool, own: HashSet<Bytes>) -> Intent {
        let mut intent = Intent {
            own,
            ..Intent::default()
        };
        let mut inserted = HashSet::new();
        for entry in journal {
            match entry {
                JournalEntry::Inserted { number, draft } => {
                    inserted.insert(*number);
                    intent.entries.push(keys::id_index(&[], &draft.id.0));
                    intent.add_unique(draft);
                }
                JournalEntry::Replaced { base, draft } => {
                    intent.add_base(base, &inserted, &is_known);
                    intent.add_unique(draft);
                }
                JournalEntry::Deleted { base } => intent.add_base(base, &inserted, &is_known),
            }
        }
        intent
    }

    fn add_base(&mut self, base: &StoredDocument, inserted: &HashSet<u64>, is_known: &impl Fn(u64) -> bool) {
        let number = base.number();
        if !inserted.contains(&number) && !is_known(number) && self.own.insert(base.key().clone()) {
            self.bases.push(base.clone());
        }
    }

    fn add_unique(&mut self, draft: &DocumentDraft) {
        let unique = draft.unique.iter();
        self.entries
            .extend(unique.map(|unique| keys::unique_index(&[], Content::Bson, unique)));
    }

    /// Whether nothing is written that others could write, too.
    pub fn is_empty(&self) -> bool {
        self.bases.is_empty() && self.entries.is_empty()
    }

    /// The keys that no other open transaction may write.
    pub fn keys(&self) -> Vec<Key> {
        let bases = self.bases.iter().map(|base| Key::new(Space::Item, base.key().clone()));
        bases.chain(self.entries.iter().cloned()).collect()
    }

    /// Whether nothing of it was committed by others since the snapshot, and no document that it changes has ended, whether purged or not (TTL-292).
    pub async fn is_free(&self, partition: &Partition, settings: &Settings) -> Result<bool> {
        let horizon = settings.horizon(partition.now().await?);
        let request = || ReadRequest::of_keys(self.keys());
        let mut snapshot = partition.snapshot(request, AsOf::Horizon(&horizon)).await?;
        for (at, base) in self.bases.iter().enumerate() {
            let stored = snapshot.record(at, base.key())?;
            if stored.is_none_or(|stored| stored.version() != base.record().version()) {
                return Ok(false);
            }
        }
        let mut holders = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let Some(holder) = snapshot.index_entry(self.bases.len() + at) else {
                continue;
            };
            let key = match (
                entry.bytes.first() == keys::id_index(&[], &[]).bytes.first(),
                holder[..].try_into(),
            ) {
                (true, Ok(number)) => keys::item_in_collection(u64::from_be_bytes(number)).bytes,
                _ => holder.clone(),
            };
            if !self.own.contains(&key) {
                holders.push(key);
            }
        }
        if holders.is_empty() {
            return Ok(true);
        }
        let request = || ReadRequest::of_keys(holders.iter().map(|key| Key::new(Space::Item, key.clone())).collect());
        let mut snapshot = partition.snapshot(request, AsOf::Horizon(&horizon)).await?;
        for (at, key) in holders.iter().enumerate() {
            if snapshot.record(at, key)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
