//! Key patterns: the fields of an index, their directions, and the kind of index that they make.
//!
//! Source: mongo.md §14, "Spec errors".

use std::cmp::Ordering;

use bson::raw::{RawBsonRef, RawDocument, RawDocumentBuf};

use super::extraction::Path;
use crate::error::{Code, Error, Result};
use crate::value;
use crate::value::number::Number;

/// The largest key pattern, in bytes of BSON.
const PATTERN_BYTES: usize = 2048;

/// The most fields of an index (mongo.md §16).
const FIELDS: usize = 32;

const TOO_MANY_FIELDS: i32 = 13103;
const SEVERAL_HASHED_FIELDS: i32 = 31303;
const SEVERAL_2D_FIELDS: i32 = 16800;
const FIRST_FIELD_IS_NOT_2D: i32 = 16801;

/// The name that stands for all fields, alone or behind a path.
pub const WILDCARD: &str = "$**";

/// What an index is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Values in order: single and compound indexes.
    Ordered,
    /// The values of all fields, or of all below a path.
    Wildcard,
    /// Hashes of values.
    Hashed,
    /// Words of strings.
    Text,
    /// Places on a sphere.
    Sphere,
    /// Places on a plane.
    Plane,
    /// Vectors.
    Vector,
}

impl Kind {
    /// The name in errors: that in the key pattern, or `wildcard`; empty for [`Kind::Ordered`], as in MongoDB.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ordered => "",
            Kind::Wildcard => "wildcard",
            Kind::Hashed => "hashed",
            Kind::Text => "text",
            Kind::Sphere => "2dsphere",
            Kind::Plane => "2d",
            Kind::Vector => "cosmosSearch",
        }
    }

    fn from_name(name: &str) -> Option<Kind> {
        let kinds = [Kind::Hashed, Kind::Text, Kind::Sphere, Kind::Plane, Kind::Vector];
        kinds.into_iter().find(|kind| kind.name() == name)
    }
}

/// How the values of a field stand in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Smallest first: a positive number.
    Ascending,
    /// Largest first: a negative number.
    Descending,
    /// By the index's kind: hashes, words, places.
    Special,
}

/// One field of a key pattern.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its dotted name.
    pub name: Box<str>,
    /// The names between the dots.
    pub path: Path,
    /// Its order.
    pub order: Order,
}

/// A checked key pattern.
#[derive(Debug, Clone)]
pub struct KeyPattern {
    document: RawDocumentBuf,
    fields: Box<[Field]>,
    kind: Kind,
}

