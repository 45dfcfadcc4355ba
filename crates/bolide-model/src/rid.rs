//! Resource ids: the server's own ids, as opposed to the names that users choose.
//!
//! ```text
//!   offer        ooo                      3 bytes
//!   database     dddd                     4 bytes, the last one 0 while numbers are below 2^24
//!   container    dddd cccc                8 bytes, top bit of byte 4 set
//!   user         dddd uuuu                8 bytes, top bit of byte 4 clear
//!   item         dddd cccc nnnnnnnn      16 bytes, n little-endian, below 2^56: the type nibble (top of byte 15) is 0
//!   other child  dddd cccc nnnnnnnT      16 bytes, T the type nibble followed by four zero bits
//!   permission   dddd uuuu nnnnnnnn      16 bytes
//!   client encryption key  dddd 0000 nnnn 2000   16 bytes, n and the 2 little-endian
//! ```
//!
//! The text form is base64 with `-` instead of `/`, with padding. Item numbers rise with every insertion, because clients break ties of a sort by them.
//! Source: cosmos-rest §3.2.

use std::fmt;

use base64::Engine as _;
use base64::alphabet::Alphabet;
use base64::engine::general_purpose::{GeneralPurpose, PAD};

/// Standard base64, but `-` instead of `/`, so that a rid is one segment of a path. Not base64url: `+` is kept.
const BASE64: GeneralPurpose = GeneralPurpose::new(&ALPHABET, PAD);

const ALPHABET: Alphabet = match Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-") {
    Ok(alphabet) => alphabet,
    Err(_) => panic!("64 different printable characters"),
};

/// Longest rid as text: 16 bytes.
const TEXT_BYTES: usize = 24;

/// Distinguishes the second word of a container's rid from that of a user's.
const CONTAINER_BIT: u32 = 1 << 31;

/// A database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseRid([u8; 4]);

/// A container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerRid([u8; 8]);

/// An item. Ordered by container, then by insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemRid {
    /// The item's container.
    pub container: ContainerRid,
    /// Counts the container's insertions from 1. Below 2^56.
    pub number: u64,
}

/// Kinds of children of a container other than items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChildKind {
    /// A conflict.
    Conflict,
    /// A range of the effective partition key.
    PartitionKeyRange,
    /// A user-defined function.
    UserDefinedFunction,
    /// A trigger.
    Trigger,
    /// A stored procedure.
    StoredProcedure,
}

/// A child of a container that is not an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildRid {
    /// The child's container.
    pub container: ContainerRid,
    /// Its kind.
    pub kind: ChildKind,
    /// Unique among children of one kind. Below 2^56.
    pub number: u64,
}

/// A user of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserRid([u8; 8]);

/// A client encryption key of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EncryptionKeyRid {
    /// The database of the key.
    pub database: DatabaseRid,
    /// Counts the database's keys from 1.
    pub number: u32,
}

/// A permission of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermissionRid {
    /// The user of the permission.
    pub user: UserRid,
    /// Unique among the user's permissions.
    pub number: u64,
}

/// A throughput offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferRid([u8; 3]);

impl DatabaseRid {
    /// The rid of the database with this number, counted over the life of the account.
    pub fn new(number: u32) -> DatabaseRid {
        DatabaseRid(number.to_le_bytes())
    }

    /// The four bytes.
    pub fn bytes(self) -> [u8; 4] {
        self.0
    }

    /// The database with these bytes.
    pub const fn from_bytes(bytes: [u8; 4]) -> DatabaseRid {
        DatabaseRid(bytes)
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Option<DatabaseRid> {
        decode(text).map(DatabaseRid)
    }
}

impl ContainerRid {
    /// The rid of a database's container with this number, counted over the life of the database. Below 2^31; the top bit is
    /// taken.
    pub fn new(database: DatabaseRid, number: u32) -> ContainerRid {
        ContainerRid(join(database, number | CONTAINER_BIT))
    }

