//! `export`: the items of a container into a file.
//!
//! The place file says which items are in the first `bytes` of the data file. What follows them was written by a run that was killed, and is cut off.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::container::{Container, ContainerName};
use crate::failure::{Failure, Result};
use crate::feed::{Feed, FeedPlace};
use crate::input::Format;
use crate::item::drop_links;
use crate::output::{Output, add_names};
use crate::place::{self, PlaceFile};
use crate::progress::Progress;

/// Bytes that are written between two places in the file: each needs the data on the disk.
const PLACE_BYTES: u64 = 1024 * 1024;

/// What to export.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The file, which must not be there; `None` for standard output.
    pub file: Option<PathBuf>,
    /// Its format; by default its ending's.
    pub format: Option<Format>,
    /// The container.
    pub from: ContainerName,
}

/// What an export has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exported {
    /// Items in the file.
    pub items: u64,
    /// Of these, those that an earlier run has written.
    pub earlier: u64,
}

/// The words of an export that must be the same to go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Words {
    source: String,
    from: ContainerName,
    rid: String,
    format: Format,
}

/// The content of a place file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    words: Words,
    /// The columns of a CSV file.
    names: Vec<String>,
    feed: FeedPlace,
    items: u64,
    bytes: u64,
}

impl Place {
    /// The start of an export.
    fn start(words: Words, names: Vec<String>) -> Place {
        Place {
            words,
            names,
            feed: FeedPlace::start(),
            items: 0,
            bytes: 0,
        }
    }
}

/// Exports a container.
///
/// # Errors
/// The file is there already and is not of the same export, it cannot be written, or the server refuses. The place file remains, so that the same
/// export goes on.
pub fn run(client: &Client, options: &ExportOptions) -> Result<Exported> {
    let format = match (options.format, &options.file) {
        (Some(format), _) => format,
        (None, Some(file)) => Format::of_file(file)?,
        (None, None) => return Err(Failure::new("--file -: name the format with --format")),
    };
    let container = Container::read(client, &options.from)?;
    let words = Words {
        source: client.name().to_owned(),
        from: options.from.clone(),
        rid: container.rid.clone(),
        format,
    };
    match &options.file {
        Some(path) => to_file(client, &container, words, path),
        None => to_pipe(client, &container, words),
    }
}

fn to_pipe(client: &Client, container: &Container, words: Words) -> Result<Exported> {
    let progress = Progress::new(None);
    let names = names(client, container, words.format, &progress)?;
    let mut export = Export::go_on(client, container, Place::start(words, names))?;
    let mut out = Pipe(io::stdout().lock());
    export.start(&mut out)?;
    export.write_all(&mut out, &progress, |_, _| Ok(()))?;
    Ok(export.result(0))
}

fn to_file(client: &Client, container: &Container, words: Words, path: &Path) -> Result<Exported> {
    let progress = Progress::new(None);
    let place_file = PlaceFile::beside(path, "export");
    let (place, file) = match place_file.read::<Place>()? {
        Some(place) if place.words == words => {
            let file = go_on(path, place.bytes)?;
            (place, file)
        }
        Some(_) => {
            return Err(Failure::new(format!(
                "{} is of an export that was not finished, of another container or with other options: remove both files to export anew",
                place_file.path().display()
            )));
        }
        None => {
            // Before the container is read, which may take long.
            check_is_new(path)?;
            let names = names(client, container, words.format, &progress)?;
            let place = Place::start(words, names);
            let file = create(path, &place_file, &place)?;
            (place, file)
        }
    };
    let before = place.items;
    let mut export = Export::go_on(client, container, place)?;
    let mut out = DataFile { path, file };
    if export.place.bytes == 0 {
        export.start(&mut out)?;
    }
    let mut saved = export.place.bytes;
    export.write_all(&mut out, &progress, |out, place| {
        if place.bytes < saved + PLACE_BYTES {
            return Ok(());
        }
        saved = place.bytes;
        out.sync()?;
        place_file.write(place)
    })?;
    out.sync()?;
    place_file.remove()?;
    Ok(export.result(before))
}

