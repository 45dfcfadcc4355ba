//! `connectionStatus`.

use bolide_model::account_key::Access;
use bolide_mql::Result;
use bson::raw::cstr;
use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use crate::authentication::Identity;
use crate::users::Role;

/// `{connectionStatus: 1, showPrivileges?}` → `{authInfo}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let shows_privileges = arguments.boolean("showPrivileges")? == Some(true);
    arguments.finish()?;
    let (mut users, mut roles) = (RawArrayBuf::new(), RawArrayBuf::new());
    if let Some(principal) = context.client.principal() {
        users.push(rawdoc! { "user": &*principal.user, "db": principal.database.as_str() });
        let (users, account) = (&context.state.users, &context.state.account);
        let granted = match principal.identity {
            Identity::Key(Access::Full) => vec![rawdoc! { "role": "root", "db": "admin" }],
            Identity::Key(Access::ReadOnly) => vec![rawdoc! { "role": "readAnyDatabase", "db": "admin" }],
            Identity::User => match users.find(account, &principal.database, &principal.user).await? {
                Some(user) => user.roles.iter().map(Role::to_document).collect(),
                None => Vec::new(),
            },
        };
        for role in granted {
            roles.push(role);
        }
    }
    let mut info: RawDocumentBuf = rawdoc! {
        "authenticatedUsers": users,
        "authenticatedUserRoles": roles,
    };
    if shows_privileges {
        info.append(cstr!("authenticatedUserPrivileges"), RawArrayBuf::new());
    }
    Ok(rawdoc! { "authInfo": info }.into())
}
