//! What a transfer has to know of a container: its partition key, its unique keys, its ranges.

use std::fmt;

use bolide_model::epk::{Epk, EpkRange};
use bolide_model::partition_key::{PartitionKey, PartitionKeyDefinition};
use serde_json::{Map, Value};

use crate::client::{Client, Draft};
use crate::failure::{Failure, Result};
use crate::item::Item;

/// The name of a container.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ContainerName {
    /// The id of its database.
    pub database: String,
    /// Its id.
    pub container: String,
}

impl ContainerName {
    pub(crate) fn path(&self) -> [&str; 4] {
        ["dbs", &self.database, "colls", &self.container]
    }

    /// The path of a feed of the container.
    pub(crate) fn feed<'a>(&'a self, kind: &'a str) -> [&'a str; 5] {
        ["dbs", &self.database, "colls", &self.container, kind]
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.database, self.container)
    }
}

/// A container of a server.
#[derive(Debug, Clone)]
pub(crate) struct Container {
    pub name: ContainerName,
    /// Its resource id: another container of the same name has another one.
    pub rid: String,
    /// As the server shows it.
    pub properties: Map<String, Value>,
    pub key: PartitionKeyDefinition,
    pub has_unique_keys: bool,
}

impl Container {
    /// Reads a container.
    ///
    /// # Errors
    /// There is none, or the server refuses to show it.
    pub fn read(client: &Client, name: &ContainerName) -> Result<Container> {
        let path = name.path();
        let answer = client.send(&Draft::get(&path))?;
        if answer.status == 404 {
            return Err(Failure::new(format!(
                "{}: no such container. name=`{name}`",
                client.name()
            )));
        }
        let Value::Object(properties) = answer.json() else {
            return Err(Failure::new(format!("{}: {}", client.name(), answer.message())));
        };
        if !answer.is_success() {
            return Err(Failure::new(format!("{}: {}", client.name(), answer.message())));
        }
        Container::of(client, name, properties)
    }

    /// A container from its properties.
    ///
    /// # Errors
    /// Its partition key is of a kind that is not known.
    pub fn of(client: &Client, name: &ContainerName, properties: Map<String, Value>) -> Result<Container> {
        let key = match properties.get("partitionKey") {
            None | Some(Value::Null) => PartitionKeyDefinition::system(),
            Some(key) => PartitionKeyDefinition::from_json(key)
                .map_err(|error| Failure::new(format!("{}: the partition key of {name}: {error}", client.name())))?,
        };
        let unique = &properties.get("uniqueKeyPolicy").unwrap_or(&Value::Null)["uniqueKeys"];
        Ok(Container {
            name: name.clone(),
            rid: properties
                .get("_rid")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            key,
            has_unique_keys: unique.as_array().is_some_and(|keys| !keys.is_empty()),
            properties,
        })
    }

    /// The partition key of an item.
    pub fn key_of(&self, item: &Item) -> PartitionKey {
        PartitionKey::extract_from(&self.key, item)
    }

    /// The partition key as a request has it.
    pub fn header_of(&self, key: &PartitionKey) -> String {
        match self.key.key_of_none() {
            Some(none) if none == *key => "[]".to_owned(),
            _ => key.to_header_json(),
        }
    }
}

/// A partition key range.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub id: String,
    pub epk: EpkRange,
}

/// The ranges of a container in the order of their keys.
#[derive(Debug, Clone)]
pub(crate) struct Ranges(pub Vec<Range>);

impl Ranges {
    /// Reads the ranges.
    ///
    /// # Errors
    /// The server does not show them.
    pub fn read(client: &Client, name: &ContainerName) -> Result<Ranges> {
        let path = name.feed("pkranges");
        let answer = client.expect(&Draft::get(&path), &format!("the ranges of {name}"))?;
        let malformed = || Failure::new(format!("{}: malformed ranges of {name}", client.name()));
        let body = answer.json();
        let list = body["PartitionKeyRanges"].as_array().ok_or_else(malformed)?;
        let range = |range: &Value| {
            let epk = |member: &str| Epk::from_hex(range[member].as_str()?).ok();
            Some(Range {
                id: range["id"].as_str()?.to_owned(),
                epk: EpkRange::new(epk("minInclusive")?, epk("maxExclusive")?),
            })
        };
        let ranges: Option<Vec<Range>> = list.iter().map(range).collect();
        let mut ranges = ranges.filter(|ranges| !ranges.is_empty()).ok_or_else(malformed)?;
        ranges.sort_by(|one, other| one.epk.min.cmp(&other.epk.min));
        Ok(Ranges(ranges))
    }

    /// The index of the range of a key.
    pub fn index_of(&self, epk: &Epk) -> usize {
        let after = self.0.partition_point(|range| range.epk.min <= *epk);
        after.saturating_sub(1)
    }
}
