//! `import`: the items of a file into a container.
//!
//! The place file says up to which item all are written (`done`), and which later ones may be (`reserved`): it is written before an item beyond
//! `reserved` is sent. When the same import goes on after a kill, an item below `reserved` that is there with the same content is its own.

mod keeping;

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(crate) use self::keeping::{check_fresh, imported, stored};
use crate::client::Client;
use crate::container::{Container, ContainerName};
use crate::failure::{Failure, Result};
use crate::input::{self, Format, InputError, Position, Records};
use crate::load::{self, Acknowledged, Counts, Incoming, OnConflict, Source, Target};
use crate::place::{self, Identity, PlaceFile};
use crate::progress::Progress;

/// Items between two looks at what is done.
const CHECKPOINT_ITEMS: u64 = 500;
/// Items that are done between two places in the file.
const PLACE_ITEMS: u64 = 2_000;
/// Items that may be sent after the last place was written.
const RESERVED_ITEMS: u64 = 50_000;

/// What to import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The file; `None` for standard input.
    pub file: Option<PathBuf>,
    /// Its format; by default its ending's.
    pub format: Option<Format>,
    /// Where the items go.
    pub into: ContainerName,
    /// What happens to items that are there already.
    pub on_conflict: OnConflict,
    /// Whether items keep their `_ts`.
    pub keep_timestamps: bool,
}

/// What an import has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Imported {
    /// Items that were written.
    pub written: u64,
    /// Of these, items that replaced one.
    pub replaced: u64,
    /// Items that were there already and were left as they were.
    pub skipped: u64,
    /// Items that an earlier run of the same import had written.
    pub earlier: u64,
}

/// The words of an import that must be the same to go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Words {
    target: String,
    into: ContainerName,
    /// Another container of the same name is another target.
    rid: String,
    format: Format,
    on_conflict: OnConflict,
    keep_timestamps: bool,
}

/// The content of a place file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    source: Identity,
    words: Words,
    done: Acknowledged,
    /// No item with this number or a later one was sent.
    reserved: u64,
}

/// Imports a file.
///
/// # Errors
/// What is wrong in the file, and where; the item that the server refuses; the server cannot be reached. The place file remains, so that the same
/// import goes on.
pub fn run(client: &Client, options: &ImportOptions) -> Result<Imported> {
    let format = match (options.format, &options.file) {
        (Some(format), _) => format,
        (None, Some(file)) => Format::of_file(file)?,
        (None, None) => return Err(Failure::new("--file -: name the format with --format")),
    };
    let container = Container::read(client, &options.into)?;
    let words = Words {
        target: client.name().to_owned(),
        into: options.into.clone(),
        rid: container.rid.clone(),
        format,
        on_conflict: options.on_conflict,
        keep_timestamps: options.keep_timestamps,
    };
    let opened = Opened::new(options, &words)?;
    if options.keep_timestamps {
        return keeping::run(client, &container, opened, words);
    }
    let from = opened.earlier.as_ref().map_or(Acknowledged::none(), |place| place.done);
    let mut import = Import::new(opened, words, from)?;
    let target = Target {
        client,
        container: &container,
        on_conflict: options.on_conflict,
        file: import.file.as_deref().or(Some("standard input".as_ref())),
    };
    let (outcome, done, counts) = load::run(&target, &mut import.reading, from);
    import.reading.finish(outcome, done)?;
    Ok(summary(from, counts))
}

fn summary(from: Acknowledged, counts: Counts) -> Imported {
    Imported {
        written: counts.created + counts.replaced,
        replaced: counts.replaced,
        skipped: counts.skipped,
        earlier: from.count + counts.own,
    }
}

/// A data file that was opened, and the place that an earlier run has left.
struct Opened {
    /// `None` for standard input.
    file: Option<(PathBuf, File)>,
    place_file: Option<(PlaceFile, Identity)>,
    earlier: Option<Place>,
}

