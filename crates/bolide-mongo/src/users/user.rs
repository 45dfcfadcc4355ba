//! A user, as it is stored.

use std::num::NonZeroU32;

use bolide_mql::{Code, Error, Result};
use bson::raw::{CString, RawBsonRef, cstr};
use bson::spec::BinarySubtype;
use bson::{Binary, RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};
use data_encoding::BASE64;
use uuid::Uuid;

use super::roles::{Privilege, Role};
use crate::authentication::{Mechanism, UserCredentials, Verifier};

/// A user who was created by a command.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    /// Its name, unique in its database.
    pub name: String,
    /// The database in which it was created, and authenticates.
    pub database: String,
    /// Its identity: another user that gets the same name later has another one.
    pub id: Uuid,
    /// Its roles, each once.
    pub roles: Vec<Role>,
    /// What verifies its password.
    pub credentials: UserCredentials,
    /// What the client has stored with it.
    pub custom_data: Option<RawDocumentBuf>,
}

impl User {
    /// Its `_id`: `database.name`.
    pub fn key(&self) -> String {
        key(&self.database, &self.name)
    }

    /// Whether it may do something in a database.
    pub fn may(&self, privilege: Privilege, database: &str) -> bool {
        privilege == Privilege::None || self.roles.iter().any(|role| role.allows(privilege, database))
    }

    /// Whether its roles allow something in every database.
    pub fn may_everywhere(&self, privilege: Privilege) -> bool {
        privilege == Privilege::None || self.roles.iter().any(|role| role.allows_everywhere(privilege))
    }

    /// Its `userId`.
    pub fn user_id(&self) -> Binary {
        Binary {
            subtype: BinarySubtype::Uuid,
            bytes: self.id.as_bytes().to_vec(),
        }
    }

    /// Its `roles`.
    pub fn role_documents(&self) -> RawArrayBuf {
        self.roles.iter().map(Role::to_document).collect()
    }

    /// Its `credentials`.
    pub fn credential_documents(&self) -> RawDocumentBuf {
        let mut credentials = RawDocumentBuf::new();
        for verifier in &self.credentials.verifiers {
            let keys = rawdoc! {
                "iterationCount": i32::try_from(verifier.iterations.get()).unwrap_or(i32::MAX),
                "salt": BASE64.encode(&verifier.salt),
                "storedKey": BASE64.encode(&verifier.stored_key),
                "serverKey": BASE64.encode(&verifier.server_key),
            };
            let name = match verifier.mechanism {
                Mechanism::Sha1 => cstr!("SCRAM-SHA-1"),
                Mechanism::Sha256 => cstr!("SCRAM-SHA-256"),
            };
            credentials.append(CString::from(name), keys);
        }
        credentials
    }

    /// The document that is stored.
    pub fn to_document(&self) -> RawDocumentBuf {
        let mut document = rawdoc! {
            "_id": self.key(),
            "userId": self.user_id(),
            "user": self.name.as_str(),
            "db": self.database.as_str(),
            "credentials": self.credential_documents(),
            "roles": self.role_documents(),
        };
        if let Some(data) = &self.custom_data {
            document.append(cstr!("customData"), data.clone());
        }
        document
    }

    /// Reads what [`User::to_document`] has written.
    ///
    /// # Errors
    /// `InternalError` for another document.
    pub fn from_document(document: &RawDocument) -> Result<User> {
        read(document).ok_or_else(|| Error::new(Code::INTERNAL_ERROR, "a stored user cannot be read"))
    }
}

/// The `_id` of a user.
pub fn key(database: &str, name: &str) -> String {
    format!("{database}.{name}")
}

fn read(document: &RawDocument) -> Option<User> {
    let mut roles = Vec::new();
    for role in document.get_array("roles").ok()? {
        let role = role.ok()?.as_document()?;
        roles.push(Role::find(role.get_str("role").ok()?, role.get_str("db").ok()?).ok()?);
    }
    let mut verifiers = Vec::new();
    for element in document.get_document("credentials").ok()? {
        let (mechanism, keys) = element.ok()?;
        let keys = keys.as_document()?;
        let bytes = |name: &str| BASE64.decode(keys.get_str(name).ok()?.as_bytes()).ok();
        verifiers.push(Verifier {
            mechanism: Mechanism::named(mechanism.as_str())?,
            iterations: NonZeroU32::new(u32::try_from(keys.get_i32("iterationCount").ok()?).ok()?)?,
            salt: bytes("salt")?,
            stored_key: bytes("storedKey")?,
            server_key: bytes("serverKey")?,
        });
    }
    let id = document.get("userId").ok()?.and_then(|id| match id {
        RawBsonRef::Binary(binary) => Uuid::from_slice(binary.bytes).ok(),
        _ => None,
    });
    Some(User {
        name: document.get_str("user").ok()?.to_owned(),
        database: document.get_str("db").ok()?.to_owned(),
        id: id?,
        roles,
        credentials: UserCredentials { verifiers },
        custom_data: document.get_document("customData").ok().map(ToOwned::to_owned),
    })
}

#[cfg(test)]
mod tests;
