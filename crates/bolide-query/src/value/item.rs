//! An item as it is pushed: its document, and the system properties that only few queries ask for.

use std::cell::OnceCell;
use std::fmt;

use bolide_model::ttl::Stamp;
use smallvec::SmallVec;

use super::Value;
use super::scan::{self, Name};
use crate::error::{QueryError, Result};
use crate::path::PathStep;

/// What the server knows of an item beside its document: `_ts`, and properties that are made only when a query looks at them.
pub trait SystemProperties {
    /// The value of `_ts`, in seconds.
    fn last_modified(&self) -> i64;

    /// By what the item expires.
    fn stamp(&self) -> Stamp;

    /// How many bytes [`SystemProperties::write_members`] appends.
    fn members_bytes(&self) -> usize;

    /// Appends the members as JSON text with commas between them, `"_rid":"…",…,"_ts":17`: each name begins with `_`, and the document has none of
    /// them.
    fn write_members(&self, out: &mut String);
}

/// One item of a scan.
pub struct Item<'a> {
    /// An object without what `system` has; any JSON text if there is no `system`.
    document: &'a str,
    system: Option<&'a dyn SystemProperties>,
    /// The complete text, once something has asked for it.
    whole: OnceCell<String>,
}

impl<'a> Item<'a> {
    /// An item whose complete JSON text this is.
    ///
    /// # Errors
    /// [`QueryError::BadItem`] for what is not UTF-8.
    pub fn complete(text: &'a [u8]) -> Result<Item<'a>> {
        Ok(Item {
            document: utf8(text)?.trim_matches([' ', '\t', '\r', '\n']),
            system: None,
            whole: OnceCell::new(),
        })
    }

    /// An item of a document, which is an object without blanks around it, and of system properties that follow its own members.
    ///
    /// # Errors
    /// [`QueryError::BadItem`] for what is not UTF-8.
    pub fn stored(document: &'a [u8], system: &'a dyn SystemProperties) -> Result<Item<'a>> {
        Ok(Item {
            document: utf8(document)?,
            system: Some(system),
            whole: OnceCell::new(),
        })
    }

    /// By what the item expires, where that is known.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.system.map(SystemProperties::stamp)
    }

    /// The text without system properties.
    pub(crate) fn document(&self) -> &[u8] {
        self.document.as_bytes()
    }

    /// Bytes of the complete text.
    pub(crate) fn bytes(&self) -> usize {
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

    /// Between the document's members and the system's.
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
    std::str::from_utf8(text).map_err(|error| QueryError::BadItem(error.to_string()))
}

/// The way through an item's members: each is looked at once, in their order, as far as the paths of a query make it necessary.
#[derive(Debug, Default)]
pub struct ItemScan<'a> {
    item: Option<&'a Item<'a>>,
    /// The members passed so far.
    passed: SmallVec<[Name; 16]>,
    /// They are all.
    is_at_end: bool,
}

impl<'a> ItemScan<'a> {
    /// At the beginning of an item.
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

    /// What [`ItemScan::walk`] takes, roughly: how far it has to look is not known before.
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

    /// The value that `steps` lead to from the item's root.
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

    /// Where the value of a member begins.
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
