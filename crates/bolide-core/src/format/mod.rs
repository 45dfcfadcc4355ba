//! What the bytes in a partition mean: keys, records, entity tags.

pub(crate) mod digest;
pub(crate) mod entries;
pub(crate) mod etag;
pub(crate) mod key_interval;
pub(crate) mod keys;
pub(crate) mod queues;
pub(crate) mod record;
pub(crate) mod text_entries;