    /// The database it belongs to.
    pub fn database(self) -> DatabaseRid {
        database_of(self.0)
    }

    /// Its link by resource ids, as `_self` has it: `dbs/<database>/colls/<container>/`.
    pub fn self_link(self) -> String {
        format!("dbs/{}/colls/{self}/", self.database())
    }

    /// The eight bytes.
    pub fn bytes(self) -> [u8; 8] {
        self.0
    }

    /// The container with these bytes; `None` if they are not a container's.
    pub fn from_bytes(bytes: [u8; 8]) -> Option<ContainerRid> {
        is_container(bytes).then_some(ContainerRid(bytes))
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Option<ContainerRid> {
        decode(text).and_then(ContainerRid::from_bytes)
    }
}

impl ItemRid {
    /// An item's rid from its parts.
    pub fn new(container: ContainerRid, number: u64) -> ItemRid {
        ItemRid { container, number }
    }

    /// The sixteen bytes.
    pub fn bytes(self) -> [u8; 16] {
        concat(self.container.0, self.number)
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Option<ItemRid> {
        let (container, tail) = split(decode(text)?);
        let container = ContainerRid::from_bytes(container)?;
        (type_nibble(tail) == 0).then_some(ItemRid {
            container,
            number: tail,
        })
    }
}

impl ChildKind {
    const ALL: [ChildKind; 5] = [
        ChildKind::Conflict,
        ChildKind::PartitionKeyRange,
        ChildKind::UserDefinedFunction,
        ChildKind::Trigger,
        ChildKind::StoredProcedure,
    ];

    fn nibble(self) -> u64 {
        match self {
            ChildKind::Conflict => 0x4,
            ChildKind::PartitionKeyRange => 0x5,
            ChildKind::UserDefinedFunction => 0x6,
            ChildKind::Trigger => 0x7,
            ChildKind::StoredProcedure => 0x8,
        }
    }

    fn of_nibble(nibble: u64) -> Option<ChildKind> {
        ChildKind::ALL.into_iter().find(|kind| kind.nibble() == nibble)
    }
}

impl ChildRid {
    /// A child's rid from its parts.
    pub fn new(container: ContainerRid, kind: ChildKind, number: u64) -> ChildRid {
        ChildRid {
            container,
            kind,
            number,
        }
    }

    /// The sixteen bytes.
    pub fn bytes(self) -> [u8; 16] {
        concat(self.container.0, self.number | self.kind.nibble() << 60)
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Option<ChildRid> {
        let (container, tail) = split(decode(text)?);
        let container = ContainerRid::from_bytes(container)?;
        let kind = ChildKind::of_nibble(type_nibble(tail))?;
        Some(ChildRid {
            container,
            kind,
            number: tail & !(0xF << 60),
        })
    }
}

impl UserRid {
    /// The rid of a database's user with this number, counted over the life of the database. Below 2^31; the top bit is taken.
    pub fn new(database: DatabaseRid, number: u32) -> UserRid {
        UserRid(join(database, number & !CONTAINER_BIT))
    }

    /// The database it belongs to.
    pub fn database(self) -> DatabaseRid {
        database_of(self.0)
    }

    /// The eight bytes.
    pub fn bytes(self) -> [u8; 8] {
        self.0
    }

    /// The user with these bytes; `None` if they are not a user's.
    pub fn from_bytes(bytes: [u8; 8]) -> Option<UserRid> {
        (!is_container(bytes)).then_some(UserRid(bytes))
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Option<UserRid> {
        decode(text).and_then(UserRid::from_bytes)
    }
}

impl PermissionRid {
    /// A permission's rid from its parts.
    pub fn new(user: UserRid, number: u64) -> PermissionRid {
        PermissionRid { user, number }
    }

    /// The sixteen bytes.
    pub fn bytes(self) -> [u8; 16] {
        concat(self.user.0, self.number)
    }

