//! The binary protocol of Cosmos DB's direct mode, "RNTBD", as values: frames, tokens, and the tables of both. Nothing here reads or writes a socket.
//!
//! ```text
//!   request    length u32 │ resource type u16 │ operation type u16 │ activity id 16 │ tokens … │ payload length u32 │ payload
//!   response   length u32 │ status u32                             │ activity id 16 │ tokens … │ payload length u32 │ payload
//!              ◀────────────────────────── length bytes: the head ──────────────────────────▶   ◀─ if a token says so ─▶
//!   token      id u16 │ type u8 │ value
//! ```
//!
//! All integers are little-endian. The first frame each way negotiates the connection ([`context`]); all others carry what requests and responses carry
//! over HTTP ([`table`] has the header of each token), matched by a number that the client chooses, in any order.
//!
//! Source: rntbd.md.

pub mod context;
pub mod frame;
pub mod table;
pub mod token;
