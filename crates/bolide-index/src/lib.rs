//! Index entries of documents: an encoding of values whose byte order is the order of the values, cells of places and shapes, and lists of similar vectors.

pub mod codec;
pub mod decimal;
pub mod spatial;
pub mod vector;
