//! The users of the account, and their passwords.

use std::sync::Arc;

use bolide_model::account_key::{Access, AccountKey};
use bolide_mql::Result;
use ring::hmac;
use subtle::ConstantTimeEq as _;
use tokio::sync::OnceCell;

use super::scram::{Mechanism, ScramKeys, Verifier};
use super::{Identity, failed};

/// Separates the key of the salts from other uses of an account key.
const SALT_DOMAIN: &[u8] = b"bolide scram salt";

/// The users of the account, who all have its keys as passwords. Keys do not change while a server runs, so what is derived from them is kept.
pub struct Credentials {
    users: Vec<User>,
    keys: Vec<(Access, AccountKey)>,
    salts: hmac::Key,
}

struct User {
    name: String,
    /// For each mechanism, in the order of [`Mechanism::ALL`]: what the passwords become. Derived when it is needed first, and once, because
    /// that takes tens of milliseconds.
    scram: [OnceCell<Arc<[ScramKeys]>>; Mechanism::ALL.len()],
}

impl Credentials {
    /// Users with these names, and the keys with their rights, the primary key first.
    pub fn new(names: impl IntoIterator<Item = String>, keys: Vec<(Access, AccountKey)>) -> Credentials {
        let primary = keys.first().map_or(&[][..], |(_, key)| key.bytes());
        let domain = hmac::Key::new(hmac::HMAC_SHA256, primary);
        let salts = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&domain, SALT_DOMAIN).as_ref());
        let user = |name| User {
            name,
            scram: [const { OnceCell::const_new() }; Mechanism::ALL.len()],
        };
        Credentials {
            users: names.into_iter().map(user).collect(),
            keys,
            salts,
        }
    }

    /// Derives everything in advance, so that the first authentication of each kind is as fast as the others, and takes as long as that of a user who
    /// does not exist.
    pub async fn prepare(&self) {
        for user in &self.users {
            for mechanism in Mechanism::ALL {
                // A password that cannot be used with a mechanism fails again when it is tried.
                let _ = self.scram_keys(mechanism, &user.name).await;
            }
        }
    }

    /// Whether there is a user with this name.
    pub fn knows(&self, user: &str) -> bool {
        self.find(user).is_some()
    }

    /// The salt of a user's passwords: the same after a restart, and for users that do not exist, which therefore cannot be told from others. Users of
    /// the account are in every database; others are not, so theirs differ.
    pub(super) fn salt(&self, mechanism: Mechanism, database: &str, user: &str) -> Vec<u8> {
        let mut mac = hmac::Context::with_key(&self.salts);
        mac.update(mechanism.name().as_bytes());
        mac.update(&[0]);
        if !self.knows(user) {
            mac.update(database.as_bytes());
            mac.update(&[0]);
        }
        mac.update(user.as_bytes());
        let tag = mac.sign();
        tag.as_ref()[..mechanism.salt_bytes()].to_vec()
    }

    /// What SCRAM needs of each password of a user.
    ///
    /// # Errors
    /// There is no such user.
    pub(super) async fn scram_keys(&self, mechanism: Mechanism, user: &str) -> Result<Arc<[ScramKeys]>> {
        let known = self.find(user).ok_or_else(failed)?;
        let cell = &known.scram[mechanism as usize];
        let derived = cell.get_or_try_init(|| async {
            let salt = self.salt(mechanism, "", user);
            let (user, keys) = (user.to_owned(), self.keys.clone());
            let derive = move || -> Result<Arc<[ScramKeys]>> {
                let derive = |(access, key): &(Access, AccountKey)| {
                    let verifier = Verifier::derive(mechanism, &user, key.text(), &salt, mechanism.iterations())?;
                    Ok(ScramKeys {
                        identity: Identity::Key(*access),
                        verifier,
                    })
                };
                keys.iter().map(derive).collect()
            };
            tokio::task::spawn_blocking(derive).await.map_err(|_| failed())?
        });
        derived.await.cloned()
    }

    /// The rights of a user with this password. Compares in constant time.
    pub(super) fn by_password(&self, user: &str, password: &[u8]) -> Option<Access> {
        let known = self.find(user);
        let mut found = None;
        for (access, key) in &self.keys {
            let fits = bool::from(key.text().as_bytes().ct_eq(password));
            found = found.or(fits.then_some(*access));
        }
        known.and(found)
    }

    fn find(&self, user: &str) -> Option<&User> {
        self.users.iter().find(|known| known.name == user)
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(…)")
    }
}
