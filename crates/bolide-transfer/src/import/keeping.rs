//! Imports that keep `_ts`: one request of Bolide's admin API with all items, which writes all of them or none.

use std::io;

use serde_json::Value;

use super::{Import, Imported, Opened, Reading, Words, failure};
use crate::client::{Answer, Client, Draft};
use crate::container::Container;
use crate::failure::{Failure, Result};
use crate::input::Record;
use crate::item::{Item, same_content};
use crate::item_lines::ItemLines;
use crate::load::Acknowledged;

/// Items of the file that are compared with the container, when an earlier run may have imported all.
const COMPARED_ITEMS: usize = 1_000;

pub(super) fn run(client: &Client, container: &Container, opened: Opened, words: Words) -> Result<Imported> {
    let had_begun = opened.earlier.is_some();
    let mut import = Import::new(opened, words, Acknowledged::none())?;
    if let Err(refusal) = check_fresh(client, container) {
        if had_begun && is_imported(client, container, &mut import.reading)? {
            import.reading.finish(Ok(()), Acknowledged::none())?;
            return Ok(Imported {
                earlier: import.reading.rest()?,
                ..Imported::default()
            });
        }
        import.reading.abandon(had_begun)?;
        return Err(refusal);
    }
    import.reading.reserve_all()?;
    let reading = &mut import.reading;
    let mut lines = ItemLines::new(|| reading.checked_item());
    let answer = client.import_lines(&container.name.path(), &mut lines);
    let broken = lines.into_failure();
    let outcome = match (broken, answer) {
        (Some(failure), _) => Err(failure),
        (None, Ok(answer)) => imported(client, &answer),
        (None, Err(failure)) => Err(failure),
    };
    match outcome {
        Ok(written) => {
            import.reading.finish(Ok(()), Acknowledged::none())?;
            Ok(Imported {
                written,
                ..Imported::default()
            })
        }
        Err(failure) => {
            import.reading.finish(Err(failure), Acknowledged::none())?;
            Ok(Imported::default())
        }
    }
}

/// Whether the server can import items with their `_ts` into the container: an import of no items says so, and changes nothing.
pub(crate) fn check_fresh(client: &Client, container: &Container) -> Result<()> {
    let answer = client.import_lines(&container.name.path(), &mut io::empty())?;
    imported(client, &answer).map(drop)
}

/// The number of items of an import.
pub(crate) fn imported(client: &Client, answer: &Answer) -> Result<u64> {
    let body = answer.json();
    if let (true, Some(count)) = (answer.is_success(), body["imported"].as_u64()) {
        return Ok(count);
    }
    let is_bolide = answer.status == 400 && body["code"].is_string();
    let why = match is_bolide {
        true => answer.message(),
        false => format!("only a Bolide server can do that ({})", answer.message()),
    };
    Err(Failure::new(format!("--keep-timestamps: {}: {why}", client.name())))
}

/// Whether the container has items of the file with their `_ts`: then an earlier run has imported them, all at once.
fn is_imported(client: &Client, container: &Container, reading: &mut Reading) -> Result<bool> {
    let mut found = 0;
    for _ in 0..COMPARED_ITEMS {
        let Some(record) = reading.record()? else {
            break;
        };
        match stored(client, container, &record.item)? {
            Some(there) if there.get("_ts") == record.item.get("_ts") && same_content(&there, &record.item) => {
                found += 1;
            }
            Some(_) => return Ok(false),
            // It has expired, maybe.
            None => {}
        }
    }
    Ok(found > 0)
}

/// The stored item with the id and partition key of another.
pub(crate) fn stored(client: &Client, container: &Container, item: &Item) -> Result<Option<Item>> {
    let id = item.get("id").and_then(Value::as_str).unwrap_or_default();
    let name = &container.name;
    let path = ["dbs", &name.database, "colls", &name.container, "docs", id];
    let key = container.header_of(&container.key_of(item));
    let answer = client.send(&Draft::get(&path).header("x-ms-documentdb-partitionkey", key))?;
    match (answer.status, answer.json()) {
        (200, Value::Object(item)) => Ok(Some(item)),
        (404, _) => Ok(None),
        _ => Err(Failure::new(format!("{}: {}", client.name(), answer.message()))),
    }
}

fn check(record: &Record) -> std::result::Result<(), String> {
    if !record.item.get("id").is_some_and(Value::is_string) {
        return Err("an item needs an `id` that is a string".to_owned());
    }
    if record.item.get("_ts").and_then(Value::as_i64).is_none() {
        return Err("with --keep-timestamps an item needs a `_ts` that is a whole number".to_owned());
    }
    Ok(())
}

impl Reading {
    /// The next item, if it can be imported with its `_ts`.
    fn checked_item(&mut self) -> Result<Option<Item>> {
        let Some(record) = self.record()? else {
            return Ok(None);
        };
        check(&record).map_err(|message| failure(&self.name, &crate::input::InputError::new(record.start, message)))?;
        Ok(Some(record.item))
    }

    fn record(&mut self) -> Result<Option<Record>> {
        let record = self.records.next().map_err(|error| failure(&self.name, &error))?;
        if let Some(record) = &record {
            self.number += 1;
            self.progress.set(record.end.offset);
        }
        Ok(record)
    }

    /// The number of items of the whole file, of which some were read.
    fn rest(&mut self) -> Result<u64> {
        while self.record()?.is_some() {}
        Ok(self.number)
    }

    /// Notes that the server may have all items from now on.
    fn reserve_all(&mut self) -> Result<()> {
        let Some((file, place)) = &mut self.place else {
            return Ok(());
        };
        place.reserved = u64::MAX;
        file.write(place)
    }

    /// Removes the place file of an import that was refused before it began.
    fn abandon(&mut self, had_begun: bool) -> Result<()> {
        match &self.place {
            Some((file, _)) if !had_begun => file.remove(),
            _ => Ok(()),
        }
    }
}
