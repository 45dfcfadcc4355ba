//! The values that an index has of a document: one tuple for each entry, with at most one array opened on the way.
//!
//! ```text
//!   index {"a.b": 1, c: 1}     {a: [{b: 1}, {b: 2}], c: 3}     →  (1, 3), (2, 3)
//!   index {a: 1}               {a: [[1, 2], 3]}                →  [1, 2]; 3          an inner array is a value
//!   index {a: 1}               {a: []}                         →  undefined
//!   index {"a.b": 1}           {a: []} and {a: 5} and {}       →  null
//!   index {"a.0": 1}           {a: [7, 8]}                     →  7                  a number is a position, or a field's name
//! ```
//!
//! Source: MongoDB's key generation; mongo.md §14 and §18.1 (the dates of a TTL index are found in the same way).

use bson::raw::{RawArray, RawBsonRef, RawDocument};
use smallvec::SmallVec;

use crate::error::{Code, Error, Result};
use crate::value;

/// Two numeric readings of one name: a position in an array, and a field of its elements.
const AMBIGUOUS_FIELD: i32 = 16746;

/// Array elements that are visited for one document, over all levels. Only nested arrays, all opened, come near.
const STEPS: usize = 1_000_000;

/// The longest array that an error shows, in bytes of its text.
const SHOWN_ARRAY_BYTES: usize = 1024;

/// The path of an indexed field, split at its dots.
pub type Path = Box<[Box<str>]>;

/// The values of one entry, in the order of the key pattern. A missing field is `None`.
pub type Tuple<'t, 'd> = &'t [Option<RawBsonRef<'d>>];

/// What was seen besides the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// An array was opened.
    pub multikey: bool,
}

/// Calls `entry` with the values of every entry; the same values may come more than once.
///
/// With `sparse` there is no entry for a tuple whose fields are all missing.
///
/// # Errors
/// 171 `CannotIndexParallelArrays`, 16746 for a numeric name that is a position and a field, 158 `CannotBuildIndexKeys` beyond [`STEPS`], and those
/// of `entry`.
pub fn extract<'p, 'd>(
    paths: impl Iterator<Item = &'p Path>,
    document: &'d RawDocument,
    sparse: bool,
    entry: &mut dyn FnMut(Tuple<'_, 'd>) -> Result<()>,
) -> Result<Seen> {
    let mut walk = Walk {
        sparse,
        entry,
        steps: 0,
        seen: Seen::default(),
    };
    let fields = paths
        .map(|path| Field {
            rest: path,
            value: None,
            missing: false,
            position: None,
        })
        .collect();
    walk.object(fields, Some(document))?;
    Ok(walk.seen)
}

/// How far the walk has come with one field.
#[derive(Clone, Copy)]
struct Field<'p, 'd> {
    /// The names still to follow.
    rest: &'p [Box<str>],
    value: Option<RawBsonRef<'d>>,
    /// The field ended at a missing name.
    missing: bool,
    /// The element that the next name, a number, stands for, if the array just opened has it.
    position: Option<Position<'p, 'd>>,
}

/// An element of an array by its position.
#[derive(Clone, Copy)]
struct Position<'p, 'd> {
    array: &'d RawArray,
    element: RawBsonRef<'d>,
    /// The value behind the element on the rest of the path, up to the next array.
    found: Option<RawBsonRef<'d>>,
    rest: &'p [Box<str>],
}

type Fields<'p, 'd> = SmallVec<[Field<'p, 'd>; 2]>;

struct Walk<'e, 'd> {
    sparse: bool,
    entry: &'e mut dyn FnMut(Tuple<'_, 'd>) -> Result<()>,
    steps: usize,
    seen: Seen,
}

/// The array that is opened next, and the fields that lead through it.
struct Opened<'d> {
    array: &'d RawArray,
    /// The last name on the way to it, for the error about a second array.
    name: String,
    fields: SmallVec<[usize; 2]>,
    /// It is an element of another array, so it is a value itself where a path ends at it.
    nested: bool,
}

impl<'d> Walk<'_, 'd> {
    /// Follows all fields up to an array, in an object or, with `None`, in a value without fields. The depth is bounded by the names of the paths.
    fn object(&mut self, mut fields: Fields<'_, 'd>, object: Option<&'d RawDocument>) -> Result<()> {
        let mut opened: Option<Opened<'d>> = None;
        for (index, field) in fields.iter_mut().enumerate() {
            if field.rest.is_empty() {
                continue;
            }
            let path = field.rest;
            let (found, nested) = next_value(field, object)?;
            match found {
                None => (field.rest, field.value, field.missing) = (&[], None, true),
                Some(RawBsonRef::Array(array)) => {
                    let name = last_name(path, field.rest);
                    open(&mut opened, array, name, index, nested)?;
                }
                Some(value) => field.value = Some(value),
            }
        }
        match opened {
            None => self.leaf(&fields),
            Some(opened) => self.array(fields, &opened),
        }
    }

    /// Makes entries of an array: one for each element, or a single one if it is empty.
    fn array(&mut self, fields: Fields<'_, 'd>, opened: &Opened<'d>) -> Result<()> {
        if opened.array.is_empty() {
            return self.element(&fields, opened, RawBsonRef::Undefined, false);
        }
        let mut fields = fields;
        let mut takes_elements = false;
        for index in &opened.fields {
            let field = &mut fields[*index];
            field.position = position(opened.array, field.rest);
            takes_elements |= field.position.is_none() && !(field.rest.is_empty() && opened.nested);
        }
        self.seen.multikey |= takes_elements;
        for element in opened.array.into_iter().flatten() {
            self.steps += 1;
            if self.steps > STEPS {
                return Err(Error::new(
                    Code::CANNOT_BUILD_INDEX_KEYS,
                    format!("the document has more than {STEPS} array elements to index"),
                ));
            }
            if takes_elements {
                self.element(&fields, opened, element, opened.nested)?;
            } else {
                refuse_ambiguity(&fields, element)?;
            }
        }
        if takes_elements {
            Ok(())
        } else {
            // Every element gives the same entry, so one is enough.
            self.element(&fields, opened, RawBsonRef::Null, opened.nested)
        }
    }

    fn element(
        &mut self,
        fields: &Fields<'_, 'd>,
        opened: &Opened<'d>,
        element: RawBsonRef<'d>,
        is_value_itself: bool,
    ) -> Result<()> {
        let mut fields = fields.clone();
        for index in &opened.fields {
            let field = &mut fields[*index];
            if field.rest.is_empty() {
                field.value = Some(if is_value_itself {
                    RawBsonRef::Array(opened.array)
                } else {
                    element
                });
            }
        }
        self.object(fields, element.as_document())
    }

    fn leaf(&mut self, fields: &Fields<'_, 'd>) -> Result<()> {
        if self.sparse && fields.iter().all(|field| field.missing) {
            return Ok(());
        }
        let values: SmallVec<[Option<RawBsonRef<'d>>; 2]> = fields.iter().map(|field| field.value).collect();
        (self.entry)(&values)
    }
}

