//! The headers of a response while they are collected.
//!
//! A response about an item has about twenty headers. Hashing each name again for each response took a tenth of a point read, and nearly all
//! responses have the same names in the same order. So names and values are kept as a list; then a cached map with the same names is copied and
//! filled with the values.

use std::cell::RefCell;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The number of headers in the response for an item, so that the list never grows.
const HEADERS: usize = 29;
/// Maximum number of cached maps per thread; about a dozen are used.
const MAX_TEMPLATES: usize = 32;

/// Headers in the order they were set, each name once.
#[derive(Debug, Clone)]
pub(crate) struct HeaderList {
    entries: Vec<(&'static HeaderName, HeaderValue)>,
}

impl HeaderList {
    /// No headers yet.
    pub(crate) fn new() -> HeaderList {
        HeaderList {
            entries: Vec::with_capacity(HEADERS),
        }
    }

    /// Sets a header, at its earlier position if it was set before.
    pub(crate) fn set(&mut self, name: &'static HeaderName, value: HeaderValue) {
        match self.entries.iter_mut().find(|(known, _)| std::ptr::eq(*known, name)) {
            Some((_, known)) => *known = value,
            None => self.entries.push((name, value)),
        }
    }

    /// The value of a header.
    pub(crate) fn get(&self, name: &'static HeaderName) -> Option<&HeaderValue> {
        let found = self.entries.iter().find(|(known, _)| std::ptr::eq(*known, name));
        found.map(|(_, value)| value)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.entries.iter().map(|(name, value)| (*name, value))
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
                    let map: HeaderMap = self
                        .entries
                        .iter()
                        .map(|(name, value)| ((*name).clone(), value.clone()))
                        .collect();
                    if templates.len() < MAX_TEMPLATES {
                        templates.extend(MapTemplate::of(&self));
                    }
                    map
                }
            },
        )
    }
}

thread_local! {
    static TEMPLATES: RefCell<Vec<MapTemplate>> = const { RefCell::new(Vec::new()) };
}

/// A map for a list of names, without values.
struct MapTemplate {
    names: Vec<&'static HeaderName>,
    map: HeaderMap,
}

impl MapTemplate {
    /// `None` if the map's order differs from the order of the list.
    fn of(list: &HeaderList) -> Option<MapTemplate> {
        let names: Vec<_> = list.entries.iter().map(|(name, _)| *name).collect();
        let map: HeaderMap = names
            .iter()
            .map(|name| ((*name).clone(), HeaderValue::from_static("")))
            .collect();
        map.keys()
            .eq(names.iter().copied())
            .then_some(MapTemplate { names, map })
    }

    fn fits(&self, list: &HeaderList) -> bool {
        self.names.len() == list.entries.len()
            && self
                .names
                .iter()
                .zip(&list.entries)
                .all(|(ours, (theirs, _))| std::ptr::eq(*ours, *theirs))
    }

    fn fill(&self, list: HeaderList) -> HeaderMap {
        let mut map = self.map.clone();
        for (slot, (_, value)) in map.values_mut().zip(list.entries) {
            *slot = value;
        }
        map
    }
}

#[cfg(test)]
mod tests;
