//! What a client asks for, and how it is said over HTTP and in a frame: each has its own table here, made from rntbd.md §4 and §5, so that the
//! server's is not compared with itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXUPPER;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::frames::{Sent, SentTokens};

/// A type of resource (rntbd.md §4.1), and below its segments of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Database = 0x01,
    Container = 0x02,
    Item = 0x03,
    User = 0x05,
    Permission = 0x06,
    Procedure = 0x07,
    Conflict = 0x08,
}

/// A type of operation (rntbd.md §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create = 0x01,
    Patch = 0x02,
    Read = 0x03,
    ReadFeed = 0x04,
    Delete = 0x05,
    Replace = 0x06,
    Execute = 0x08,
    /// A query as plain text.
    SqlQuery = 0x09,
    Query = 0x0F,
    /// A barrier: how far a range is, and how far the databases are.
    Head = 0x11,
    HeadFeed = 0x12,
    Upsert = 0x13,
    Batch = 0x25,
}

/// Which part of a container a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Nothing,
    Key(&'static str),
    Range(u32),
}

/// Who sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// The account's key.
    Key,
    ReadOnlyKey,
    /// A key that the account does not have.
    OtherKey,
    /// The token of a permission.
    Token(&'static str),
}

/// More of a request: a token, and the header that says the same.
#[derive(Debug, Clone)]
pub enum More {
    Text(u16, &'static str, String),
    Number(u16, &'static str, u32),
    Flag(u16, &'static str, bool),
    /// One of several words, which have numbers.
    Word(u16, &'static str, u8, &'static str),
    /// Bytes that are text.
    Ascii(u16, &'static str, String),
    /// Bytes that are hexadecimal over HTTP.
    Bytes(u16, &'static str, Vec<u8>),
    /// A position.
    Position(u16, &'static str, i64),
    /// The etag that the resource has now, as a condition.
    OwnEtag,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Call {
    pub resource: Resource,
    pub operation: Operation,
    pub container: &'static str,
    pub user: &'static str,
    /// The last name of the path; none for a feed.
    pub leaf: Option<String>,
    pub scope: Scope,
    pub body: Vec<u8>,
    pub more: Vec<More>,
    pub sender: Sender,
}

/// A segment of a path: its keyword, the token of its name, and the name. Of a feed the last one has no name.
pub type Segment = (&'static str, u16, Option<String>);

impl Resource {
    pub fn keyword(self) -> &'static str {
        match self {
            Resource::Database => "dbs",
            Resource::Container => "colls",
            Resource::Item => "docs",
            Resource::User => "users",
            Resource::Permission => "permissions",
            Resource::Procedure => "sprocs",
            Resource::Conflict => "conflicts",
        }
    }

    fn name_token(self) -> u16 {
        match self {
            Resource::Database => 0x15,
            Resource::Container => 0x16,
            Resource::Item => 0x17,
            Resource::User => 0x19,
            Resource::Permission => 0x1A,
            Resource::Procedure => 0x1B,
            Resource::Conflict => 0x20,
        }
    }
}

impl Operation {
    /// Whether it adds to a feed, or reads one.
    pub fn is_of_feed(self) -> bool {
        use Operation::{Batch, Create, HeadFeed, Query, ReadFeed, SqlQuery, Upsert};
        matches!(self, Create | ReadFeed | Query | SqlQuery | HeadFeed | Upsert | Batch)
    }

    pub fn is_read(self) -> bool {
        use Operation::{Query, Read, ReadFeed, SqlQuery};
        matches!(self, Read | ReadFeed | Query | SqlQuery) || self.is_barrier()
    }

    pub fn is_barrier(self) -> bool {
        matches!(self, Operation::Head | Operation::HeadFeed)
    }

    pub fn method(self) -> &'static str {
        match self {
            Operation::Patch => "PATCH",
            Operation::Read | Operation::ReadFeed => "GET",
            Operation::Head | Operation::HeadFeed => "HEAD",
            Operation::Delete => "DELETE",
            Operation::Replace => "PUT",
            _ => "POST",
        }
    }

    /// The headers that say the same over HTTP.
    fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Operation::Patch => &[("content-type", "application/json_patch+json")],
            Operation::Query => &[
                ("x-ms-documentdb-isquery", "True"),
                ("x-ms-documentdb-query-enablecrosspartition", "True"),
                ("content-type", "application/query+json"),
            ],
            Operation::SqlQuery => &[
                ("x-ms-documentdb-isquery", "True"),
                ("x-ms-documentdb-query-enablecrosspartition", "True"),
                ("content-type", "application/sql"),
            ],
            Operation::Upsert => &[("x-ms-documentdb-is-upsert", "True")],
            Operation::Batch => &[("x-ms-cosmos-is-batch-request", "True")],
            _ => &[],
        }
    }

    /// The header of token `Match`.
    fn condition(self) -> &'static str {
        match self {
            Operation::Read | Operation::ReadFeed => "if-none-match",
            _ => "if-match",
        }
    }
}

impl Call {
    pub fn new(resource: Resource, operation: Operation, container: &'static str) -> Call {
        Call {
            resource,
            operation,
            container,
            user: "",
            leaf: None,
            scope: Scope::Nothing,
            body: Vec::new(),
            more: Vec::new(),
            sender: Sender::Key,
        }
    }

    pub fn leaf(mut self, name: &str) -> Call {
        self.leaf = Some(name.to_owned());
        self
    }

    pub fn key(mut self, key: &'static str) -> Call {
        self.scope = Scope::Key(key);
        self
    }

    pub fn range(mut self, range: u32) -> Call {
        self.scope = Scope::Range(range);
        self
    }

    pub fn by(mut self, sender: Sender) -> Call {
        self.sender = sender;
        self
    }

    pub fn body(mut self, body: impl AsRef<[u8]>) -> Call {
        self.body = body.as_ref().to_vec();
        self
    }

    /// Adds a token, or replaces it.
    pub fn with(mut self, more: More) -> Call {
        self.more.retain(|other| other.token() != more.token());
        self.more.push(more);
        self
    }

    /// With a condition on the etag.
    pub fn matching(self, etag: &str) -> Call {
        let header = self.operation.condition();
        self.with(More::Text(0x08, header, etag.to_owned()))
    }

    pub fn continuing(self, continuation: &str) -> Call {
        self.with(More::Text(0x06, "x-ms-continuation", continuation.to_owned()))
    }

    pub fn page(self, items: u32) -> Call {
        self.with(More::Number(0x04, "x-ms-max-item-count", items))
    }

    pub fn session(self, token: &str) -> Call {
        self.with(More::Text(0x05, "x-ms-session-token", token.to_owned()))
    }

    pub fn session_token(&self) -> Option<&str> {
        self.more.iter().find_map(|more| match more {
            More::Text(0x05, _, token) => Some(token.as_str()),
            _ => None,
        })
    }

    /// Whether it is about databases, containers, users or permissions themselves.
    pub fn is_of_master(&self) -> bool {
        // A barrier names the container, and asks one of its ranges.
        if self.operation == Operation::Head {
            return false;
        }
        !matches!(self.resource, Resource::Item | Resource::Procedure | Resource::Conflict)
    }

    /// The path, by names.
    pub fn segments(&self, database: &str) -> Vec<Segment> {
        let segment = |resource: Resource, name: Option<String>| (resource.keyword(), resource.name_token(), name);
        let leaf = match (self.resource, self.operation.is_of_feed()) {
            (_, true) => None,
            (Resource::Database, false) => self.leaf.clone().or_else(|| Some(database.to_owned())),
            _ => self.leaf.clone(),
        };
        let last = segment(self.resource, leaf);
        let of_database = || segment(Resource::Database, Some(database.to_owned()));
        match self.resource {
            Resource::Database => vec![last],
            Resource::Container | Resource::User => vec![of_database(), last],
            Resource::Permission => vec![of_database(), segment(Resource::User, Some(self.user.to_owned())), last],
            Resource::Item | Resource::Procedure | Resource::Conflict => {
                let container = segment(Resource::Container, Some(self.container.to_owned()));
                vec![of_database(), container, last]
            }
        }
    }

    /// The headers over HTTP, besides those of the client.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers: Vec<(&str, String)> = self
            .operation
            .headers()
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        match self.scope {
            Scope::Nothing => {}
            Scope::Key(key) => headers.push(("x-ms-documentdb-partitionkey", key.to_owned())),
            Scope::Range(range) => headers.push(("x-ms-documentdb-partitionkeyrangeid", range.to_string())),
        }
        headers.extend(self.more.iter().filter_map(More::header));
        headers
    }

    /// The tokens of the same that do not depend on how it is addressed.
    pub fn tokens(&self) -> SentTokens {
        let mut tokens: SentTokens = self.more.iter().filter_map(More::sent).collect();
        match self.scope {
            Scope::Key(key) => {
                tokens.insert(0x2B, Sent::Text(key.to_owned()));
            }
            Scope::Range(range) => {
                tokens.insert(0x2C, Sent::Text(range.to_string()));
            }
            Scope::Nothing => {}
        }
        tokens
    }
}

impl More {
    fn token(&self) -> u16 {
        match self {
            More::Text(token, ..)
            | More::Number(token, ..)
            | More::Flag(token, ..)
            | More::Word(token, ..)
            | More::Ascii(token, ..)
            | More::Bytes(token, ..)
            | More::Position(token, ..) => *token,
            More::OwnEtag => 0x08,
        }
    }

    fn header(&self) -> Option<(&'static str, String)> {
        Some(match self {
            More::Text(_, header, text) | More::Ascii(_, header, text) => (header, text.clone()),
            More::Number(_, header, u32::MAX) => (header, "-1".to_owned()),
            More::Number(_, header, number) => (header, number.to_string()),
            More::Bytes(_, header, bytes) => (header, HEXUPPER.encode(bytes)),
            More::Position(_, header, position) => (header, position.to_string()),
            More::Flag(_, header, true) => (header, "True".to_owned()),
            More::Flag(_, header, false) => (header, "False".to_owned()),
            More::Word(_, header, _, word) => (header, (*word).to_owned()),
            More::OwnEtag => return None,
        })
    }

    fn sent(&self) -> Option<(u16, Sent)> {
        let sent = match self {
            More::Text(_, _, text) => Sent::Text(text.clone()),
            More::Number(_, _, number) => Sent::ULong(*number),
            More::Flag(_, _, is_set) => Sent::Byte(u8::from(*is_set)),
            More::Word(_, _, number, _) => Sent::Byte(*number),
            More::Ascii(_, _, text) => Sent::Bytes(text.clone().into_bytes()),
            More::Bytes(_, _, bytes) => Sent::Bytes(bytes.clone()),
            More::Position(_, _, position) => Sent::LongLong(*position),
            More::OwnEtag => return None,
        };
        Some((self.token(), sent))
    }
}

/// A path, with its names escaped.
pub fn path(segments: &[Segment]) -> String {
    let text = |(keyword, _, name): &Segment| match name {
        Some(name) => format!("/{keyword}/{}", utf8_percent_encode(name, NON_ALPHANUMERIC)),
        None => format!("/{keyword}"),
    };
    segments.iter().map(text).collect()
}

/// The link that is signed for a path by names: these are not escaped.
pub fn link(segments: &[Segment]) -> String {
    let named = segments
        .iter()
        .filter_map(|(keyword, _, name)| Some(format!("{keyword}/{}", name.as_ref()?)));
    named.collect::<Vec<_>>().join("/")
}

/// The bytes of a resource id.
pub fn rid_bytes(rid: &str) -> Vec<u8> {
    STANDARD.decode(rid.replace('-', "/")).expect("a resource id")
}

/// The text of a resource id.
pub fn rid_text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes).replace('/', "-")
}
