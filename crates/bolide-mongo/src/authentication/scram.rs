//! SCRAM-SHA-1 and SCRAM-SHA-256, the server's side.

use std::num::NonZeroU32;
use std::sync::Arc;

use bolide_mql::{Error, Result};
use data_encoding::{BASE64, HEXLOWER};
use md5::{Digest as _, Md5};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use subtle::ConstantTimeEq as _;

use super::{Credentials, Identity, Principal, SaslStart, failed};

/// Random bytes of the server's part of a nonce.
const NONCE_BYTES: usize = 24;
/// The database of users of other systems, which SCRAM has none of.
const EXTERNAL: &str = "$external";

/// A mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// SCRAM-SHA-1, with MongoDB's digest of the password.
    Sha1,
    /// SCRAM-SHA-256.
    Sha256,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Mechanism; 2] = [Mechanism::Sha1, Mechanism::Sha256];

    /// Finds a mechanism by its name.
    pub fn named(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "SCRAM-SHA-1",
            Mechanism::Sha256 => "SCRAM-SHA-256",
        }
    }

    /// The iterations of PBKDF2, as in MongoDB.
    pub(super) fn iterations(self) -> NonZeroU32 {
        const SHA1: NonZeroU32 = NonZeroU32::new(10_000).expect("not zero");
        const SHA256: NonZeroU32 = NonZeroU32::new(15_000).expect("not zero");
        match self {
            Mechanism::Sha1 => SHA1,
            Mechanism::Sha256 => SHA256,
        }
    }

    /// The size of a salt, in bytes, as in MongoDB.
    pub(super) fn salt_bytes(self) -> usize {
        match self {
            Mechanism::Sha1 => 16,
            Mechanism::Sha256 => 28,
        }
    }

    fn hmac(self) -> hmac::Algorithm {
        match self {
            Mechanism::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Mechanism::Sha256 => hmac::HMAC_SHA256,
        }
    }

    fn digest(self, bytes: &[u8]) -> digest::Digest {
        match self {
            Mechanism::Sha1 => digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes),
            Mechanism::Sha256 => digest::digest(&digest::SHA256, bytes),
        }
    }

    /// The password as PBKDF2 gets it.
    fn prepared(self, user: &str, password: &str) -> Result<String> {
        match self {
            Mechanism::Sha1 => {
                let digest = Md5::digest(format!("{user}:mongo:{password}"));
                Ok(HEXLOWER.encode(digest.as_slice()))
            }
            Mechanism::Sha256 => {
                let prepared = stringprep::saslprep(password).map_err(|_| failed())?;
                Ok(prepared.into_owned())
            }
        }
    }

    /// `PBKDF2(password, salt, iterations)`.
    fn salted(self, password: &str, salt: &[u8], iterations: NonZeroU32) -> Vec<u8> {
        let (algorithm, bytes) = match self {
            Mechanism::Sha1 => (pbkdf2::PBKDF2_HMAC_SHA1, digest::SHA1_OUTPUT_LEN),
            Mechanism::Sha256 => (pbkdf2::PBKDF2_HMAC_SHA256, digest::SHA256_OUTPUT_LEN),
        };
        let mut salted = vec![0; bytes];
        pbkdf2::derive(algorithm, iterations, salt, password.as_bytes(), &mut salted);
        salted
    }
}

/// What a server needs of a password: not the password, and nothing that authenticates elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    /// For this mechanism only.
    pub mechanism: Mechanism,
    /// The iterations of PBKDF2.
    pub iterations: NonZeroU32,
    /// The salt of PBKDF2.
    pub salt: Vec<u8>,
    /// A digest of the client's key.
    pub stored_key: Vec<u8>,
    /// The server's key.
    pub server_key: Vec<u8>,
}

