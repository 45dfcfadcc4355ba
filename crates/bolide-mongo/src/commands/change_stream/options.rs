//! The options of `$changeStream`.

use bolide_mql::{Code, Error, Result};
use bson::raw::{RawBson, RawBsonRef};
use bson::{RawDocument, Timestamp};

use super::super::arguments::{Arguments, wrong_type};
use super::token::Token;

/// See the module.
#[derive(Debug, Clone)]
pub struct Options {
    /// `fullDocument`.
    pub full_document: FullDocument,
    /// `fullDocumentBeforeChange`.
    pub before_change: BeforeChange,
    /// Where the stream begins.
    pub start: Start,
    /// `allChangesForCluster`.
    pub is_for_cluster: bool,
    /// `showExpandedEvents`.
    pub is_expanded: bool,
}

/// Which document an update event has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullDocument {
    /// None.
    Default,
    /// The one that is stored when the event is returned.
    UpdateLookup,
    /// The one after the update, if the collection keeps images.
    WhenAvailable,
    /// The same, and it is an error if the collection keeps none.
    Required,
}

/// Whether events have the document before the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeforeChange {
    /// No.
    Off,
    /// If the collection keeps images.
    WhenAvailable,
    /// Yes, and it is an error if the collection keeps none.
    Required,
}

/// Where a stream begins.
#[derive(Debug, Clone)]
pub enum Start {
    /// With what is committed from now on.
    Now,
    /// `startAtOperationTime`.
    At(Timestamp),
    /// `resumeAfter`.
    Resume(Token),
    /// `startAfter`.
    After(Token),
}

impl Options {
    /// Reads the specification of the stage.
    ///
    /// # Errors
    /// `InvalidResumeToken`; 40674 and 50865 for several starts; errors of the fields.
    pub fn parse(specification: &RawBson) -> Result<Options> {
        let RawBsonRef::Document(document) = specification.as_raw_bson_ref() else {
            return Err(wrong_type(
                "$changeStream",
                specification.as_raw_bson_ref(),
                "type 'object'",
            ));
        };
        let mut fields = Arguments::of_document("$changeStream", document)?;
        let full_document = match fields.string("fullDocument")? {
            None | Some("default") => FullDocument::Default,
            Some("updateLookup") => FullDocument::UpdateLookup,
            Some("whenAvailable") => FullDocument::WhenAvailable,
            Some("required") => FullDocument::Required,
            Some(other) => return Err(unknown("fullDocument", other)),
        };
        let before_change = match fields.string("fullDocumentBeforeChange")? {
            None | Some("off") => BeforeChange::Off,
            Some("whenAvailable") => BeforeChange::WhenAvailable,
            Some("required") => BeforeChange::Required,
            Some(other) => return Err(unknown("fullDocumentBeforeChange", other)),
        };
        let resume = fields.document("resumeAfter")?;
        let after = fields.document("startAfter")?;
        let at = fields.timestamp("startAtOperationTime")?;
        let options = Options {
            full_document,
            before_change,
            start: start(resume, after, at)?,
            is_for_cluster: fields.boolean("allChangesForCluster")?.unwrap_or(false),
            is_expanded: fields.boolean("showExpandedEvents")?.unwrap_or(false),
        };
        fields.finish()?;
        Ok(options)
    }
}

fn start(resume: Option<&RawDocument>, after: Option<&RawDocument>, at: Option<Timestamp>) -> Result<Start> {
    match (resume, after, at) {
        (None, None, None) => Ok(Start::Now),
        (Some(token), None, None) => Ok(Start::Resume(Token::parse(token)?)),
        (None, Some(token), None) => Ok(Start::After(Token::parse(token)?)),
        (None, None, Some(at)) => Ok(Start::At(at)),
        (Some(_), Some(_), _) => {
            let text = "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage";
            Err(Error::new(50865, text))
        }
        _ => {
            let text = "Only one type of resume option is allowed, but multiple were found.";
            Err(Error::new(40674, text))
        }
    }
}

fn unknown(field: &str, value: &str) -> Error {
    let text = format!("Enumeration value '{value}' for field '$changeStream.{field}' is not a valid value.");
    Error::new(Code::BAD_VALUE, text)
}
