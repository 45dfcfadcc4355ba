//! Point reads.

use std::ops::ControlFlow;

use bolide_model::epk::Epk;
use bolide_model::{Lsn, Reason, RequestUnits, Result, UnixMillis, charge};
use bolide_mql::bson::{RawBson, RawBsonRef, RawDocument};
use bolide_mql::value::json;
use bolide_storage::{Head, Key, ReadRequest};
use bytes::Bytes;

use super::prepare::epk_of_key;
use super::{ItemRead, ItemTarget, ReadItem};
use crate::container::{CollectionDefinition, Container, ContainerState, ReadGuard};
use crate::content::DocumentId;
use crate::content::StoredItem;
use crate::format::keys;
use crate::format::record::Record;
use crate::partition::{AsOf, Partition};
use crate::response::{ChargedResult, Cost, Refusal, Response};
use crate::runtime::{RequestContext, Runtime};
use crate::scan::Slice;

impl Runtime {
    /// See `Account::read_item`.
    pub(crate) async fn read_item(
        &self,
        ctx: &RequestContext,
        container: &Container,
        read: &ReadItem,
    ) -> ChargedResult<ItemRead> {
        let guard = container.enter().await?;
        let epk = epk_of_key(&guard.state, &read.partition_key)?;
        let partition = guard.state.layout.partition_of(&epk)?;
        self.admit(ctx, partition, &guard)?;
        let as_of = AsOf::Time {
            settings: &guard.state.settings,
            now: ctx.now,
        };
        let (live, head) = match (&guard.state.collection, &read.target) {
            (Some(collection), ItemTarget::Id(id)) => find_document((partition, &epk), collection, id, as_of).await?,
            _ => self.find_known(partition, &epk, &read.target, as_of).await?,
        };
        let charge = charge::point_read(live.as_ref().map_or(0, Record::size));
        let cost = self.charge(ctx, partition, &guard, charge, head.lsn);
        let Some(record) = live else {
            return Err(Refusal {
                error: Reason::ItemMissing.into(),
                cost,
            });
        };
        let etag = record.etag();
        let value = match &read.if_none_match {
            Some(known) if etag.matches(known) => ItemRead::NotModified { etag },
            _ => ItemRead::Found(StoredItem::new(container.rid(), record)),
        };
        Ok(Response { value, cost })
    }

    /// Like [`find`], but does not read the index for items whose number is in the cache.
    async fn find_known(
        &self,
        partition: &Partition,
        epk: &Epk,
        target: &ItemTarget,
        as_of: AsOf<'_>,
    ) -> Result<(Option<Record>, Head)> {
        let ItemTarget::Id(id) = target else {
            return find(partition, epk, target, as_of).await;
        };
        let slot = self.id_cache().slot(partition.id, epk, id);
        if let Some(number) = self.id_cache().get(slot) {
            let (record, head) = get(partition, &keys::item(epk, number), as_of).await?;
            if record.as_ref().is_some_and(|record| record.id_bytes() == id.as_bytes()) {
                return Ok((record, head));
            }
        }
        let (record, head) = find_by_id(partition, epk, id, as_of).await?;
        if let Some(record) = &record {
            self.id_cache().set(slot, record.number());
        }
        Ok((record, head))
    }

    /// Checks that the throughput of a partition allows users to begin an operation now.
    pub(crate) fn admit(&self, ctx: &RequestContext, partition: &Partition, guard: &ReadGuard<'_>) -> Result<()> {
        Admission::of(self, ctx).admit(partition, &guard.state)
    }

    /// Like [`Runtime::admit`], for an operation on several ranges: all of them must allow it.
    pub(crate) fn admit_all(&self, ctx: &RequestContext, slices: &[Slice], guard: &ReadGuard<'_>) -> Result<()> {
        Admission::of(self, ctx).admit_all(slices, &guard.state)
    }

    /// Counts the request units that an operation consumed, and returns its cost.
    pub(crate) fn charge(
        &self,
        ctx: &RequestContext,
        partition: &Partition,
        guard: &ReadGuard<'_>,
        charge: RequestUnits,
        lsn: Lsn,
    ) -> Cost {
        if !guard.state.pacing.count_only_load && !ctx.is_admin {
            partition.with_meter(|meter| meter.consume(ctx.now.seconds(), charge));
        }
        Cost::in_range(charge, partition.range, lsn)
    }
}

/// The check whether users may begin an operation now, without the rest of the runtime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admission {
    is_enforced: bool,
    now: UnixMillis,
}

impl Admission {
    pub fn of(runtime: &Runtime, ctx: &RequestContext) -> Admission {
        Admission {
            is_enforced: runtime.enforces_throughput() && !ctx.is_admin,
            now: ctx.now,
        }
    }

    /// The check for a user's operation at `now`, if throughput is enforced.
    pub fn of_user(now: UnixMillis) -> Admission {
        Admission { is_enforced: true, now }
    }

    pub fn admit(&self, partition: &Partition, state: &ContainerState) -> Result<()> {
        if !self.is_enforced || state.pacing.count_only_load {
            return Ok(());
        }
        let admitted = partition.with_meter(|meter| meter.admit(self.now));
        admitted.map_err(crate::runtime::throttled)
    }