    /// The permission with these bytes; `None` if they are not a permission's.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<PermissionRid> {
        let (user, number) = split(bytes);
        Some(PermissionRid {
            user: UserRid::from_bytes(user)?,
            number,
        })
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Option<PermissionRid> {
        decode(text).and_then(PermissionRid::from_bytes)
    }
}

impl EncryptionKeyRid {
    /// The last four bytes of every key's id.
    const KIND: u64 = 2;

    /// The sixteen bytes.
    pub fn bytes(self) -> [u8; 16] {
        concat(
            join(self.database, 0),
            u64::from(self.number) | EncryptionKeyRid::KIND << 32,
        )
    }

    /// The key with these bytes; `None` if they are not a key's.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<EncryptionKeyRid> {
        let (head, tail) = split(bytes);
        let is_key = head[4..] == [0; 4] && tail >> 32 == EncryptionKeyRid::KIND;
        is_key.then(|| EncryptionKeyRid {
            database: database_of(head),
            number: tail as u32,
        })
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Option<EncryptionKeyRid> {
        decode(text).and_then(EncryptionKeyRid::from_bytes)
    }
}

impl OfferRid {
    /// The rid of the offer with this number, counted over the life of the account. Below 2^24; higher bits are not used.
    pub fn new(number: u32) -> OfferRid {
        let [a, b, c, _] = number.to_le_bytes();
        OfferRid([a, b, c])
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Option<OfferRid> {
        decode(text).map(OfferRid)
    }
}

macro_rules! display_as_base64 {
    ($($rid:ty => $bytes:expr),* $(,)?) => {$(
        impl $rid {
            /// The text form.
            pub fn text(self) -> RidText {
                let bytes: fn($rid) -> _ = $bytes;
                RidText::of(&bytes(self))
            }
        }

        impl fmt::Display for $rid {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.text().as_str())
            }
        }
    )*};
}

display_as_base64! {
    DatabaseRid => |rid| rid.0,
    ContainerRid => |rid| rid.0,
    ItemRid => ItemRid::bytes,
    ChildRid => ChildRid::bytes,
    UserRid => |rid| rid.0,
    PermissionRid => PermissionRid::bytes,
    EncryptionKeyRid => EncryptionKeyRid::bytes,
    OfferRid => |rid| rid.0,
}

/// A resource id as text, for responses with several ids, without allocations.
#[derive(Debug, Clone, Copy)]
pub struct RidText {
    base64: [u8; TEXT_BYTES],
    length: usize,
}

impl RidText {
    fn of(bytes: &[u8]) -> RidText {
        let mut base64 = [0; TEXT_BYTES];
        let length = BASE64
            .encode_slice(bytes, &mut base64)
            .expect("no rid is longer than TEXT_BYTES as text");
        RidText { base64, length }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.base64[..self.length]).expect("base64 is ASCII")
    }
}

fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    // The decoder needs space for a complete last group, before it knows the padding.
    let mut bytes = [0; TEXT_BYTES];
    if text.len() > TEXT_BYTES {
        return None;
    }
    let length = BASE64.decode_slice(text, &mut bytes).ok()?;
    bytes[..length].try_into().ok()
}

fn join(database: DatabaseRid, second: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&database.0);
    bytes[4..].copy_from_slice(&second.to_be_bytes());
    bytes
}

fn database_of([a, b, c, d, ..]: [u8; 8]) -> DatabaseRid {
    DatabaseRid([a, b, c, d])
}

fn is_container(bytes: [u8; 8]) -> bool {
    bytes[4] & 0x80 != 0
}

fn concat(parent: [u8; 8], tail: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&parent);
    bytes[8..].copy_from_slice(&tail.to_le_bytes());
    bytes
}

fn split(bytes: [u8; 16]) -> ([u8; 8], u64) {
    let (mut parent, mut tail) = ([0; 8], [0; 8]);
    parent.copy_from_slice(&bytes[..8]);
    tail.copy_from_slice(&bytes[8..]);
    (parent, u64::from_le_bytes(tail))
}

fn type_nibble(tail: u64) -> u64 {
    tail >> 60
}

#[cfg(test)]
mod tests;