impl Verifier {
    /// Derives it with a salt; takes milliseconds.
    ///
    /// # Errors
    /// A password with characters that SASLprep forbids.
    pub fn derive(
        mechanism: Mechanism,
        user: &str,
        password: &str,
        salt: &[u8],
        iterations: NonZeroU32,
    ) -> Result<Verifier> {
        let password = mechanism.prepared(user, password)?;
        let salted = mechanism.salted(&password, salt, iterations);
        let salted = hmac::Key::new(mechanism.hmac(), &salted);
        let client = hmac::sign(&salted, b"Client Key");
        let server = hmac::sign(&salted, b"Server Key");
        Ok(Verifier {
            mechanism,
            iterations,
            salt: salt.to_vec(),
            stored_key: mechanism.digest(client.as_ref()).as_ref().to_vec(),
            server_key: server.as_ref().to_vec(),
        })
    }

    /// Derives it with a new salt and as many iterations as MongoDB uses; takes milliseconds.
    ///
    /// # Errors
    /// As [`Verifier::derive`]; the system has no random numbers.
    pub fn create(mechanism: Mechanism, user: &str, password: &str) -> Result<Verifier> {
        let salt = random(mechanism.salt_bytes())?;
        Verifier::derive(mechanism, user, password, &salt, mechanism.iterations())
    }

    /// Whether a client that sends this proof has the password.
    fn is_proven(&self, message: &str, proof: &[u8]) -> bool {
        let mechanism = self.mechanism;
        let signature = hmac::sign(&hmac::Key::new(mechanism.hmac(), &self.stored_key), message.as_bytes());
        let client_key: Vec<u8> = signature.as_ref().iter().zip(proof).map(|(a, b)| a ^ b).collect();
        let is_whole = proof.len() == signature.as_ref().len();
        is_whole && bool::from(mechanism.digest(&client_key).as_ref().ct_eq(&self.stored_key))
    }

    fn signature(&self, message: &str) -> String {
        let key = hmac::Key::new(self.mechanism.hmac(), &self.server_key);
        BASE64.encode(hmac::sign(&key, message.as_bytes()).as_ref())
    }
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Verifier(…)")
    }
}

/// One password of a user.
#[derive(Debug, Clone)]
pub struct ScramKeys {
    /// What its owner is.
    pub identity: Identity,
    /// How it is verified.
    pub verifier: Verifier,
}

/// A conversation after its first exchange.
#[derive(Debug)]
pub struct Exchange {
    mechanism: Mechanism,
    user: String,
    database: String,
    /// Both parts.
    nonce: String,
    /// What the client must repeat: its channel binding, which is always none.
    binding: String,
    /// The beginning of the text that is signed: both first messages.
    message: String,
    skip_empty_exchange: bool,
    /// That of a user who was created; the others are asked for at the end.
    verifier: Option<Verifier>,
}

impl Exchange {
    /// Reads the client's first message, and returns the server's.
    ///
    /// # Errors
    /// `AuthenticationFailed`.
    pub fn begin(
        credentials: &Credentials,
        mechanism: Mechanism,
        start: &SaslStart<'_>,
        server_nonce: &str,
    ) -> Result<(Exchange, String)> {
        let first = ClientFirst::parse(start.payload).ok_or_else(failed)?;
        if start.database == EXTERNAL {
            return Err(failed());
        }
        let nonce = format!("{}{server_nonce}", first.nonce);
        let verifier = start.created.and_then(|created| created.verifier(mechanism)).cloned();
        let (salt, iterations) = match &verifier {
            Some(verifier) => (verifier.salt.clone(), verifier.iterations),
            None => (
                credentials.salt(mechanism, start.database, &first.user),
                mechanism.iterations(),
            ),
        };
        let reply = format!("r={nonce},s={},i={iterations}", BASE64.encode(&salt));
        let exchange = Exchange {
            mechanism,
            nonce,
            binding: BASE64.encode(first.header.as_bytes()),
            message: format!("{},{reply}", first.bare),
            skip_empty_exchange: start.skip_empty_exchange,
            database: start.database.to_owned(),
            user: first.user,
            verifier,
        };
        Ok((exchange, reply))
    }

    /// Whether the conversation ends with the next exchange.
    pub fn skip_empty_exchange(&self) -> bool {
        self.skip_empty_exchange
    }

