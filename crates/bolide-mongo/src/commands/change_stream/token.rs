//! Resume tokens: `{_data: "hexadecimal"}`.
//!
//! ```text
//!   version(1) ‖ position ‖ kind(1)
//! ```
//!
//! Strings of one stream sort in the order of its events, as those of MongoDB do.

use bolide_core::StreamPosition;
use bolide_mql::{Code, Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawDocument, RawDocumentBuf, rawdoc};
use data_encoding::HEXUPPER;

const VERSION: u8 = 1;

/// What a token stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An event, or the time up to which there are none.
    Plain,
    /// An event after which the stream is invalid.
    BeforeInvalidation,
    /// The event that tells that the stream is invalid.
    Invalidation,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Plain, Kind::BeforeInvalidation, Kind::Invalidation];
}

/// A resume token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Where the stream goes on.
    pub position: StreamPosition,
    /// What it stands for.
    pub kind: Kind,
}

impl Token {
    /// The token of a position.
    pub fn new(position: StreamPosition, kind: Kind) -> Token {
        Token { position, kind }
    }

    /// As events and replies have it.
    pub fn to_document(self) -> RawDocumentBuf {
        let mut bytes = vec![VERSION];
        bytes.extend(self.position.to_bytes());
        bytes.push(self.kind as u8);
        rawdoc! { "_data": HEXUPPER.encode(&bytes) }
    }

    /// Reads a token that a client has kept.
    ///
    /// # Errors
    /// `InvalidResumeToken`.
    pub fn parse(document: &RawDocument) -> Result<Token> {
        let invalid = || {
            let text = format!("the resume token is not one of this server: {document:?}");
            Error::new(Code::INVALID_RESUME_TOKEN, text)
        };
        let Ok(Some(RawBsonRef::String(data))) = document.get("_data") else {
            return Err(invalid());
        };
        let bytes = HEXUPPER.decode(data.as_bytes()).map_err(|_| invalid())?;
        let Some(([VERSION], rest)) = bytes.split_first_chunk() else {
            return Err(invalid());
        };
        let (kind, position) = rest.split_last().ok_or_else(invalid)?;
        let kind = Kind::ALL.get(usize::from(*kind)).copied();
        let position = StreamPosition::from_bytes(position);
        kind.zip(position)
            .map(|(kind, position)| Token { position, kind })
            .ok_or_else(invalid)
    }
}
