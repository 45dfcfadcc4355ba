//! Who uses a connection: SASL conversations, in which a client proves that it has an account key or the password of a user.
//!
//! The account is a user of every database; its passwords are the account's keys, as in Cosmos DB. Other users are created by commands, see
//! [`crate::users`]. A conversation over SCRAM has two or three exchanges:
//!
//! ```text
//!   saslStart     n,,n=<user>,r=<nonce>       ──▶
//!                                             ◀──  r=<nonce><nonce>,s=<salt>,i=<iterations>
//!   saslContinue  c=biws,r=<nonces>,p=<proof> ──▶
//!                                             ◀──  v=<signature>
//!   saslContinue  (empty; not with skipEmptyExchange)
//! ```
//!
//! The account has several passwords (keys are rotated by having two), so all have the same salt, and a proof is compared with the values of each.
//!
//! Source: mongo.md §4, RFC 5802, RFC 7677.

mod credentials;
mod plain;
mod scram;

use std::sync::Arc;

use bolide_model::account_key::Access;
use bolide_mql::{Code, Error, Result};

pub use credentials::Credentials;
pub use scram::{Mechanism, Verifier};

use scram::Exchange;

/// A user who has proven to have a key or a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The name of the user.
    pub user: Arc<str>,
    /// The database that the client named for authentication.
    pub database: String,
    /// What it is.
    pub identity: Identity,
}

impl Principal {
    /// A name that no other principal has: that of the account, or `database.user`.
    pub fn full_name(&self) -> Arc<str> {
        match self.identity {
            Identity::Key(_) => self.user.clone(),
            Identity::User => Arc::from(format!("{}.{}", self.database, self.user)),
        }
    }
}

/// Whose password was proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// The account's, by a key with these rights.
    Key(Access),
    /// That of a user who was created, and whose roles are asked for at each command.
    User,
}

/// What verifies the password of a user who was created: a [`Verifier`] for each mechanism that the user may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserCredentials {
    /// At most one for each mechanism.
    pub verifiers: Vec<Verifier>,
}

impl UserCredentials {
    /// Derives them from a password; takes milliseconds.
    ///
    /// # Errors
    /// A password with characters that SASLprep forbids; the system has no random numbers.
    pub fn create(mechanisms: &[Mechanism], user: &str, password: &str) -> Result<UserCredentials> {
        let create = |mechanism: &Mechanism| Verifier::create(*mechanism, user, password);
        Ok(UserCredentials {
            verifiers: mechanisms.iter().map(create).collect::<Result<_>>()?,
        })
    }

    /// That for a mechanism.
    pub fn verifier(&self, mechanism: Mechanism) -> Option<&Verifier> {
        self.verifiers.iter().find(|verifier| verifier.mechanism == mechanism)
    }
}

/// What a client sends to begin a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaslStart<'a> {
    /// The name of the mechanism.
    pub mechanism: &'a str,
    /// The database for authentication.
    pub database: &'a str,
    /// The first message.
    pub payload: &'a [u8],
    /// Whether the conversation ends with the server's signature.
    pub skip_empty_exchange: bool,
    /// The user whom the first message names, see [`SaslStart::user`], if it is one of the database who was created.
    pub created: Option<&'a UserCredentials>,
}

impl SaslStart<'_> {
    /// The name of the user in the first message, if it has the form of SCRAM. Other mechanisms are for the account alone.
    pub fn user(mechanism: &str, payload: &[u8]) -> Option<String> {
        Mechanism::named(mechanism)?;
        scram::user_of(payload)
    }
}

/// A conversation that waits for its client.
#[derive(Debug)]
pub enum Conversation {
    /// For the proof.
    Scram(Box<Exchange>),
    /// For the empty message at the end.
    Proven(Principal),
}

/// The server's part of an exchange.
#[derive(Debug)]
pub struct Step {
    /// The message to the client.
    pub payload: Vec<u8>,
    /// What is next.
    pub next: Next,
}

/// What follows an exchange.
#[derive(Debug)]
pub enum Next {
    /// Another one.
    Continue(Conversation),
    /// Nothing: the client is authenticated.
    Done(Principal),
}

impl Credentials {
    /// Begins a conversation; `is_tls`: nobody else can read it.
    ///
    /// # Errors
    /// `MechanismUnavailable`; `AuthenticationFailed` for everything else.
    pub fn start(&self, start: &SaslStart<'_>, is_tls: bool) -> Result<Step> {
        if start.mechanism == plain::NAME && is_tls {
            let principal = plain::authenticate(self, start)?;
            return Ok(Step {
                payload: Vec::new(),
                next: Next::Done(principal),
            });
        }
        let mechanism = Mechanism::named(start.mechanism).ok_or_else(|| unavailable(start.mechanism))?;
        let (exchange, payload) = Exchange::begin(self, mechanism, start, &scram::nonce()?)?;
        Ok(Step {
            payload: payload.into_bytes(),
            next: Next::Continue(Conversation::Scram(Box::new(exchange))),
        })
    }

    /// Goes on with a conversation.
    ///
    /// # Errors
    /// `AuthenticationFailed`; the conversation is over.
    pub async fn proceed(&self, conversation: Conversation, payload: &[u8]) -> Result<Step> {
        match conversation {
            Conversation::Scram(exchange) => {
                let skip = exchange.skip_empty_exchange();
                let (principal, payload) = exchange.finish(self, payload).await?;
                let next = if skip {
                    Next::Done(principal)
                } else {
                    Next::Continue(Conversation::Proven(principal))
                };
                Ok(Step {
                    payload: payload.into_bytes(),
                    next,
                })
            }
            Conversation::Proven(principal) if payload.is_empty() => Ok(Step {
                payload: Vec::new(),
                next: Next::Done(principal),
            }),
            Conversation::Proven(_) => Err(failed()),
        }
    }
}

/// The one error of everything that fails, so that nobody learns what was wrong.
fn failed() -> Error {
    Error::new(Code::AUTHENTICATION_FAILED, "Authentication failed.")
}

fn unavailable(mechanism: &str) -> Error {
    let text = format!("Received authentication for mechanism {mechanism} which is unknown or not enabled");
    Error::new(Code::MECHANISM_UNAVAILABLE, text)
}

#[cfg(test)]
mod tests;
