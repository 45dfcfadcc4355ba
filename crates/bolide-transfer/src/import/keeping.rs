//! Imports that keep `_ts`: one request of Bolide's admin API with all items, which writes all of them or none.

use std::io::{self, Read};

use serde_json::Value;

use super::{Import, Imported, Opened, Reading, Words, failure};
use crate::client::{Answer, Client, Draft};
use crate::container::Container;
use crate::failure::{Failure, Result};
use crate::input::Record;
use crate::item::{Item, same_content};
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
    let mut lines = Lines {
        reading: &mut import.reading,
        line: Vec::new(),
        sent: 0,
        failure: None,
    };
    let answer = client.import_lines(&container.name.path(), &mut lines);
    let broken = lines.failure.take();
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

/// The items as lines of a request.
struct Lines<'a> {
    reading: &'a mut Reading,
    line: Vec<u8>,
    sent: usize,
    failure: Option<Failure>,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<bool> {
        let Some(record) = self.reading.record()? else {
            return Ok(false);
        };
        check(&record).map_err(|message| {
            failure(
                &self.reading.name,
                &crate::input::InputError::new(record.start, message),
            )
        })?;
        self.line.clear();
        self.sent = 0;
        // The text may have line breaks in it.
        let written = serde_json::to_writer(&mut self.line, &record.item);
        written.map_err(|error| Failure::new(format!("an item cannot be written: {error}")))?;
        self.line.push(b'\n');
        Ok(true)
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

impl Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.sent == self.line.len() {
            match self.next() {
                Ok(true) => {}
                Ok(false) => return Ok(0),
                Err(failure) => {
                    let message = failure.to_string();
                    self.failure = Some(failure);
                    return Err(io::Error::other(message));
                }
            }
        }
        let rest = &self.line[self.sent..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.sent += count;
        Ok(count)
    }
}

impl Reading {
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
