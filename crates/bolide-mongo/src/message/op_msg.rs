//! OP_MSG: a command with its document sequences.

use std::ops::Range;

use bolide_mql::Code;
use bson::RawDocument;
use bytes::Bytes;

use super::error::MessageError;
use super::header::Header;
use super::reader::Reader;
use crate::limits;

/// A checksum follows the sections.
pub const CHECKSUM_PRESENT: u32 = 1;
/// In a request: no reply must be sent. In a reply: another reply follows.
pub const MORE_TO_COME: u32 = 1 << 1;
/// The client accepts several replies.
pub const EXHAUST_ALLOWED: u32 = 1 << 16;
/// Flags that a receiver must know; those above may be ignored.
const REQUIRED_FLAGS: u32 = 0xffff;

const CHECKSUM_BYTES: usize = 4;

/// A command as it was sent. Every document in it is valid.
#[derive(Debug, Clone)]
pub struct OpMsg {
    /// See the constants.
    pub flags: u32,
    /// The whole message.
    bytes: Bytes,
    command: Range<usize>,
    sequences: Vec<Sequence>,
}

/// A document sequence: the documents of one field, outside of the command's document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// The name of the field.
    pub identifier: String,
    /// The number of documents.
    pub count: usize,
    documents: Range<usize>,
}

impl OpMsg {
    /// Reads a whole message, header included.
    ///
    /// # Errors
    /// `IllegalOpMsgFlag`, `ChecksumMismatch`, `InvalidBSON`, and `ProtocolError` for everything else that is malformed.
    pub fn parse(bytes: Bytes) -> Result<OpMsg, MessageError> {
        let mut reader = Reader::new(&bytes, Header::BYTES);
        let flags = reader.u32()?;
        let unknown = flags & REQUIRED_FLAGS & !(CHECKSUM_PRESENT | MORE_TO_COME);
        if unknown != 0 {
            let text = format!("Message contains illegal flags value: Ob{flags:b}");
            return Err(MessageError::new(Code::ILLEGAL_OP_MSG_FLAG, text));
        }
        let end = if flags & CHECKSUM_PRESENT != 0 {
            check_sum(&bytes)?
        } else {
            bytes.len()
        };
        let sections = &bytes[..end];
        let mut reader = Reader::new(sections, reader.at());
        let (mut command, mut sequences) = (None, Vec::new());
        while !reader.is_at_end() {
            match reader.u8()? {
                0 if command.is_some() => {
                    return Err(MessageError::protocol("an OP_MSG message has two command documents"));
                }
                0 => command = Some(reader.document()?),
                1 => sequences.push(sequence(sections, &mut reader)?),
                kind => return Err(MessageError::protocol(format!("unknown kind of section. kind={kind}"))),
            }
            if sequences.len() > limits::SECTIONS {
                return Err(MessageError::protocol("an OP_MSG message has too many sections"));
            }
        }
        let command = command.ok_or_else(|| MessageError::protocol("an OP_MSG message has no command document"))?;
        let message = OpMsg {
            flags,
            command,
            sequences,
            bytes,
        };
        message.check_identifiers()?;
        Ok(message)
    }

    /// A command without sequences, from its document, which is valid.
    pub fn of_document(document: &RawDocument) -> OpMsg {
        OpMsg {
            flags: 0,
            bytes: Bytes::copy_from_slice(document.as_bytes()),
            command: 0..document.as_bytes().len(),
            sequences: Vec::new(),
        }
    }

    /// The command's document.
    pub fn command(&self) -> &RawDocument {
        document(&self.bytes[self.command.clone()])
    }

    /// The document sequences.
    pub fn sequences(&self) -> &[Sequence] {
        &self.sequences
    }

    /// The documents of a sequence; `None` if there is none with this name.
    pub fn documents(&self, identifier: &str) -> Option<impl Iterator<Item = &RawDocument> + Clone> {
        let sequence = self
            .sequences
            .iter()
            .find(|sequence| sequence.identifier == identifier)?;
        let mut rest = &self.bytes[sequence.documents.clone()];
        Some(std::iter::from_fn(move || {
            let length = rest.first_chunk().copied().map(i32::from_le_bytes)?;
            let (first, others) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            rest = others;
            Some(document(first))
        }))
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Bytes of the whole message.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// A sequence is the same as an array field of its name, so neither may be there twice.
    fn check_identifiers(&self) -> Result<(), MessageError> {
        for (at, sequence) in self.sequences.iter().enumerate() {
            let name = &sequence.identifier;
            let is_twice = self.sequences[..at].iter().any(|other| other.identifier == *name);
            let is_field = self.command().get(name).is_ok_and(|field| field.is_some());
            if is_twice || is_field {
                let text = format!("an OP_MSG message has two values for the same field. name=`{name}`");
                return Err(MessageError::protocol(text));
            }
        }
        Ok(())
    }
}

/// Checks the CRC-32C at the end; returns where it begins.
fn check_sum(bytes: &[u8]) -> Result<usize, MessageError> {
    let sum = bytes.last_chunk::<CHECKSUM_BYTES>().copied().map(u32::from_le_bytes);
    let end = bytes
        .len()
        .checked_sub(CHECKSUM_BYTES)
        .filter(|end| *end >= Header::BYTES + 4);
    match (end, sum) {
        (Some(end), Some(sum)) if crc32c::crc32c(&bytes[..end]) == sum => Ok(end),
        (Some(_), _) => Err(MessageError::new(
            Code::CHECKSUM_MISMATCH,
            "OP_MSG checksum does not match contents.",
        )),
        (None, _) => Err(MessageError::protocol("the message ends too early")),
    }
}

fn sequence<'a>(bytes: &'a [u8], reader: &mut Reader<'a>) -> Result<Sequence, MessageError> {
    let start = reader.at();
    let end = usize::try_from(reader.i32()?)
        .ok()
        .and_then(|size| start.checked_add(size));
    let end = end.filter(|end| (reader.at()..=bytes.len()).contains(end));
    let end = end.ok_or_else(|| MessageError::protocol("the length of a section is not that of its bytes"))?;
    let mut inner = Reader::new(&bytes[..end], reader.at());
    let identifier = inner.cstring()?.to_owned();
    let documents = inner.at()..end;
    let mut count = 0;
    while !inner.is_at_end() {
        inner.document()?;
        count += 1;
    }
    *reader = Reader::new(bytes, end);
    Ok(Sequence {
        identifier,
        count,
        documents,
    })
}

/// A document that was validated before.
fn document(bytes: &[u8]) -> &RawDocument {
    RawDocument::from_bytes(bytes).expect("messages are validated when they are parsed")
}