impl KeyPattern {
    /// Reads the `key` of an index specification.
    ///
    /// # Errors
    /// 67 `CannotCreateIndex` for an empty or too large pattern, a bad name, a bad value, an unknown kind; 2 `BadValue` for a repeated field;
    /// 13103 above 32 fields; 31303, 16800 and 16801 for special fields in the wrong number or place.
    pub fn parse(key: &RawDocument) -> Result<KeyPattern> {
        if key.as_bytes().len() > PATTERN_BYTES {
            return Err(cannot("Index key pattern too large."));
        }
        let elements: Vec<(&str, RawBsonRef<'_>)> = key
            .iter()
            .map(|element| element.map(|(name, value)| (name.as_str(), value)))
            .collect::<Result<_, _>>()
            .map_err(Error::malformed)?;
        if elements.is_empty() {
            return Err(cannot("Index keys cannot be empty."));
        }
        refuse_repeated(key, &elements)?;
        let kind = kind_of(&elements)?;
        let fields = elements
            .iter()
            .map(|(name, value)| field(name, *value, kind))
            .collect::<Result<Box<[Field]>>>()?;
        check_special(key, &fields, kind)?;
        if fields.len() > FIELDS {
            return Err(Error::new(TOO_MANY_FIELDS, "too many compound keys"));
        }
        Ok(KeyPattern {
            document: key.to_owned(),
            fields,
            kind,
        })
    }

    /// The pattern as it was given.
    pub fn document(&self) -> &RawDocument {
        &self.document
    }

    /// Its fields, in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The kind of index.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it orders by `_id` alone; of those only `{_id: 1}` can be created.
    pub fn is_id(&self) -> bool {
        self.kind == Kind::Ordered && self.is_single("_id")
    }

    /// Whether it has the field alone.
    pub fn is_single(&self, name: &str) -> bool {
        self.fields.len() == 1 && &*self.fields[0].name == name
    }

    /// Whether two patterns are the same: the same fields in the same order, their values compared as values (1 is 1.0).
    pub fn is_same(&self, other: &RawDocument) -> bool {
        value::equal(RawBsonRef::Document(&self.document), RawBsonRef::Document(other))
    }

    /// The pattern as text, for errors.
    pub fn text(&self) -> String {
        value::text::render_document(&self.document)
    }
}

fn refuse_repeated(key: &RawDocument, elements: &[(&str, RawBsonRef<'_>)]) -> Result<()> {
    // At most 2048 bytes of pattern, so a quadratic search is short.
    let repeated = elements
        .iter()
        .enumerate()
        .find(|(index, (name, _))| elements[..*index].iter().any(|(earlier, _)| earlier == name));
    match repeated {
        None => Ok(()),
        Some((_, (name, _))) => Err(Error::bad_value(format!(
            "The field '{name}' appears multiple times in the index key pattern {}",
            value::text::render_document(key)
        ))),
    }
}

/// The kind that the first string names, or else `$**`.
fn kind_of(elements: &[(&str, RawBsonRef<'_>)]) -> Result<Kind> {
    let named = elements.iter().find_map(|(_, value)| value.as_str());
    if let Some(name) = named {
        return match Kind::from_name(name) {
            Some(kind) => Ok(kind),
            None if name.is_empty() => Err(cannot("Values in the index key pattern cannot be empty strings")),
            None if name == Kind::Wildcard.name() => Err(cannot(
                "The key pattern value for an 'wildcard' index must be a non-zero number, not a string.",
            )),
            None => Err(cannot(format!("Unknown index plugin '{name}'"))),
        };
    }
    let is_wildcard = elements.iter().any(|(name, _)| is_wildcard_name(name));
    Ok(if is_wildcard { Kind::Wildcard } else { Kind::Ordered })
}

fn is_wildcard_name(name: &str) -> bool {
    name == WILDCARD || name.strip_suffix(WILDCARD).is_some_and(|path| path.ends_with('.'))
}

fn field(name: &str, value: RawBsonRef<'_>, kind: Kind) -> Result<Field> {
    let order = order_of(value, kind)?;
    if kind == Kind::Wildcard && !is_wildcard_name(name) {
        return Err(cannot("wildcard indexes do not allow compounding"));
    }
    check_name(name, order, kind)?;
    Ok(Field {
        name: name.into(),
        path: split(name),
        order,
    })
}

/// Splits a dotted name.
pub fn split(name: &str) -> Path {
    name.split('.').map(Box::from).collect()
}

fn order_of(value: RawBsonRef<'_>, kind: Kind) -> Result<Order> {
    if let Some(name) = value.as_str() {
        return if name == kind.name() {
            Ok(Order::Special)
        } else {
            Err(cannot("Can't use more than one index plugin for a single index."))
        };
    }
    let Some(number) = Number::of(value) else {
        return Err(cannot(format!(
            "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are allowed.",
            value::types::name(value)
        )));
    };
    if number.is_nan() {
        return Err(cannot("Values in the index key pattern cannot be NaN."));
    }
    match number.compare(Number::Int32(0)) {
        Ordering::Equal => Err(cannot("Values in the index key pattern cannot be 0.")),
        Ordering::Less => Ok(Order::Descending),
        Ordering::Greater => Ok(Order::Ascending),
    }
}

fn check_name(name: &str, order: Order, kind: Kind) -> Result<()> {
    if name.is_empty() {
        return Err(cannot("Index keys cannot be an empty field."));
    }
    if name == WILDCARD && (kind == Kind::Wildcard || (kind == Kind::Text && order == Order::Special)) {
        return Ok(());
    }
    if name == "_fts" && kind != Kind::Text {
        return Err(cannot("Index key contains an illegal field name: '_fts'"));
    }
    let parts: Vec<&str> = name.split('.').collect();
    for (index, part) in parts.iter().enumerate() {
        if part.is_empty() {
            return Err(cannot("Index keys cannot contain an empty field."));
        }
        let is_reference = index > 0 && ["$db", "$id", "$ref"].contains(part);
        let is_wildcard = kind == Kind::Wildcard && index + 1 == parts.len() && *part == WILDCARD;
        if part.starts_with('$') && !is_reference && !is_wildcard {
            return Err(cannot(
                "Index key contains an illegal field name: field name starts with '$'.",
            ));
        }
    }
    Ok(())
}

/// Checks the number and the place of special fields. Those of text indexes are checked with their weights.
fn check_special(key: &RawDocument, fields: &[Field], kind: Kind) -> Result<()> {
    let special = fields.iter().filter(|field| field.order == Order::Special).count();
    match kind {
        Kind::Hashed if special > 1 => Err(Error::new(
            SEVERAL_HASHED_FIELDS,
            format!(
                "A maximum of one index field is allowed to be hashed but found {special} for 'key' {}",
                value::text::render_document(key)
            ),
        )),
        Kind::Plane if special > 1 => Err(Error::new(SEVERAL_2D_FIELDS, "can't have 2 geo fields")),
        Kind::Plane if fields[0].order != Order::Special => {
            Err(Error::new(FIRST_FIELD_IS_NOT_2D, "2d has to be first in index"))
        }
        Kind::Wildcard if fields.len() > 1 => Err(cannot("wildcard indexes do not allow compounding")),
        _ => Ok(()),
    }
}

/// Returns an error with the code for a bad index specification.
pub fn cannot(message: impl Into<String>) -> Error {
    Error::new(Code::CANNOT_CREATE_INDEX, message)
}
