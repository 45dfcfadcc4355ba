//! Definitions: databases, containers, scripts, users and others, which all are listed, created and replaced in the same way.

use serde_json::{Map, Value};
use ureq::http::Method;

use crate::client::{Client, Draft};
use crate::failure::{Failure, Result};
use crate::load::OnConflict;

/// A kind of resources: its name in paths, and that of the list in a feed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resources {
    kind: &'static str,
    list: &'static str,
}

impl Resources {
    pub const DATABASES: Resources = Resources::new("dbs", "Databases");
    pub const CONTAINERS: Resources = Resources::new("colls", "DocumentCollections");
    pub const PROCEDURES: Resources = Resources::new("sprocs", "StoredProcedures");
    pub const TRIGGERS: Resources = Resources::new("triggers", "Triggers");
    pub const FUNCTIONS: Resources = Resources::new("udfs", "UserDefinedFunctions");
    pub const ENCRYPTION_KEYS: Resources = Resources::new("clientencryptionkeys", "ClientEncryptionKeys");
    pub const USERS: Resources = Resources::new("users", "Users");
    pub const PERMISSIONS: Resources = Resources::new("permissions", "Permissions");
    pub const OFFERS: Resources = Resources::new("offers", "Offers");

    const fn new(kind: &'static str, list: &'static str) -> Resources {
        Resources { kind, list }
    }

    /// All resources below a parent.
    pub fn list(self, client: &Client, parent: &[&str]) -> Result<Vec<Map<String, Value>>> {
        let path = [parent, &[self.kind]].concat();
        let what = path.join("/");
        let mut all = Vec::new();
        let mut continuation: Option<String> = None;
        loop {
            let mut draft = Draft::get(&path);
            if let Some(continuation) = &continuation {
                draft = draft.header("x-ms-continuation", continuation);
            }
            let answer = client.expect(&draft, &what)?;
            let Value::Array(page) = answer.json()[self.list].take() else {
                return Err(Failure::new(format!("{}: malformed list of {what}", client.name())));
            };
            all.extend(page.into_iter().filter_map(|resource| match resource {
                Value::Object(members) => Some(members),
                _ => None,
            }));
            continuation = answer
                .header("x-ms-continuation")
                .filter(|text| !text.is_empty())
                .map(str::to_owned);
            if continuation.is_none() {
                return Ok(all);
            }
        }
    }

    /// Creates a resource; `false` if one of this id is there already.
    pub fn try_create(
        self,
        client: &Client,
        parent: &[&str],
        definition: &Map<String, Value>,
        header: Option<(&'static str, String)>,
    ) -> Result<bool> {
        let path = [parent, &[self.kind]].concat();
        let mut draft = Draft::post(&path, Value::Object(definition.clone()).to_string());
        if let Some((name, value)) = header {
            draft = draft.header(name, value);
        }
        let answer = client.send(&draft)?;
        match answer.status {
            201 => Ok(true),
            409 => Ok(false),
            _ => Err(self.refused(client, definition, &answer.message())),
        }
    }

    /// Creates a resource, or compares it with the one that is there.
    pub fn create(
        self,
        client: &Client,
        parent: &[&str],
        definition: &Map<String, Value>,
        header: Option<(&'static str, String)>,
        on_conflict: OnConflict,
    ) -> Result<()> {
        if self.try_create(client, parent, definition, header)? {
            return Ok(());
        }
        let path = [parent, &[self.kind, named(definition)]].concat();
        let answer = client.expect(&Draft::get(&path), &path.join("/"))?;
        let existing = answer.json();
        if existing
            .as_object()
            .is_some_and(|existing| shown(existing) == *definition)
        {
            return Ok(());
        }
        match on_conflict {
            OnConflict::Fail => Err(self.refused(client, definition, "it is there already, and differs")),
            OnConflict::Skip => Ok(()),
            OnConflict::Replace => self.replace(client, parent, definition),
        }
    }

    /// Replaces a resource.
    pub fn replace(self, client: &Client, parent: &[&str], definition: &Map<String, Value>) -> Result<()> {
        let path = [parent, &[self.kind, named(definition)]].concat();
        let draft = Draft {
            method: Method::PUT,
            ..Draft::post(&path, Value::Object(definition.clone()).to_string())
        };
        client.expect(&draft, &path.join("/")).map(drop)
    }

    fn refused(self, client: &Client, definition: &Map<String, Value>, why: &str) -> Failure {
        Failure::new(format!("{}: {}/{}: {why}", client.name(), self.kind, named(definition)))
    }
}

/// The id of a resource.
pub(super) fn named(resource: &Map<String, Value>) -> &str {
    resource.get("id").and_then(Value::as_str).unwrap_or_default()
}

/// A resource without what its server has added.
pub(super) fn shown(resource: &Map<String, Value>) -> Map<String, Value> {
    let own = resource.iter().filter(|(name, _)| !name.starts_with('_'));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}
