//! Statistics about expiry of collections with date rules. A document may be due under several rules, so these read all documents; containers without
//! date rules are counted faster.

use bolide_model::epk::Epk;
use bolide_model::ttl::{Class, DateRules, Deadline, Own, Settings};
use bolide_model::{Error, Result, UnixMillis};
use bolide_mql::bson::RawBson;
use bolide_mql::value::json::parse_canonical;
use bolide_storage::{Head, ReadRequest, Space};
use serde_json::Value;

use super::report::{ForecastSlice, TtlPreview, TtlRule, TtlWhy, moment_of_expiry};
use crate::container::{CollectionDefinition, Container, ContainerState};
use crate::content::StoredItem;
use crate::documents::DocumentId;
use crate::executor::Watch;
use crate::format::keys;
use crate::format::record::Record;
use crate::partition::{Partition, RawPages};

/// Returns the second in which the oldest of the first ghosts of the rules' queues had ended. A later one in a queue never ended earlier.
pub(super) fn oldest_pending(rules: &DateRules, oldest: &[Deadline]) -> Option<i64> {
    let ends = oldest.iter().filter_map(|deadline| rules.ends_at(*deadline));
    ends.map(|end| end.seconds_up().0).min()
}

/// Counts the live documents of a partition by the time of their end. Returns the second in which the next one ends, if any will.
pub(super) async fn add_ends(
    forecast: &mut [ForecastSlice],
    settings: &Settings,
    partition: &Partition,
    now: UnixMillis,
) -> Result<Option<i64>> {
    let horizon = settings.horizon(now);
    let mut next = None;
    for_each_record(partition, None, |record| {
        let end = settings.ends_at(record.stamp(), record.deadlines());
        let Some(end) = end.filter(|_| record.is_live(&horizon)) else {
            return;
        };
        let end = end.seconds().0;
        next = Some(next.map_or(end, |next: i64| next.min(end)));
        if let Some(slice) = forecast.iter_mut().find(|slice| end < slice.to_seconds) {
            slice.items += 1;
        }
    })
    .await?;
    Ok(next)
}

/// Adds the effect on a partition's documents of a change of the settings from `before` to `after` at `now`.
pub(super) async fn add_preview(
    preview: &mut TtlPreview,
    partition: &Partition,
    watch: &Watch,
    (before, after): (&Settings, &Settings),
    now: UnixMillis,
) -> Result<()> {
    let (live_before, live_after) = (before.horizon(now), after.horizon(now));
    for_each_record(partition, Some(watch), |record| {
        if record.is_live(&live_before) {
            let end = after.ends_at(record.stamp(), record.deadlines());
            let end = end.map(|end| end.seconds().0);
            preview.count(record.is_live(&live_after), end, now.seconds());
        }
    })
    .await
}

async fn for_each_record(partition: &Partition, watch: Option<&Watch>, mut visit: impl FnMut(&Record)) -> Result<()> {
    let mut pages = RawPages::over(partition, Space::Item);
    loop {
        watch.map_or(Ok(()), Watch::check)?;
        let rows = pages.next().await?;
        if rows.is_empty() {
            return Ok(());
        }
        for (_, value) in rows {
            visit(&Record::decode(value)?);
        }
    }
}

/// Returns the encoded `_id` that a text names: JSON, with other types than JSON has as canonical Extended JSON; any other text is a string.
///
/// # Errors
/// `BadRequest` for JSON that is neither.
fn id_of_text(text: &str, collection: &CollectionDefinition) -> Result<DocumentId> {
    let id = match serde_json::from_str(text) {
        Err(_) => RawBson::String(text.to_owned()),
        Ok(Value::String(text)) => RawBson::String(text),
        Ok(Value::Null) => RawBson::Null,
        Ok(Value::Bool(value)) => RawBson::Boolean(value),
        Ok(Value::Number(number)) => match number.as_i64() {
            Some(whole) => RawBson::Int64(whole),
            None => RawBson::Double(number.as_f64().unwrap_or_default()),
        },
        Ok(Value::Array(_)) => return Err(Error::bad_request("the id of a document is never an array")),
        Ok(Value::Object(_)) => parse_canonical(text).ok_or_else(|| {
            Error::bad_request("the id of a document must be canonical Extended JSON if it is an object")
        })?,
    };
    Ok(DocumentId::of(id.as_raw_bson_ref(), collection.collation.as_deref()))
}

/// Explains why the document with an `_id` at a place is live or not.
///
/// # Errors
/// `BadRequest` if the text names no `_id` that can be looked up; from the engine.
pub(super) async fn why(
    (container, state): (&Container, &ContainerState),
    collection: &CollectionDefinition,
    (place, id): (&Epk, &str),
    now: UnixMillis,
) -> Result<TtlWhy> {
    let id = id_of_text(id, collection)?;
    match stored_under(state.layout.partition_of(place)?, place, &id).await? {
        Some((record, head)) => Ok(why_of(container, state, collection, record, now.max(head.stamp))),
        None => Ok(TtlWhy::absent(state.settings.policy)),
    }
}