    pub fn admit_all(&self, slices: &[Slice], state: &ContainerState) -> Result<()> {
        slices.iter().try_for_each(|slice| self.admit(&slice.partition, state))
    }
}

impl Runtime {
    /// Counts the request units of an operation on several ranges, in each range those of its part.
    pub(crate) fn charge_touched(&self, ctx: &RequestContext, guard: &ReadGuard<'_>, cost: &Cost) {
        if guard.state.pacing.count_only_load || ctx.is_admin {
            return;
        }
        for position in &cost.touched {
            if let Ok(partition) = guard.state.layout.partition_with_id(position.range) {
                partition.meter().lock().consume(ctx.now.seconds(), position.charge);
            }
        }
    }
}

/// Finds an item. Returns its record, if it exists, and the head at which it was read.
pub(crate) async fn find(
    partition: &Partition,
    epk: &Epk,
    target: &ItemTarget,
    as_of: AsOf<'_>,
) -> Result<(Option<Record>, Head)> {
    match target {
        ItemTarget::Rid(number) => get(partition, &keys::item(epk, *number), as_of).await,
        ItemTarget::Id(id) => find_by_id(partition, epk, id, as_of).await,
    }
}

async fn find_by_id(partition: &Partition, epk: &Epk, id: &str, as_of: AsOf<'_>) -> Result<(Option<Record>, Head)> {
    look_up(partition, IdLookup::new(epk, id.as_bytes()), as_of).await
}

/// Finds a document by the `id` of its JSON item: its `_id` is that string, or has it as its extended JSON. Other ids that are equal to it for the
/// collection, such as those of its collation, do not count.
async fn find_document(
    partition: (&Partition, &Epk),
    collection: &CollectionDefinition,
    id: &str,
    as_of: AsOf<'_>,
) -> Result<(Option<Record>, Head)> {
    let text = find_by_document_id(partition, collection, (RawBsonRef::String(id), id), as_of).await?;
    match json::parse_canonical(id).filter(|other| !matches!(other, RawBson::String(_))) {
        Some(other) if text.0.is_none() => {
            find_by_document_id(partition, collection, (other.as_raw_bson_ref(), id), as_of).await
        }
        _ => Ok(text),
    }
}

async fn find_by_document_id(
    (partition, epk): (&Partition, &Epk),
    collection: &CollectionDefinition,
    (value, id): (RawBsonRef<'_>, &str),
    as_of: AsOf<'_>,
) -> Result<(Option<Record>, Head)> {
    let encoded = DocumentId::of(value, collection.collation.as_deref());
    let (record, head) = look_up(partition, IdLookup::new(epk, &encoded.0), as_of).await?;
    let is_same = |record: &Record| {
        let document = RawDocument::from_bytes(record.document_bytes()).ok();
        let own = document.and_then(|document| document.get("_id").ok().flatten());
        own.is_some_and(|own| json::item_id(own) == id)
    };
    Ok((record.filter(is_same), head))
}

async fn look_up(partition: &Partition, mut lookup: IdLookup<'_>, as_of: AsOf<'_>) -> Result<(Option<Record>, Head)> {
    loop {
        let mut snapshot = partition.snapshot(|| lookup.request(), as_of).await?;
        if let ControlFlow::Break(item) = lookup.take(snapshot.index_entry(0)) {
            let record = item.map(|item| snapshot.record(1, &item.bytes)).transpose()?;
            return Ok((record.flatten(), snapshot.head));
        }
    }
}

/// The way from an id to its item: the index entry is read, then the item that it leads to, with the entry again, since another item may have the
/// id by then.
pub(crate) struct IdLookup<'e> {
    epk: &'e Epk,
    /// The entry, and the item that it led to last.
    keys: Vec<Key>,
}

impl IdLookup<'_> {
    pub fn new<'e>(epk: &'e Epk, id: &[u8]) -> IdLookup<'e> {
        IdLookup {
            epk,
            keys: vec![keys::id_index(epk.as_bytes(), id)],
        }
    }

    /// What to read at one head: the entry, and the item if one is known.
    pub fn request(&self) -> ReadRequest {
        request(&self.keys)
    }

    /// Takes the entry that was read. `Break`: with the key of the item that was read beside it, or none if no item has the id.
    pub fn take(&mut self, entry: Option<&Bytes>) -> ControlFlow<Option<Key>> {
        let number = entry.and_then(|number| decode_number(number));
        let item = number.map(|number| keys::item(self.epk, number));
        if item.is_none() || self.keys.get(1) == item.as_ref() {
            return ControlFlow::Break(item);
        }
        self.keys.truncate(1);
        self.keys.extend(item);
        ControlFlow::Continue(())
    }
}

pub(super) fn decode_number(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_be_bytes)
}

async fn get(partition: &Partition, key: &Key, as_of: AsOf<'_>) -> Result<(Option<Record>, Head)> {
    let mut snapshot = partition.snapshot(|| request(std::slice::from_ref(key)), as_of).await?;
    Ok((snapshot.record(0, &key.bytes)?, snapshot.head))
}

fn request(keys: &[Key]) -> ReadRequest {
    ReadRequest::of_keys(keys.to_vec())
}
