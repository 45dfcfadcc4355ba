//! The headers of a response while they are collected.
//!
//! A response about an item has about twenty headers. Hashing each name again for each response took a tenth of a point read, and nearly all
//! responses have the same names in the same order. So names and values are kept as a list; then a cached map with the same names, which has the
//! values that are always the same, is copied and filled with the others.

use std::cell::RefCell;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The number of headers in the response for an item, so that the list never grows.
const HEADERS: usize = 29;
/// Maximum number of cached maps per thread; about two dozen are used.
const MAX_TEMPLATES: usize = 48;

/// The value of a header.
#[derive(Debug, Clone)]
enum Value {
    /// A text that is part of the program.
    Fixed(&'static str),
    /// Any other.
    Made(HeaderValue),
}

impl Value {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Value::Fixed(text) => text.as_bytes(),
            Value::Made(value) => value.as_bytes(),
        }
    }

    fn into_header(self) -> HeaderValue {
        match self {
            Value::Fixed(text) => HeaderValue::from_static(text),
            Value::Made(value) => value,
        }
    }

    /// The text, if it is fixed.
    fn fixed(&self) -> Option<&'static str> {
        match self {
            Value::Fixed(text) => Some(text),
            Value::Made(_) => None,
        }
    }
}

/// Headers in the order they were set, each name once.
#[derive(Debug, Clone)]
pub(crate) struct HeaderList {
    entries: Vec<(&'static HeaderName, Value)>,
    /// The bits of all names that were set, see [`bit`].
    set: u128,
}

/// The bit of a name. Names are near each other in memory, so few of them share a bit.
fn bit(name: &'static HeaderName) -> u128 {
    1 << (std::ptr::from_ref(name).addr() / size_of::<HeaderName>() % 128)
}

impl HeaderList {
    /// No headers yet.
    pub(crate) fn new() -> HeaderList {
        HeaderList {
            entries: Vec::with_capacity(HEADERS),
            set: 0,
        }
    }

    /// Sets a header, at its earlier position if it was set before.
    pub(crate) fn set(&mut self, name: &'static HeaderName, value: HeaderValue) {
        self.put(name, Value::Made(value));
    }

    /// As [`HeaderList::set`], for a value that is part of the program: it is checked and copied only once for all responses of the same shape.
    pub(crate) fn set_fixed(&mut self, name: &'static HeaderName, value: &'static str) {
        self.put(name, Value::Fixed(value));
    }

    fn put(&mut self, name: &'static HeaderName, value: Value) {
        let bit = bit(name);
        // Most names are set once, and are not searched for.
        if self.set & bit != 0
            && let Some((_, known)) = self.entries.iter_mut().find(|(known, _)| std::ptr::eq(*known, name))
        {
            *known = value;
            return;
        }
        self.set |= bit;
        self.entries.push((name, value));
    }

    /// The value of a header.
    pub(crate) fn get(&self, name: &'static HeaderName) -> Option<&[u8]> {
        let found = self.entries.iter().find(|(known, _)| std::ptr::eq(*known, name));
        found.map(|(_, value)| value.as_bytes())
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&HeaderName, &[u8])> {
        self.entries.iter().map(|(name, value)| (*name, value.as_bytes()))
    }

    /// Removes a header.
    pub(crate) fn remove(&mut self, name: &'static HeaderName) {
        self.entries.retain(|(known, _)| !std::ptr::eq(*known, name));
    }

    /// The finished map.
    pub(crate) fn into_map(self) -> HeaderMap {
        TEMPLATES.with_borrow_mut(
            |templates| match templates.iter().find(|template| template.fits(&self)) {
                Some(template) => template.fill(self),
                None => {
                    if templates.len() < MAX_TEMPLATES {
                        templates.extend(MapTemplate::of(&self));
                    }
                    let entry = |(name, value): (&'static HeaderName, Value)| (name.clone(), value.into_header());
                    self.entries.into_iter().map(entry).collect()
                }
            },
        )
    }
}

thread_local! {
    static TEMPLATES: RefCell<Vec<MapTemplate>> = const { RefCell::new(Vec::new()) };
}

/// A map for a list of names, with the fixed values only.
struct MapTemplate {
    /// The names, each with its fixed value.
    shape: Vec<(&'static HeaderName, Option<&'static str>)>,
    map: HeaderMap,
}

impl MapTemplate {
    /// `None` if the map's order differs from the order of the list.
    fn of(list: &HeaderList) -> Option<MapTemplate> {
        let shape: Vec<_> = list
            .entries
            .iter()
            .map(|(name, value)| (*name, value.fixed()))
            .collect();
        let slot = |(name, fixed): &(&'static HeaderName, Option<&'static str>)| {
            ((*name).clone(), HeaderValue::from_static(fixed.unwrap_or_default()))
        };
        let map: HeaderMap = shape.iter().map(slot).collect();
        map.keys()
            .eq(shape.iter().map(|(name, _)| *name))
            .then_some(MapTemplate { shape, map })
    }

    fn fits(&self, list: &HeaderList) -> bool {
        let is_same = |(ours, theirs): (
            &(&'static HeaderName, Option<&'static str>),
            &(&'static HeaderName, Value),
        )| {
            std::ptr::eq(ours.0, theirs.0)
                && match (ours.1, &theirs.1) {
                    (Some(ours), Value::Fixed(theirs)) => std::ptr::eq(ours, *theirs),
                    (None, Value::Made(_)) => true,
                    _ => false,
                }
        };
        self.shape.len() == list.entries.len() && self.shape.iter().zip(&list.entries).all(is_same)
    }

    fn fill(&self, list: HeaderList) -> HeaderMap {
        let mut map = self.map.clone();
        for (slot, (_, value)) in map.values_mut().zip(list.entries) {
            if let Value::Made(value) = value {
                *slot = value;
            }
        }
        map
    }
}

#[cfg(test)]
mod tests;
