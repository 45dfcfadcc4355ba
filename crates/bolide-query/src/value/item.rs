//! An item as it is pushed: its document, and the system properties, which only few queries read.

use std::cell::OnceCell;
use std::fmt;

use bolide_model::ttl::Stamp;
use smallvec::SmallVec;

use super::Value;
use super::scan::{self, Name};
use crate::error::{QueryError, Result};
use crate::path::PathStep;

/// What the server knows of an item besides its document: `_ts`, and properties that are made only when a query reads them.
pub trait SystemProperties {
    /// The value of `_ts`, in seconds.
    fn last_modified(&self) -> i64;

    /// The stamp by which the item expires.
    fn stamp(&self) -> Stamp;

    /// The number of bytes that [`SystemProperties::write_members`] appends.
    fn members_bytes(&self) -> usize;

    /// Appends the members as JSON text with commas between them, `"_rid":"…",…,"_ts":17`. Each name begins with `_`, and the document has none of them.
    fn write_members(&self, out: &mut String);
}

/// One item of a scan.
pub struct Item<'a> {
    /// An object without the members of `system`; any JSON text if there is no `system`.
    document: &'a str,
    system: Option<&'a dyn SystemProperties>,
    /// The complete text, made when it is first needed.
    whole: OnceCell<String>,
}

impl<'a> Item<'a> {
    /// An item from its complete JSON text.
    ///
    /// # Errors
    /// [`QueryError::BadItem`] if it is not UTF-8.
    pub fn complete(text: &'a [u8]) -> Result<Item<'a>> {
        Ok(Item {
            document: utf8(text)?.trim_matches([' ', '\t', '\r', '\n']),
            system: None,
            whole: OnceCell::new(),
        })
    }

    /// An item from a document, which is an object without white space around it, and from system properties that follow its own members.
    ///
    /// # Errors
    /// [`QueryError::BadItem`] if it is not UTF-8.
    pub fn stored(document: &'a [u8], system: &'a dyn SystemProperties) -> Result<Item<'a>> {
        Ok(Item {
            document: utf8(document)?,
            system: Some(system),
            whole: OnceCell::new(),
        })
    }

    /// The stamp by which the item expires, if known.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.system.map(SystemProperties::stamp)
    }

    /// The text without system properties.
    pub(crate) fn document(&self) -> &[u8] {
        self.document.as_bytes()
    }

    /// Bytes of the complete text.
    pub fn bytes(&self) -> usize {
        self.system.map_or(self.document.len(), |system| {
            self.document.len() + self.comma().len() + system.members_bytes()
        })
    }

    /// The complete text as a value.
    pub(crate) fn value(&self) -> Value<'_> {
        Value::from_item(self.whole())
    }

    fn whole(&self) -> &str {
        let Some(system) = self.system else {
            return self.document;
        };
        self.whole.get_or_init(|| {
            let members = self.document.strip_suffix('}').unwrap_or(self.document);
            let mut whole = String::with_capacity(self.bytes());
            whole.push_str(members);
            whole.push_str(self.comma());
            system.write_members(&mut whole);
            whole.push('}');
            whole
        })
    }

    /// The separator between the document's members and the system's.
    fn comma(&self) -> &'static str {
        if self.document == "{}" { "" } else { "," }
    }
}

impl fmt::Debug for Item<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.whole())
    }
}

fn utf8(text: &[u8]) -> Result<&str> {
    // Every item of a scan is checked: the standard library's check, which says how a text is wrong, was a twelfth of the time of a filter.
    let checked = simdutf8::basic::from_utf8(text).or_else(|_| std::str::from_utf8(text));
    checked.map_err(|error| QueryError::BadItem(error.to_string()))
}

/// Reads an item's members in order: each is read once, and only as far as the paths of a query require.
#[derive(Debug, Default)]
pub struct ItemScan<'a> {
    item: Option<&'a Item<'a>>,
    /// The members read so far.
    passed: SmallVec<[Name; 16]>,
    /// All members were read.
    is_at_end: bool,
}

impl<'a> ItemScan<'a> {
    /// The state before the first member.
    pub fn of(item: &'a Item<'a>) -> ItemScan<'a> {
        ItemScan {
            item: Some(item),
            passed: SmallVec::new(),
            is_at_end: false,
        }
    }

    /// The item, if there is one.
    pub fn item(&self) -> Option<&'a Item<'a>> {
        self.item
    }

    /// The approximate cost of [`ItemScan::walk`]: how much it has to read is not known before.
    pub fn units(&self, item: &Item<'_>, steps: &[PathStep]) -> u64 {
        let members = if self.is_at_end {
            0
        } else {
            item.document.len() as u64 / 256
        };
        let below = if steps.len() > 1 {
            item.document.len() as u64 / 256
        } else {
            0
        };
        members + below + self.passed.len() as u64
    }

    /// The value at `steps` from the item's root.
    pub fn walk(&mut self, item: &'a Item<'a>, steps: &[PathStep]) -> Value<'a> {
        let (Some(PathStep::Name(name)), rest) = (steps.first(), steps.get(1..).unwrap_or_default()) else {
            return scan::walk(item.whole(), 0, steps);
        };
        if let Some(member) = self.member(item.document.as_bytes(), name) {
            return scan::walk(item.document, member, rest);
        }
        match item.system {
            Some(system) if name == "_ts" && rest.is_empty() => Value::int(system.last_modified()),
            Some(_) if name.starts_with('_') => scan::walk(item.whole(), 0, steps),
            _ => Value::Undefined,
        }
    }

    /// The offset of a member's value.
    #[inline]
    fn member(&mut self, text: &[u8], name: &str) -> Option<usize> {
        if let Some(known) = self.passed.iter().find(|member| member.is(text, name)) {
            return Some(known.value());
        }
        while !self.is_at_end {
            let Some(member) = self.next_member(text) else {
                self.is_at_end = true;
                break;
            };
            self.passed.push(member);
            if member.is(text, name) {
                return Some(member.value());
            }
        }
        None
    }

    #[inline]
    fn next_member(&self, text: &[u8]) -> Option<Name> {
        let at = match self.passed.last() {
            None => scan::first_inside(text, 0, b'{')?,
            Some(last) => scan::next_inside(text, scan::value_end(text, last.value())?)?,
        };
        Name::at(text, at)
    }
}

#[cfg(test)]
mod tests;
