//! Operations: one row of [`table`] for each.
//!
//! A new operation is a row there and its handler in `operations`; its name in metrics and fault rules, its requests, its rights and its handler
//! follow from the row.

mod rights;
mod table;

use bolide_core::ScriptKind::StoredProcedure;
use bolide_model::account_key::Access;
use http::{HeaderMap, Method};

use crate::routes::{PathKind, Route};
use crate::status::{Failure, METHOD_NOT_ALLOWED, NOT_FOUND};
use crate::wire::headers;
use rights::{ALL, NONE, READ};
pub(crate) use rights::{Bound, Rights};
pub(crate) use table::operations;

/// The table's entry for an operation.
#[derive(Debug)]
struct Row {
    operation: Operation,
    name: &'static str,
    rights: Rights,
    subject: Subject,
    body: Body,
}

/// The verbs of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// The headers that a request needs for an operation.
#[derive(Debug, Clone, Copy)]
enum When {
    /// No special header.
    Always,
    /// The body is a query.
    Query,
    /// An existing resource is replaced.
    Upsert,
    /// The body is a batch or bulk request.
    Batch,
    /// A query is planned.
    QueryPlan,
    /// A mode of the change feed.
    Changes,
}

/// Whether an operation is on items, so that a token for a partition key allows it for items of that key only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Items,
    Other,
}

/// The kind of an operation's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// The definition of a resource other than items and scripts. It stays in memory.
    Definition,
    /// Anything else.
    Content,
    /// As `Content`, for a write whose response may be much larger than it.
    Growing,
}

macro_rules! define {
    ($(
        $name:ident {
            $verb:ident $place:ident $(($kind:pat))? $when:ident
            | $key:ident $container:ident $partition_key:ident $item:ident $script:ident
            | $subject:ident $body:ident
        } => $how:ident $file:ident :: $handler:ident;
    )*) => {
        /// The operation of a request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Operation {
            $($name,)*
        }

        /// The rows in the order of the operations' numbers.
        const ROWS: &[Row] = &[$(
            Row {
                operation: Operation::$name,
                name: stringify!($name),
                rights: Rights::new(Access::$key, [$container, $partition_key, $item, $script]),
                subject: Subject::$subject,
                body: Body::$body,
            },
        )*];

        /// The first operation whose verb, path and headers match a request. A `match`, so that each request is compared only with the few rows of
        /// its verb and path.
        ///
        /// # Errors
        /// 400 for an unknown mode of the change feed.
        fn find(verb: Verb, kind: PathKind, headers: &HeaderMap) -> Result<Option<Operation>, Failure> {
            Ok(match (verb, kind) {
                $((Verb::$verb, PathKind::$place $(($kind))?) if When::$when.is_matched(headers)? => Some(Operation::$name),)*
                _ => None,
            })
        }

        /// Whether a path has operations, with any verb.
        fn has_operations(kind: PathKind) -> bool {
            $(matches!(kind, PathKind::$place $(($kind))?))||*
        }
    };
}

operations!(define);

impl Operation {
    /// All of them, in the order of their numbers.
    pub(crate) fn all() -> impl Iterator<Item = Operation> {
        ROWS.iter().map(|row| row.operation)
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Its name in metrics and fault rules.
    pub(crate) fn name(self) -> &'static str {
        self.row().name
    }

    /// The required rights.
    pub(crate) fn rights(self) -> Rights {
        self.row().rights
    }

    /// Whether it changes nothing and returns nothing with more rights: read-only keys may do it, and it is checked against a session token.
    pub(crate) fn is_read(self) -> bool {
        self.rights().key == Access::ReadOnly
    }

    /// Whether it is on items, so that a token for a partition key allows it for items of that key only.
    pub(crate) fn is_on_items(self) -> bool {
        self.row().subject == Subject::Items
    }

    /// Whether its body defines a resource other than items and scripts.
    pub(crate) fn has_definition_body(self) -> bool {
        self.row().body == Body::Definition
    }

    /// Whether it is a write whose response may be much larger than its request.
    pub(crate) fn is_growing(self) -> bool {
        self.row().body == Body::Growing
    }

    /// Whether another server may carry it out for this one: a write of one item whose response is not larger than its request.
    pub(crate) fn is_forwardable(self) -> bool {
        use Operation::{CreateItem, DeleteItem, ReplaceItem, UpsertItem};
        matches!(self, CreateItem | UpsertItem | ReplaceItem | DeleteItem)
    }

    /// Finds the operation of a request.
    ///
    /// # Errors
    /// 404 for unknown paths, 405 for unsupported verbs, 400 for direct mode and unknown feeds.
    pub(crate) fn of(route: &Route<'_>, method: &Method, headers: &HeaderMap) -> Result<Operation, Failure> {
        let verb = Verb::of(method).ok_or_else(|| not_allowed(method, route))?;
        if let Some(operation) = find(verb, route.kind, headers)? {
            return Ok(operation);
        }
        if has_operations(route.kind) {
            return Err(not_allowed(method, route));
        }
        Err(Failure::new(
            NOT_FOUND,
            format!("no such resource path. path=`/{}`", route.path),
        ))
    }
}

impl Verb {
    fn of(method: &Method) -> Option<Verb> {
        match method.as_str() {
            // `HEAD /` is a health probe of some clients; its body is dropped later.
            "GET" | "HEAD" => Some(Verb::Get),
            "POST" => Some(Verb::Post),
            "PUT" => Some(Verb::Put),
            "PATCH" => Some(Verb::Patch),
            "DELETE" => Some(Verb::Delete),
            _ => None,
        }
    }
}

impl When {
    /// # Errors
    /// 400 for an unknown mode of the change feed.
    fn is_matched(self, headers: &HeaderMap) -> Result<bool, Failure> {
        Ok(match self {
            When::Always => true,
            When::Query => headers::is_query(headers),
            When::Upsert => headers::flag(headers, &headers::IS_UPSERT),
            When::Batch => headers::flag(headers, &headers::IS_BATCH),
            When::QueryPlan => headers::flag(headers, &headers::IS_QUERY_PLAN),
            When::Changes => asks_for_changes(headers)?,
        })
    }
}

fn asks_for_changes(headers: &HeaderMap) -> Result<bool, Failure> {
    let Some(mode) = headers::non_empty(headers, &headers::A_IM)? else {
        return Ok(false);
    };
    let modes = [headers::LATEST_VERSIONS, headers::ALL_VERSIONS];
    if modes.iter().any(|known| mode.eq_ignore_ascii_case(known)) {
        return Ok(true);
    }
    Err(Failure::bad_request(format!(
        "unknown change feed mode in header `A-IM`. value=`{mode}`"
    )))
}

fn not_allowed(method: &Method, route: &Route<'_>) -> Failure {
    Failure::new(
        METHOD_NOT_ALLOWED,
        format!("`{method}` means nothing here. path=`/{}`", route.path),
    )
}

#[cfg(test)]
mod tests;
