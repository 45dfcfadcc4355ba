//! Why a message cannot be used.

use bolide_mql::{Code, Error};

/// The message is malformed. The connection is closed, because what follows might be misread; before that the error is sent, if a reply is due.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct MessageError(pub Error);

impl MessageError {
    /// An error with this text, lowercase.
    pub fn protocol(text: impl Into<String>) -> MessageError {
        MessageError(Error::new(Code::PROTOCOL_ERROR, text))
    }

    /// A document that is not BSON.
    pub fn bson(text: impl Into<String>) -> MessageError {
        MessageError(Error::new(Code::INVALID_BSON, text))
    }

    /// Another error.
    pub fn new(code: Code, text: impl Into<String>) -> MessageError {
        MessageError(Error::new(code, text))
    }
}
