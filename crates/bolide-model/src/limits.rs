//! Limits. Source: cosmos-rest reference §3.6 unless stated otherwise.

/// Largest request body, in wire bytes, and largest stored item, in UTF-8 bytes.
pub const ITEM_BYTES: usize = 2 * 1024 * 1024;
/// Deepest nesting of arrays and objects in a document.
pub const NESTING: usize = 128;
/// Longest item id, in UTF-8 bytes.
pub const ITEM_ID_BYTES: usize = 1023;
/// Longest id of a database, container, script or user, in characters.
pub const RESOURCE_ID_CHARS: usize = 255;
/// Longest partition key value, in bytes. Under version 1 too, although its hash uses fewer bytes.
pub const PARTITION_KEY_BYTES: usize = 2048;
/// Maximum number of paths of a hierarchical partition key.
pub const PARTITION_KEY_PATHS: usize = 3;
/// Maximum number of unique key constraints of a container.
pub const UNIQUE_KEYS: usize = 10;
/// Maximum number of paths of one unique key constraint.
pub const UNIQUE_KEY_PATHS: usize = 16;
/// Maximum number of operations of one patch.
pub const PATCH_OPERATIONS: usize = 10;
/// Longest query text, in characters.
pub const QUERY_CHARS: usize = 512 * 1024;
/// Largest response page, in bytes.
pub const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of items of a page if the client does not set it.
pub const PAGE_ITEMS: usize = 1000;
/// Longest storage key, in bytes; engines must accept keys of this length.
pub const KEY_BYTES: usize = 8 * 1024;
/// Largest ttl, in seconds (TTL-007).
pub const TTL_SECONDS: i64 = 2_147_483_647;
/// Maximum number of paths of one composite index (cosmos-sql reference §21).
pub const COMPOSITE_INDEX_PATHS: usize = 8;
/// Maximum number of paths of all composite indexes of a container (cosmos-sql reference §21).
pub const COMPOSITE_PATHS: usize = 100;
/// Maximum number of computed properties of a container (cosmos-sql reference §21).
pub const COMPUTED_PROPERTIES: usize = 20;
/// Maximum number of dimensions of a vector (cosmos-sql reference §21).
pub const VECTOR_DIMENSIONS: u32 = 4096;
/// Maximum number of dimensions of a vector in a flat index (cosmos-sql reference §21).
pub const FLAT_VECTOR_DIMENSIONS: u32 = 505;
