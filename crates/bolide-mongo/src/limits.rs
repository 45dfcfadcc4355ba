//! Limits for clients. Source: mongo.md §16; those of unauthenticated connections and of memory are our own.

use std::time::Duration;

/// Maximum size of a message, in bytes: what hello reports, and room for the fields that drivers add without counting them.
pub const MESSAGE_BYTES: usize = REPORTED_MESSAGE_BYTES + 16 * 1024;
/// `maxMessageSizeBytes` of hello.
pub const REPORTED_MESSAGE_BYTES: usize = 48_000_000;
/// Maximum size of a message before authentication, in bytes: a hello with client metadata and a first SCRAM message has less than 2 KiB.
pub const UNAUTHENTICATED_MESSAGE_BYTES: usize = 64 * 1024;
/// Maximum size of a document of a user, in bytes.
pub const DOCUMENT_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of statements of a write command.
pub const WRITE_BATCH: usize = 100_000;
/// Maximum number of fields of a command. Its known fields are some tens; documents of users are inside them.
pub const COMMAND_FIELDS: usize = 1_000;
/// Maximum number of sections of a message. Commands have at most two document sequences.
pub const SECTIONS: usize = 16;

/// Maximum size of what a client tells about itself, in bytes.
pub const CLIENT_METADATA_BYTES: usize = 512;
/// Maximum length of the name of an application, in bytes.
pub const APPLICATION_NAME_BYTES: usize = 128;

/// Time for the first message of a connection to arrive completely.
pub const FIRST_MESSAGE: Duration = Duration::from_secs(10);
/// Bytes per second that a client must send or take at least, after the timeout of a request.
pub const SLOWEST_BYTES_PER_SECOND: usize = 16 * 1024;
/// Failed authentications after which a connection is closed.
pub const FAILED_AUTHENTICATIONS: u32 = 10;
/// Maximum wait of an awaitable hello.
pub const MAX_AWAIT: Duration = Duration::from_secs(600);

/// Maximum number of users (mongo.md §16).
pub const USERS: u64 = 10_000;
/// Size of all users, with their roles and what is stored with them, from which on none is added or changed, in bytes: `usersInfo` reads all of them.
pub const USERS_BYTES: u64 = 32 * 1024 * 1024;
/// Maximum size of what a client stores with a user, in bytes.
pub const CUSTOM_DATA_BYTES: usize = 64 * 1024;

/// Time after which an unused session is forgotten.
pub const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);
/// Maximum number of sessions.
pub const SESSIONS: usize = 100_000;
/// Maximum number of sessions in one `endSessions` or `refreshSessions`.
pub const SESSIONS_PER_COMMAND: usize = 10_000;
/// How long a command waits while the account's content is replaced by a snapshot.
pub const REPLACEMENT: Duration = Duration::from_secs(10);
/// Time for which a snapshot of a read outside of transactions stays readable.
pub const SNAPSHOT: Duration = Duration::from_secs(60);
/// Maximum number of such snapshots.
pub const SNAPSHOTS: usize = 256;
/// Time after which an unused cursor is closed.
pub const CURSOR_IDLE: Duration = Duration::from_secs(10 * 60);
/// Maximum number of open cursors.
pub const CURSORS: usize = 10_000;
/// Documents of a first batch without `batchSize`.
pub const FIRST_BATCH_DOCUMENTS: usize = 101;
/// Maximum size of the documents of one batch, in bytes; a single document may be larger.
pub const BATCH_BYTES: usize = DOCUMENT_BYTES;

/// Bytes from which a message is decompressed and validated, or a reply compressed, on a thread of its own.
pub const LONG_MESSAGE_BYTES: usize = 256 * 1024;
/// Messages up to this size take memory from the part that is kept for small requests.
pub const SMALL_MESSAGE_BYTES: usize = 64 * 1024;
/// Replies up to this size are not compressed.
pub const SMALL_REPLY_BYTES: usize = 512;
