//! All items of a container, page by page and range by range, from any place.

use std::collections::VecDeque;

use bolide_model::epk::{Epk, EpkRange};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::{Client, Draft};
use crate::container::{Container, Ranges};
use crate::failure::{Failure, Result};
use crate::item::Item;

/// Tries to find the ranges of a container while they are being split.
const RANGE_TRIES: usize = 10;

/// The items that are still to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FeedPlace(VecDeque<Part>);

/// A range that was not read to its end. Bounds are hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    min: String,
    max: String,
    continuation: Option<String>,
}

impl Part {
    fn epk(&self) -> Option<EpkRange> {
        let (min, max) = (Epk::from_hex(&self.min).ok()?, Epk::from_hex(&self.max).ok()?);
        Some(EpkRange::new(min, max))
    }
}

impl FeedPlace {
    /// The start of a container.
    pub fn start() -> FeedPlace {
        let all = EpkRange::all();
        FeedPlace(VecDeque::from([Part {
            min: all.min.to_hex(),
            max: all.max.to_hex(),
            continuation: None,
        }]))
    }
}

/// Reads the items of a container.
pub(crate) struct Feed<'a> {
    client: &'a Client,
    container: &'a Container,
    ranges: Ranges,
    place: FeedPlace,
}

impl<'a> Feed<'a> {
    /// A reader that starts at a place.
    ///
    /// # Errors
    /// The server does not show the ranges.
    pub fn new(client: &'a Client, container: &'a Container, place: FeedPlace) -> Result<Feed<'a>> {
        Ok(Feed {
            client,
            container,
            ranges: Ranges::read(client, &container.name)?,
            place,
        })
    }

    /// Begins again.
    pub fn restart(&mut self) {
        self.place = FeedPlace::start();
    }

    /// After the last page.
    pub fn place(&self) -> &FeedPlace {
        &self.place
    }

    /// The next page, maybe without items; `None` at the end.
    ///
    /// # Errors
    /// The server refuses to show the items.
    pub fn next(&mut self) -> Result<Option<Vec<Item>>> {
        for _ in 0..RANGE_TRIES {
            let Some(part) = self.place.0.front().cloned() else {
                return Ok(None);
            };
            let Some(range) = self.range_of(&part)? else {
                continue;
            };
            let path = self.container.name.feed("docs");
            let mut draft = Draft::get(&path)
                .header("x-ms-documentdb-partitionkeyrangeid", range)
                .header("x-ms-max-item-count", "-1");
            if let Some(continuation) = part.continuation {
                draft = draft.header("x-ms-continuation", continuation);
            }
            let answer = self.client.send(&draft)?;
            if answer.status == 410 {
                self.ranges = Ranges::read(self.client, &self.container.name)?;
                continue;
            }
            if !answer.is_success() {
                let name = &self.container.name;
                let message = format!("{}: the items of {name}: {}", self.client.name(), answer.message());
                return Err(Failure::new(message));
            }
            match answer.header("x-ms-continuation").filter(|text| !text.is_empty()) {
                Some(continuation) => {
                    if let Some(part) = self.place.0.front_mut() {
                        part.continuation = Some(continuation.to_owned());
                    }
                }
                None => {
                    self.place.0.pop_front();
                }
            }
            return self.items(answer.json()).map(Some);
        }
        Err(Failure::new(format!(
            "{}: the ranges of {} change all the time",
            self.client.name(),
            self.container.name
        )))
    }

    /// The id of the range of a part. If that was split since, the part becomes several, and there is none yet.
    fn range_of(&mut self, part: &Part) -> Result<Option<String>> {
        let malformed = || Failure::new("the place of the export has no range; remove it to start from the beginning");
        let epk = part.epk().ok_or_else(malformed)?;
        if let Some(range) = self.ranges.0.iter().find(|range| range.epk == epk) {
            return Ok(Some(range.id.clone()));
        }
        let inside: Vec<Part> = self
            .ranges
            .0
            .iter()
            .filter(|range| epk.covers(&range.epk))
            .map(|range| Part {
                min: range.epk.min.to_hex(),
                max: range.epk.max.to_hex(),
                continuation: part.continuation.clone(),
            })
            .collect();
        if inside.is_empty() {
            return Err(Failure::new(format!(
                "{}: ranges of {} were merged while they were read; start from the beginning",
                self.client.name(),
                self.container.name
            )));
        }
        self.place.0.pop_front();
        for part in inside.into_iter().rev() {
            self.place.0.push_front(part);
        }
        Ok(None)
    }

    fn items(&self, mut page: Value) -> Result<Vec<Item>> {
        let malformed = || {
            Failure::new(format!(
                "{}: malformed items of {}",
                self.client.name(),
                self.container.name
            ))
        };
        let Value::Array(list) = page["Documents"].take() else {
            return Err(malformed());
        };
        let item = |item: Value| match item {
            Value::Object(item) => Ok(item),
            _ => Err(malformed()),
        };
        list.into_iter().map(item).collect()
    }
}
