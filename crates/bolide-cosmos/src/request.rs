//! An admitted request for an operation: its sender, its head and its body.

use bolide_core::{Account, RequestContext};
use bolide_model::account_key::Access;
use bolide_model::partition_key::PartitionKey;
use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;

use crate::listener::Listener;
use crate::operation::Operation;
use crate::resource_token::Grant;
use crate::routes::Route;
use crate::state::State;

/// Who sent a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sender {
    /// A holder of an account key.
    Key(Access),
    /// A holder of a resource token for a user's permission.
    Token(Box<Grant>),
}

impl Sender {
    /// Checks that the sender may access a partition key.
    ///
    /// # Errors
    /// `Forbidden` for a resource token of another key, or without a key.
    pub(crate) fn check_key(&self, key: Option<&PartitionKey>) -> bolide_model::Result<()> {
        match self {
            Sender::Key(_) => Ok(()),
            Sender::Token(grant) => grant.check_key(key),
        }
    }

    /// Whether the sender holds a token for one item.
    pub(crate) fn is_for_one_item(&self) -> bool {
        matches!(self, Sender::Token(grant) if grant.is_for_one_item())
    }
}

/// See the module.
pub(crate) struct Call<'r> {
    pub state: &'r State,
    pub ctx: RequestContext,
    pub operation: Operation,
    pub sender: Sender,
    pub route: Route<'r>,
    pub head: &'r Parts,
    pub body: &'r Bytes,
    pub listener: Listener,
    pub activity_id: &'r str,
}

impl Call<'_> {
    pub(crate) fn account(&self) -> &Account {
        &self.state.account
    }

    /// Decodes something from the body.
    pub(crate) async fn decoded<T>(&self, decode: impl FnOnce() -> T) -> T {
        self.state.decoding.run(self.body, decode).await
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }
}