fn check_is_new(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(_) => Err(Failure::new(format!(
            "--file {}: it is there already; remove it or name another",
            path.display()
        ))),
        Err(_) => Ok(()),
    }
}

/// Creates the data file. The place file is first: a data file without one is not of an export.
fn create(path: &Path, place_file: &PlaceFile, place: &Place) -> Result<File> {
    place_file.write(place)?;
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => {
            place::lock(&file, path)?;
            Ok(file)
        }
        Err(error) => {
            place_file.remove()?;
            Err(Failure::of_file(path, &error))
        }
    }
}

/// Opens the data file of an export that goes on after its first `bytes`.
fn go_on(path: &Path, bytes: u64) -> Result<File> {
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    let mut file = opened.map_err(|error| Failure::of_file(path, &error))?;
    place::lock(&file, path)?;
    cut(&mut file, bytes).map_err(|error| Failure::of_file(path, &error))?;
    Ok(file)
}

/// Cuts off what follows the first `bytes`, and goes there.
fn cut(file: &mut File, bytes: u64) -> io::Result<()> {
    if file.metadata()?.len() < bytes {
        return Err(io::Error::other(
            "it is shorter than when its export was stopped; remove it and its .bolide-export, and export again",
        ));
    }
    file.set_len(bytes)?;
    file.seek(SeekFrom::Start(bytes)).map(drop)
}

/// The columns of a CSV file: the names of all properties, which takes one more reading of the container.
fn names(client: &Client, container: &Container, format: Format, progress: &Progress) -> Result<Vec<String>> {
    let mut names = Vec::new();
    if format != Format::Csv {
        return Ok(names);
    }
    progress.say("(names of properties)");
    let mut feed = Feed::new(client, container, FeedPlace::start())?;
    let mut count = 0;
    while let Some(items) = feed.next()? {
        count += items.len() as u64;
        for mut item in items {
            drop_links(&mut item);
            add_names(&item, &mut names)?;
        }
        progress.set(count);
    }
    if names.is_empty() {
        names.push("id".to_owned());
    }
    progress.say("");
    Ok(names)
}

/// Where the bytes go.
trait Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<()>;
}

struct Pipe<W>(W);

impl<W: Write> Sink for Pipe<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.0.write_all(bytes).and_then(|()| self.0.flush());
        written.map_err(|error| Failure::new(format!("standard output: {error}")))
    }
}

struct DataFile<'a> {
    path: &'a Path,
    file: File,
}

impl DataFile<'_> {
    fn sync(&self) -> Result<()> {
        self.file
            .sync_data()
            .map_err(|error| Failure::of_file(self.path, &error))
    }
}

impl Sink for DataFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| Failure::of_file(self.path, &error))
    }
}

/// A running export.
struct Export<'a> {
    feed: Feed<'a>,
    output: Output,
    place: Place,
}

impl<'a> Export<'a> {
    fn go_on(client: &'a Client, container: &'a Container, place: Place) -> Result<Export<'a>> {
        Ok(Export {
            feed: Feed::new(client, container, place.feed.clone())?,
            output: Output::new(place.words.format, place.names.clone()),
            place,
        })
    }

    fn start(&mut self, out: &mut dyn Sink) -> Result<()> {
        let start = self.output.start()?;
        out.write(&start)?;
        self.place.bytes = start.len() as u64;
        Ok(())
    }

    /// Writes the items that are still to be read, and the end. `note` is told of the place after each page.
    fn write_all<S: Sink>(
        &mut self,
        out: &mut S,
        progress: &Progress,
        mut note: impl FnMut(&S, &Place) -> Result<()>,
    ) -> Result<()> {
        while let Some(items) = self.feed.next()? {
            let mut bytes = Vec::new();
            for mut item in items {
                drop_links(&mut item);
                self.output.item(&item, self.place.items == 0, &mut bytes)?;
                self.place.items += 1;
            }
            out.write(&bytes)?;
            self.place.bytes += bytes.len() as u64;
            self.place.feed = self.feed.place().clone();
            progress.set(self.place.items);
            note(out, &self.place)?;
        }
        out.write(self.output.end())
    }

    fn result(&self, earlier: u64) -> Exported {
        Exported {
            items: self.place.items,
            earlier,
        }
    }
}
