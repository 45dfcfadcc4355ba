//! OP_COMPRESSED.

use std::io::{Read as _, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::error::MessageError;
use super::header::{Header, OpCode};
use super::reader::Reader;

/// Levels of zlib and zstd: their defaults.
const ZLIB_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// A compressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compressor {
    /// Copies.
    Noop,
    /// Snappy, the raw format of blocks.
    Snappy,
    /// zlib, with its header.
    Zlib,
    /// Zstandard.
    Zstd,
}

impl Compressor {
    /// Finds a compressor by the name with which clients offer it; not [`Compressor::Noop`], which is never offered.
    pub fn named(name: &str) -> Option<Compressor> {
        match name {
            "snappy" => Some(Compressor::Snappy),
            "zlib" => Some(Compressor::Zlib),
            "zstd" => Some(Compressor::Zstd),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Compressor::Noop => "noop",
            Compressor::Snappy => "snappy",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }

    fn id(self) -> u8 {
        match self {
            Compressor::Noop => 0,
            Compressor::Snappy => 1,
            Compressor::Zlib => 2,
            Compressor::Zstd => 3,
        }
    }

    /// Compresses a whole message, header included. `None` if that fails, or the result would not be shorter.
    pub fn compress(self, message: &[u8]) -> Option<Vec<u8>> {
        let header = Header::parse(message, message.len()).ok()?;
        let body = message.get(Header::BYTES..)?;
        let compressed = self.compress_body(body)?;
        let length = Header::BYTES + PREFIX_BYTES + compressed.len();
        if length >= message.len() {
            return None;
        }
        let mut bytes = Vec::with_capacity(length);
        let outer = Header {
            length,
            op_code: OpCode::Compressed.number(),
            ..header
        };
        outer.write(&mut bytes);
        bytes.extend_from_slice(&header.op_code.to_le_bytes());
        bytes.extend_from_slice(&i32::try_from(body.len()).ok()?.to_le_bytes());
        bytes.push(self.id());
        bytes.extend_from_slice(&compressed);
        Some(bytes)
    }

    fn compress_body(self, body: &[u8]) -> Option<Vec<u8>> {
        match self {
            Compressor::Noop => Some(body.to_vec()),
            Compressor::Snappy => snap::raw::Encoder::new().compress_vec(body).ok(),
            Compressor::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(ZLIB_LEVEL));
                encoder.write_all(body).ok()?;
                encoder.finish().ok()
            }
            Compressor::Zstd => zstd::bulk::compress(body, ZSTD_LEVEL).ok(),
        }
    }
}

/// Op code, size and compressor.
const PREFIX_BYTES: usize = 9;

/// A compressed message whose size is checked, and whose content is not.
#[derive(Debug, Clone)]
pub struct Compressed {
    /// The compressor.
    pub compressor: Compressor,
    /// Bytes of the message when it is decompressed, header included.
    pub length: usize,
    header: Header,
    content: Bytes,
}

impl Compressed {
    /// Reads a whole message, header included. When decompressed it must have at most `max_bytes`, so that a small message cannot become a huge one.
    ///
    /// # Errors
    /// A malformed prefix, an unknown compressor, a compressed message within, or one that is too long.
    pub fn parse(header: Header, bytes: Bytes, max_bytes: usize) -> Result<Compressed, MessageError> {
        let mut reader = Reader::new(&bytes, Header::BYTES);
        let op_code = reader.i32()?;
        let size = usize::try_from(reader.i32()?).ok();
        let id = reader.u8()?;
        if OpCode::of(op_code) != Some(OpCode::Msg) {
            let text = format!("only OP_MSG may be compressed. opCode={op_code}");
            return Err(MessageError::protocol(text));
        }
        let compressors = [Compressor::Noop, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd];
        let compressor = compressors.into_iter().find(|compressor| compressor.id() == id);
        let compressor = compressor.ok_or_else(|| MessageError::protocol(format!("unknown compressor. id={id}")))?;
        let length = size
            .and_then(|size| size.checked_add(Header::BYTES))
            .filter(|length| *length <= max_bytes);
        let length = length.ok_or_else(|| {
            MessageError::protocol(format!("a decompressed message must have at most {max_bytes} bytes"))
        })?;
        let content = bytes.slice(reader.at()..);
        let header = Header {
            length,
            op_code,
            ..header
        };
        Ok(Compressed {
            compressor,
            length,
            header,
            content,
        })
    }

    /// Decompresses the message, to its header and its body.
    ///
    /// # Errors
    /// The content is malformed, or its size differs from the size stated.
    pub fn decompress(&self) -> Result<(Header, Bytes), MessageError> {
        let mut message = Vec::with_capacity(self.length);
        self.header.write(&mut message);
        let size = self.length - Header::BYTES;
        let body = self.decompress_body(size);
        let body = body.filter(|body| body.len() == size);
        let body = body.ok_or_else(|| MessageError::protocol("a compressed message cannot be decompressed"))?;
        message.extend_from_slice(&body);
        Ok((self.header, message.into()))
    }

    fn decompress_body(&self, size: usize) -> Option<Bytes> {
        match self.compressor {
            Compressor::Noop => Some(self.content.clone()),
            Compressor::Snappy => {
                // Checked first: the library allocates what the content states.
                let stated = snap::raw::decompress_len(&self.content)
                    .ok()
                    .filter(|stated| *stated == size);
                stated
                    .and_then(|_| snap::raw::Decoder::new().decompress_vec(&self.content).ok())
                    .map(Bytes::from)
            }
            Compressor::Zlib => {
                let mut body = Vec::with_capacity(size);
                let limit = size as u64 + 1;
                ZlibDecoder::new(&*self.content)
                    .take(limit)
                    .read_to_end(&mut body)
                    .ok()?;
                Some(body.into())
            }
            Compressor::Zstd => zstd::bulk::decompress(&self.content, size).ok().map(Bytes::from),
        }
    }
}