    /// Reads the client's proof, and returns the server's signature.
    ///
    /// # Errors
    /// `AuthenticationFailed`.
    pub async fn finish(self: Box<Exchange>, credentials: &Credentials, payload: &[u8]) -> Result<(Principal, String)> {
        let proof = self.proof(payload).ok_or_else(failed)?;
        let keys = match &self.verifier {
            Some(verifier) => Arc::from([ScramKeys {
                identity: Identity::User,
                verifier: verifier.clone(),
            }]),
            None => credentials.scram_keys(self.mechanism, &self.user).await?,
        };
        let (identity, signature) = self.verify(&keys, &proof).ok_or_else(failed)?;
        let principal = Principal {
            user: Arc::from(self.user),
            database: self.database,
            identity,
        };
        Ok((principal, signature))
    }

    /// Compares a proof with every password, in constant time.
    fn verify(&self, keys: &[ScramKeys], proof: &Proof) -> Option<(Identity, String)> {
        let message = format!("{},{}", self.message, proof.without_proof);
        let mut found = None;
        for key in keys {
            let is_proven = key.verifier.is_proven(&message, &proof.proof);
            found = found.or(is_proven.then_some(key));
        }
        found.map(|key| (key.identity, format!("v={}", key.verifier.signature(&message))))
    }

    fn proof(&self, payload: &[u8]) -> Option<Proof> {
        let text = std::str::from_utf8(payload).ok()?;
        let (without_proof, proof) = text.rsplit_once(",p=")?;
        let mut fields = without_proof.split(',');
        let binding = fields.next()?.strip_prefix("c=")?;
        let nonce = fields.next()?.strip_prefix("r=")?;
        if binding != self.binding || nonce != self.nonce {
            return None;
        }
        Some(Proof {
            without_proof: without_proof.to_owned(),
            proof: BASE64.decode(proof.as_bytes()).ok()?,
        })
    }
}

/// The client's last message.
struct Proof {
    without_proof: String,
    proof: Vec<u8>,
}

/// The client's first message.
struct ClientFirst {
    /// The part before the user: `n,,`.
    header: String,
    /// The rest.
    bare: String,
    user: String,
    nonce: String,
}

impl ClientFirst {
    fn parse(payload: &[u8]) -> Option<ClientFirst> {
        let text = std::str::from_utf8(payload).ok()?;
        // `p=…` asks for a channel binding, which no driver does.
        let (flag, rest) = text.split_once(',').filter(|(flag, _)| matches!(*flag, "n" | "y"))?;
        let (authorization, bare) = rest.split_once(',')?;
        let mut fields = bare.split(',');
        let user = unescaped(fields.next()?.strip_prefix("n=")?)?;
        let nonce = fields.next()?.strip_prefix("r=").filter(|nonce| !nonce.is_empty())?;
        let is_allowed = match authorization.strip_prefix("a=") {
            Some(other) => unescaped(other)? == user,
            None => authorization.is_empty(),
        };
        is_allowed.then(|| ClientFirst {
            header: format!("{flag},{authorization},"),
            bare: bare.to_owned(),
            user,
            nonce: nonce.to_owned(),
        })
    }
}

/// Reads a name in which `,` is written `=2C` and `=` is written `=3D`.
fn unescaped(name: &str) -> Option<String> {
    let mut parts = name.split('=');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (character, rest) = part
            .strip_prefix("2C")
            .map(|rest| (',', rest))
            .or_else(|| Some(('=', part.strip_prefix("3D")?)))?;
        text.push(character);
        text.push_str(rest);
    }
    Some(text)
}

/// Random text for the server's part of a nonce.
///
/// # Errors
/// The system has no random numbers.
pub fn nonce() -> Result<String> {
    Ok(BASE64.encode(&random(NONCE_BYTES)?))
}

fn random(length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::new(bolide_mql::Code::INTERNAL_ERROR, "no random numbers"))?;
    Ok(bytes)
}

/// The name of the user in a client's first message.
pub fn user_of(payload: &[u8]) -> Option<String> {
    ClientFirst::parse(payload).map(|first| first.user)
}

#[cfg(test)]
mod tests;
