//! Whether the sender of a command may run it.

use std::sync::Arc;

use bolide_model::account_key::Access;
use bolide_mql::{Code, Error, Result};

use super::Call;
use crate::authentication::{Identity, Principal};
use crate::commands::privileges::{Grants, is_source_stage};
use crate::namespace::Namespace;

impl<'a> Call<'a> {
    /// Checks that the sender may run the command; returns what it may do and its name.
    pub(super) async fn authorize(&self) -> Result<(Grants, Option<Arc<str>>)> {
        let command = self.command;
        if command.is_admin_only && self.database != "admin" {
            let text = format!("{} may only be run against the admin database.", command.name);
            return Err(Error::new(Code::UNAUTHORIZED, text));
        }
        if let Some(access) = self.client.key() {
            if command.is_of_a_connection {
                let text = format!(
                    "{} is about a connection, and this command came without one",
                    command.name
                );
                return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, text));
            }
            let grants = Grants::Key(access);
            if !grants.allow_command(command, self.database) {
                return Err(self.unauthorized(self.database));
            }
            self.refuse_stored_users()?;
            return Ok((grants, None));
        }
        let principal = self.client.principal();
        let user = principal.as_ref().map(|principal| principal.full_name());
        if !self.state.options.requires_authentication {
            self.refuse_stored_users()?;
            return Ok((Grants::Key(Access::Full), user));
        }
        let Some(principal) = principal else {
            if command.is_before_authentication {
                return Ok((Grants::Key(Access::ReadOnly), None));
            }
            let text = format!("Command {} requires authentication", command.name);
            return Err(Error::new(Code::UNAUTHORIZED, text));
        };
        let grants = self.grants(&principal).await?;
        for database in self.databases() {
            if !grants.allow_command(command, database) && !self.begins_with_allowed_stage(&grants, database) {
                return Err(self.unauthorized(database));
            }
        }
        self.refuse_stored_users()?;
        Ok((grants, user))
    }

    /// What a principal may do now: the roles of a user may have changed, and the user may have been dropped, since it authenticated.
    async fn grants(&self, principal: &Principal) -> Result<Grants> {
        match principal.identity {
            Identity::Key(access) => Ok(Grants::Key(access)),
            Identity::User if self.command.is_before_authentication => Ok(Grants::Key(Access::ReadOnly)),
            Identity::User => {
                let users = &self.state.users;
                let found = users.find(&self.state.account, &principal.database, &principal.user);
                found
                    .await?
                    .map(Grants::User)
                    .ok_or_else(|| self.unauthorized(self.database))
            }
        }
    }

    /// Whether the command is a pipeline whose first stage asks for other rights than reading, which the sender has. The handler checks those that the other
    /// stages need.
    fn begins_with_allowed_stage(&self, grants: &Grants, database: &str) -> bool {
        let pipeline = match self.command.name {
            "aggregate" => self.message.command().get_array("pipeline"),
            _ => return false,
        };
        let first = pipeline.ok().and_then(|pipeline| pipeline.into_iter().next()?.ok());
        let first = first.and_then(|stage| stage.as_document()?.iter().next()?.ok());
        first.is_some_and(|(stage, _)| {
            is_source_stage(stage.as_str()) && grants.allow_source_stage(stage.as_str(), database)
        })
    }

    /// The databases on which the sender needs the rights of the command.
    fn databases(&self) -> Vec<&str> {
        if self.command.name != "renameCollection" {
            return vec![self.database];
        }
        let names = [
            self.message.command().get_str(self.command.name),
            self.message.command().get_str("to"),
        ];
        // Without a name the command fails, but only for who may run it.
        let database = |name: &'a str| name.split_once('.').map_or(name, |(database, _)| database);
        let databases = names.into_iter().map(|name| name.map_or(self.database, database));
        databases.collect()
    }

    /// The collection of the users is for the commands on users only.
    fn refuse_stored_users(&self) -> Result<()> {
        let is_of_users = |name: &str| Namespace::parse(name).is_ok_and(|namespace| namespace.is_of_users());
        let named = [
            self.message.command().get_str(self.command.name),
            self.message.command().get_str("to"),
        ];
        if is_of_users(&self.namespace) || named.into_iter().flatten().any(is_of_users) {
            return Err(self.unauthorized(self.database));
        }
        Ok(())
    }

    fn unauthorized(&self, database: &str) -> Error {
        let text = format!("not authorized on {database} to execute command {}", self.command.name);
        Error::new(Code::UNAUTHORIZED, text)
    }
}
