//! Items as bytes of a file, in each format.

use crate::failure::{Failure, Result};
use crate::input::{Format, cell_text};
use crate::item::Item;

/// Writes items in one format.
pub(crate) struct Output {
    format: Format,
    /// Of CSV, in the order of the columns.
    names: Vec<String>,
}

impl Output {
    /// `names`: the names of all properties, used by CSV only.
    pub fn new(format: Format, names: Vec<String>) -> Output {
        Output { format, names }
    }

    /// What a file begins with.
    pub fn start(&self) -> Result<Vec<u8>> {
        Ok(match self.format {
            Format::Jsonl => Vec::new(),
            Format::Json => b"[".to_vec(),
            Format::Csv => row(self.names.iter().map(String::as_str))?,
        })
    }

    /// Appends an item; `is_first` for the first one of the file.
    ///
    /// # Errors
    /// CSV has no column for one of its properties.
    pub fn item(&self, item: &Item, is_first: bool, to: &mut Vec<u8>) -> Result<()> {
        let text = |to: &mut Vec<u8>| {
            let written = serde_json::to_writer(to, item);
            written.map_err(|error| Failure::new(format!("an item cannot be written: {error}")))
        };
        match self.format {
            Format::Jsonl => {
                text(to)?;
                to.push(b'\n');
            }
            Format::Json => {
                to.extend_from_slice(if is_first { b"\n" } else { b",\n" });
                text(to)?;
            }
            Format::Csv => {
                // The names of an item are all different.
                let known = self.names.iter().filter(|name| item.contains_key(*name)).count();
                if known < item.len() {
                    let name = item.keys().find(|name| !self.names.contains(name));
                    let name = name.map(String::as_str).unwrap_or_default();
                    return Err(Failure::new(format!(
                        "the property `{name}` was written while the export ran, and CSV has no column for it: remove the file and its \
                         .bolide-export, and export again"
                    )));
                }
                let cell = |name: &String| item.get(name).map(|value| cell_text(name, value)).unwrap_or_default();
                let cells: Vec<String> = self.names.iter().map(cell).collect();
                to.extend(row(cells.iter().map(String::as_str))?);
            }
        }
        Ok(())
    }

    /// What a file ends with.
    pub fn end(&self) -> &'static [u8] {
        match self.format {
            Format::Json => b"\n]\n",
            Format::Jsonl | Format::Csv => b"",
        }
    }
}

/// Most columns of a CSV file.
const COLUMNS: usize = 10_000;

/// Adds the names of an item's properties that are not in `names` yet: `id` first, the rest in the order in which they appear.
///
/// # Errors
/// There are too many, or one is empty, which no header row can have.
pub(crate) fn add_names(item: &Item, names: &mut Vec<String>) -> Result<()> {
    for name in item.keys() {
        if names.contains(name) {
            continue;
        }
        if name.is_empty() || names.len() >= COLUMNS {
            return Err(Failure::new(format!(
                "CSV cannot have these items: a property has an empty name, or there are more than {COLUMNS} different names. Use --format jsonl"
            )));
        }
        match name.as_str() {
            "id" => names.insert(0, name.clone()),
            _ => names.push(name.clone()),
        }
    }
    Ok(())
}

fn row<'a>(cells: impl Iterator<Item = &'a str>) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = writer.write_record(cells).map_err(|error| error.to_string());
    let bytes = written.and_then(|()| writer.into_inner().map_err(|error| error.to_string()));
    bytes.map_err(|error| Failure::new(format!("a row cannot be written: {error}")))
}

#[cfg(test)]
mod tests;
