//! What commands on documents share: collections by their names, the documents to write, reads and writes inside and outside of transactions.

pub mod changes;
pub mod collections;
pub mod drafts;
pub mod expanded_events;
pub mod find;
pub mod in_order;
pub mod index_range;
pub mod indexes;
pub mod language;
pub mod metadata;
pub mod options;
pub mod order;
pub mod pipeline;
pub mod retry;
pub mod sink;
pub mod statements;
pub mod statistics;
pub mod tasks;
pub mod validation;
pub mod views;
pub mod writer;