/// Follows one field in an object, or from the element it has by position. Tells also whether the value is directly an element of an array.
fn next_value<'d>(
    field: &mut Field<'_, 'd>,
    object: Option<&'d RawDocument>,
) -> Result<(Option<RawBsonRef<'d>>, bool)> {
    if let Some(position) = field.position.take() {
        if let Some(object) = object {
            refuse_name(field.rest, object, &position)?;
        }
        field.rest = position.rest;
        return Ok((position.found, matches!(position.element, RawBsonRef::Array(_))));
    }
    let Some(object) = object else {
        return Ok((None, false));
    };
    let (found, rest) = follow(object, field.rest);
    field.rest = rest;
    Ok((found, false))
}

/// Follows names through objects: to the value at the end, or to the first array, with the names that remain behind it.
pub fn follow<'p, 'd>(object: &'d RawDocument, path: &'p [Box<str>]) -> (Option<RawBsonRef<'d>>, &'p [Box<str>]) {
    let mut object = object;
    let mut rest = path;
    while let Some((name, behind)) = rest.split_first() {
        rest = behind;
        match object.get(&**name).ok().flatten() {
            Some(RawBsonRef::Document(inner)) if !rest.is_empty() => object = inner,
            Some(array @ RawBsonRef::Array(_)) => return (Some(array), rest),
            Some(value) if rest.is_empty() => return (Some(value), rest),
            _ => return (None, &[]),
        }
    }
    (None, &[])
}

/// The element of an array that a path begins with.
fn position<'p, 'd>(array: &'d RawArray, path: &'p [Box<str>]) -> Option<Position<'p, 'd>> {
    let (name, behind) = path.split_first()?;
    let index: usize = name.parse().ok()?;
    // "01" and "+1" are names of fields only.
    if index.to_string() != **name {
        return None;
    }
    let element = array.get(index).ok().flatten()?;
    let (found, rest) = match element {
        RawBsonRef::Document(object) if !behind.is_empty() => follow(object, behind),
        RawBsonRef::Array(_) => (Some(element), behind),
        _ if behind.is_empty() => (Some(element), behind),
        _ => (None, behind),
    };
    Some(Position {
        array,
        element,
        found,
        rest,
    })
}

/// Takes an array as the one to open.
fn open<'d>(
    opened: &mut Option<Opened<'d>>,
    array: &'d RawArray,
    name: &str,
    field: usize,
    nested: bool,
) -> Result<()> {
    let Some(first) = opened else {
        *opened = Some(Opened {
            array,
            name: name.to_owned(),
            fields: SmallVec::from_slice(&[field]),
            nested,
        });
        return Ok(());
    };
    // The same array, not an equal one.
    if !std::ptr::eq(first.array.as_bytes(), array.as_bytes()) {
        return Err(Error::new(
            Code::CANNOT_INDEX_PARALLEL_ARRAYS,
            format!("cannot index parallel arrays [{name}] [{}]", first.name),
        ));
    }
    first.fields.push(field);
    first.nested |= nested;
    Ok(())
}

/// The name of the array at which a path stopped.
fn last_name<'p>(path: &'p [Box<str>], rest: &[Box<str>]) -> &'p str {
    let followed = path.len().saturating_sub(rest.len());
    followed
        .checked_sub(1)
        .and_then(|last| path.get(last))
        .map_or("", |name| name)
}

fn refuse_ambiguity(fields: &Fields<'_, '_>, element: RawBsonRef<'_>) -> Result<()> {
    let RawBsonRef::Document(object) = element else {
        return Ok(());
    };
    for field in fields {
        if let Some(position) = &field.position {
            refuse_name(field.rest, object, position)?;
        }
    }
    Ok(())
}

fn refuse_name(path: &[Box<str>], object: &RawDocument, position: &Position<'_, '_>) -> Result<()> {
    let Some(name) = path.first() else {
        return Ok(());
    };
    if object.get(&**name).ok().flatten().is_none() {
        return Ok(());
    }
    let mut array = value::text::render(RawBsonRef::Array(position.array));
    if array.len() > SHOWN_ARRAY_BYTES {
        let end = array.floor_char_boundary(SHOWN_ARRAY_BYTES);
        array.truncate(end);
        array.push_str("...");
    }
    Err(Error::new(
        AMBIGUOUS_FIELD,
        format!(
            "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), \
             field: '{name}' for array: {array}"
        ),
    ))
}

#[cfg(test)]
mod tests;
