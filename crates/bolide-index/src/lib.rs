//! Index entries of documents: an encoding of values whose byte order is the order of the values.

pub mod codec;
pub mod decimal;