/// Returns the document stored under an `_id` at a place, ended or not, and the head at which it was read.
async fn stored_under(partition: &Partition, place: &Epk, id: &DocumentId) -> Result<Option<(Record, Head)>> {
    loop {
        let get = async |key| {
            let request = ReadRequest::of_keys(vec![key]);
            let mut reply = partition.read_raw(request).await?;
            Ok::<_, Error>((reply.gets.pop().flatten(), reply.head))
        };
        let (number, before) = get(keys::id_index(place.as_bytes(), &id.0)).await?;
        let Some(number) = number.and_then(|value| value[..].try_into().ok()) else {
            return Ok(None);
        };
        let (record, head) = get(keys::item(place, u64::from_be_bytes(number))).await?;
        match record.map(Record::decode).transpose()? {
            Some(record) if record.id_bytes() == id.0 => return Ok(Some((record, head))),
            // Written between the two reads.
            _ if head.lsn != before.lsn => {}
            _ => return Ok(None),
        }
    }
}

/// A rule and the end that it gives a document.
struct Cause {
    end: UnixMillis,
    rule: TtlRule,
    index: Option<String>,
}

fn why_of(
    container: &Container,
    state: &ContainerState,
    collection: &CollectionDefinition,
    record: Record,
    now: UnixMillis,
) -> TtlWhy {
    let settings = &state.settings;
    let horizon = settings.horizon(now);
    let is_live = record.is_live(&horizon);
    let by_core = core_cause(state, &record, is_live, now);
    let by_dates = record.deadlines().filter_map(|deadline| {
        let cause = date_cause(settings, collection, deadline, now)?;
        (is_live || horizon.dates.has_ended(deadline)).then_some(cause)
    });
    let first = by_core.into_iter().chain(by_dates).min_by_key(|cause| cause.end);
    let never = match settings.is_on() {
        true => TtlRule::Never,
        false => TtlRule::Off,
    };
    TtlWhy {
        is_live,
        expires_at_seconds: first.as_ref().map(|cause| cause.end.seconds().0),
        expires_at_millis: first.as_ref().map(|cause| cause.end.0),
        rule: first.as_ref().map_or(never, |cause| cause.rule),
        index: first.and_then(|cause| cause.index),
        own: own(&record),
        policy: settings.policy,
        item: Some(StoredItem::new(container.rid(), record)),
    }
}

/// Returns the end by the core rule; for an ended document only if the core rule has ended it.
fn core_cause(state: &ContainerState, record: &Record, is_live: bool, now: UnixMillis) -> Option<Cause> {
    let (stamp, settings) = (record.stamp(), &state.settings);
    let end = stamp.ends_at(settings.policy);
    let by_policy = match stamp.class {
        Class::Own => TtlRule::Own,
        Class::Inherited | Class::Never => TtlRule::Default,
    };
    let cause = |second: i64, rule| Cause {
        end: UnixMillis(second.saturating_mul(1_000)),
        rule,
        index: None,
    };
    if is_live {
        return end.map(|end| cause(end, by_policy));
    }
    if stamp.is_live(&settings.horizon(now)) {
        return None;
    }
    let ended = moment_of_expiry(stamp, &state.history, now.seconds()).or(end)?;
    let rule = match end {
        Some(end) if end <= now.seconds().0 => by_policy,
        _ => TtlRule::Floor,
    };
    Some(cause(ended, rule))
}

/// Returns the end by a date rule, which may be in the future.
fn date_cause(
    settings: &Settings,
    collection: &CollectionDefinition,
    deadline: Deadline,
    now: UnixMillis,
) -> Option<Cause> {
    let end = settings.dates.ends_at(deadline)?;
    let rule = settings.dates.get(deadline.rule)?;
    let in_force = rule.after_seconds.is_some_and(|seconds| {
        let after = i64::from(seconds).saturating_mul(1_000);
        deadline.date.0 > rule.floor || deadline.date.0.saturating_add(after) <= now.0
    });
    let index = collection.indexes.iter().find(|index| index.rules.contains(&rule.id));
    Some(Cause {
        end,
        rule: if in_force { TtlRule::Date } else { TtlRule::Floor },
        index: index.map(|index| index.definition.name().to_owned()),
    })
}

/// Returns the document's own ttl as it counts.
fn own(record: &Record) -> Own {
    let stamp = record.stamp();
    match stamp.class {
        Class::Inherited => Own::Absent,
        Class::Never => Own::Never,
        Class::Own => {
            let seconds = stamp.base.0.saturating_sub(record.last_modified().0);
            u32::try_from(seconds).map_or(Own::Absent, Own::After)
        }
    }
}

#[cfg(test)]
mod tests;
