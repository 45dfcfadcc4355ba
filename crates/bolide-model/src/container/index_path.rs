//! Paths of an indexing policy, and the values that they cover.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::error::{Error, Result, excerpt};
use crate::path::{InvalidPath, Label, Labels};

/// Excluded in every policy that has an index.
const ETAG_PATH: &str = "/\"_etag\"/?";

/// Everything below the root.
const ROOT_PATH: &str = "/*";

/// A step of an index path, or of the path of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IndexStep {
    /// A property.
    Name(String),
    /// Any element of an array: `[]`.
    Element,
}

/// A path of an indexing policy: `/a/b/?` for a scalar, `/a/*` for everything below, `/a/[]/b/?` through an array.
#[derive(Debug, Clone)]
pub struct IndexPath {
    text: String,
    steps: Vec<IndexStep>,
    is_subtree: bool,
}

impl IndexPath {
    /// Reads a path; a bare `/` is the root's wildcard.
    ///
    /// # Errors
    /// `InvalidPath`: it does not end in `/?` or `/*`, or a step is neither a name nor `[]`.
    pub fn parse(text: &str) -> Result<IndexPath, InvalidPath> {
        if text == "/" {
            return Ok(IndexPath::root());
        }
        let labels = Labels::new(text).collect::<Result<Vec<_>, _>>()?;
        let incomplete = InvalidPath { position: text.len() };
        let (end, steps) = labels.split_last().ok_or(incomplete)?;
        let is_subtree = match end.text {
            "*" if !end.is_quoted => true,
            "?" if !end.is_quoted && !steps.is_empty() => false,
            _ => return Err(end.name().map_or_else(|error| error, |_| incomplete)),
        };
        let step = |label: &Label<'_>| match label.text {
            "[]" if !label.is_quoted => Ok(IndexStep::Element),
            _ => label.name().map(|name| IndexStep::Name(name.to_owned())),
        };
        let steps = steps.iter().map(step).collect::<Result<_, _>>()?;
        Ok(IndexPath {
            text: text.to_owned(),
            steps,
            is_subtree,
        })
    }

    pub(super) fn root() -> IndexPath {
        IndexPath {
            text: ROOT_PATH.to_owned(),
            steps: Vec::new(),
            is_subtree: true,
        }
    }

    pub(super) fn etag() -> IndexPath {
        IndexPath {
            text: ETAG_PATH.to_owned(),
            steps: vec![IndexStep::Name("_etag".to_owned())],
            is_subtree: false,
        }
    }

    pub(super) fn read(text: &str) -> Result<IndexPath> {
        IndexPath::parse(text).map_err(|InvalidPath { position }| {
            Error::bad_request(format!(
                "The indexing path '{}' could not be accepted, failed near position '{position}'. Please ensure that the path is a valid \
                 path. Common errors include invalid characters or absence of quotes around labels.",
                excerpt(text)
            ))
        })
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The steps before the end.
    pub fn steps(&self) -> &[IndexStep] {
        &self.steps
    }

    /// Whether the path is `/*`.
    pub fn is_root(&self) -> bool {
        self.is_subtree && self.steps.is_empty()
    }

    /// Whether it covers the scalar at `path`.
    pub fn covers(&self, path: &[IndexStep]) -> bool {
        if self.is_subtree {
            path.starts_with(&self.steps)
        } else {
            path == self.steps
        }
    }

    /// If two paths cover the same scalar, the one with the higher precision decides.
    pub(super) fn precision(&self) -> (usize, bool) {
        (self.steps.len(), !self.is_subtree)
    }
}

impl PartialEq for IndexPath {
    fn eq(&self, other: &IndexPath) -> bool {
        self.steps == other.steps && self.is_subtree == other.is_subtree
    }
}

impl Eq for IndexPath {}

impl Hash for IndexPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.steps, self.is_subtree).hash(state);
    }
}

impl fmt::Display for IndexPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&excerpt(&self.text))
    }
}
