//! Comparisons of strings by the rules of a language.

use std::cmp::Ordering;
use std::convert::Infallible;

use bson::{RawDocument, RawDocumentBuf};
use icu_collator::CollatorBorrowed;

/// Compares strings by the rules of a language. Made by `Collation::parse`, see `crate::collation`.
#[derive(Debug)]
pub struct Collation {
    collator: CollatorBorrowed<'static>,
    document: RawDocumentBuf,
}

impl Collation {
    /// Returns a collation with its rules, and its specification in full.
    pub fn new(collator: CollatorBorrowed<'static>, document: RawDocumentBuf) -> Collation {
        Collation { collator, document }
    }

    /// Compares two strings.
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        self.collator.compare(a, b)
    }

    /// Returns bytes that compare as the strings do; equal strings have equal bytes.
    pub fn sort_key(&self, text: &str) -> Vec<u8> {
        let mut key = Vec::new();
        let written: Result<(), Infallible> = self.collator.write_sort_key_to(text, &mut key);
        match written {
            Ok(()) => key,
        }
    }

    /// Returns the specification with all its fields, as listCollections and listIndexes show it.
    pub fn to_document(&self) -> &RawDocument {
        &self.document
    }
}

impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        self.document == other.document
    }
}