impl Opened {
    /// # Errors
    /// The file cannot be read; it, or the import, is another one than that of the place file.
    fn new(options: &ImportOptions, words: &Words) -> Result<Opened> {
        let Some(path) = &options.file else {
            return Ok(Opened {
                file: None,
                place_file: None,
                earlier: None,
            });
        };
        let file = File::open(path).map_err(|error| Failure::of_file(path, &error))?;
        let metadata = file.metadata().map_err(|error| Failure::of_file(path, &error))?;
        if !metadata.is_file() {
            return Err(Failure::new(format!(
                "--file {}: not a file; use --file - to read from a pipe",
                path.display()
            )));
        }
        place::lock(&file, path)?;
        let place_file = PlaceFile::beside(path, "import");
        let earlier: Option<Place> = place_file.read()?;
        let identity = Identity::of(path)?;
        if let Some(place) = &earlier {
            let other = match place {
                _ if place.source != identity => "the data file was changed since",
                _ if place.words != *words => "that import had another target or other options",
                _ => "",
            };
            if !other.is_empty() {
                return Err(Failure::new(format!(
                    "{} is of an import that was not finished, and {other}: remove it to import the file from its beginning \
                     (with --on-conflict skip or replace, if items of that import are there)",
                    place_file.path().display()
                )));
            }
        }
        Ok(Opened {
            file: Some((path.clone(), file)),
            place_file: Some((place_file, identity)),
            earlier,
        })
    }
}

/// A running import.
struct Import {
    file: Option<PathBuf>,
    reading: Reading,
}

/// The items of the file as the loader takes them, and the place file.
struct Reading {
    records: Box<dyn Records>,
    name: String,
    place: Option<(PlaceFile, Place)>,
    /// Items that an earlier run may have sent.
    sent_before: u64,
    number: u64,
    progress: Progress,
}

impl Import {
    fn new(opened: Opened, words: Words, from: Acknowledged) -> Result<Import> {
        let format = words.format;
        let sent_before = opened.earlier.as_ref().map_or(0, |place| place.reserved);
        let place = opened.place_file.map(|(file, source)| {
            let place = Place {
                source,
                words,
                done: from,
                reserved: sent_before,
            };
            (file, place)
        });
        let (path, bytes, length) = match opened.file {
            Some((path, file)) => {
                let length = file.metadata().map(|metadata| metadata.len()).ok();
                (Some(path), Some(file), length)
            }
            None => (None, None, None),
        };
        let name = path
            .as_ref()
            .map_or("standard input".to_owned(), |path| path.display().to_string());
        let records = records(format, bytes, from.position).map_err(|error| failure(&name, &error))?;
        let reading = Reading {
            records,
            name,
            place,
            sent_before,
            number: from.count,
            progress: Progress::new(length),
        };
        Ok(Import { file: path, reading })
    }
}

/// A reader of the items from a position on; of standard input without a file.
fn records(format: Format, file: Option<File>, from: Position) -> std::result::Result<Box<dyn Records>, InputError> {
    let Some(mut file) = file else {
        return input::open(format, io::stdin().lock(), from, None);
    };
    let unreadable = |error: io::Error| InputError::new(from, error.to_string());
    let header = match format {
        Format::Csv if from.offset > 0 => Some(input::header(Read::by_ref(&mut file))?),
        _ => None,
    };
    file.seek(SeekFrom::Start(from.offset)).map_err(unreadable)?;
    input::open(format, file, from, header)
}

fn failure(name: &str, error: &InputError) -> Failure {
    let InputError { at, message } = error;
    Failure::new(format!("{name}: line {}, column {}: {message}", at.line, at.column))
}

impl Source for Reading {
    fn next(&mut self) -> Result<Option<Incoming>> {
        let record = self.records.next().map_err(|error| failure(&self.name, &error))?;
        let may_be_own = self.number < self.sent_before;
        self.number += 1;
        Ok(record.map(|record| Incoming {
            item: record.item,
            text: record.text,
            start: record.start,
            end: record.end,
            may_be_own,
        }))
    }

    fn checkpoint(&mut self, done: Acknowledged, next: u64) -> Result<u64> {
        self.progress.set(done.position.offset);
        let Some((file, place)) = &mut self.place else {
            return Ok(next + CHECKPOINT_ITEMS);
        };
        let is_due = done.count >= place.done.count + PLACE_ITEMS;
        if is_due || next + CHECKPOINT_ITEMS > place.reserved {
            place.done = done;
            place.reserved = place.reserved.max(next + RESERVED_ITEMS);
            file.write(place)?;
        }
        Ok(next + CHECKPOINT_ITEMS)
    }
}

impl Reading {
    /// Removes the place file after success, and writes it for the last time otherwise.
    fn finish(&mut self, outcome: Result<()>, done: Acknowledged) -> Result<()> {
        let Some((file, place)) = &mut self.place else {
            return outcome;
        };
        match outcome {
            Ok(()) => file.remove(),
            Err(failure) => {
                place.done = done;
                // Nothing was sent, so there is nothing to go on with.
                let outcome = if place.reserved == 0 {
                    file.remove()
                } else {
                    file.write(place)
                };
                Err(outcome.err().unwrap_or(failure))
            }
        }
    }
}
