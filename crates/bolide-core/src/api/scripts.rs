//! Stored procedures, triggers and user-defined functions as resources.

use std::sync::Arc;

use bolide_model::Result;

use super::Account;
use crate::catalog::Catalog;
use crate::container::{Container, Script, ScriptDraft, ScriptKind, ScriptName};
use crate::runtime::RequestContext;

/// Operations on scripts as resources.
impl Account {
    /// Creates a script; with `is_upsert`, or replaces the one with its id. Returns whether it was created.
    ///
    /// # Errors
    /// `Conflict` if there is one with this id; `BadRequest` for a bad id; `Forbidden` if there are too many.
    pub async fn create_script(
        &self,
        _ctx: &RequestContext,
        container: &Arc<Container>,
        kind: ScriptKind,
        draft: ScriptDraft,
        is_upsert: bool,
    ) -> Result<(Arc<Script>, bool)> {
        let container = container.clone();
        let create =
            |catalog: Arc<Catalog>| async move { catalog.create_script(&container, kind, draft, is_upsert).await };
        self.catalog().carry_out(create).await
    }

    /// Returns the scripts of a kind, in the order of their creation.
    pub fn list_scripts(&self, container: &Container, kind: ScriptKind) -> Vec<Arc<Script>> {
        container.scripts().of(kind).cloned().collect()
    }

    /// Returns the script with this name.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn script(&self, container: &Container, kind: ScriptKind, name: &ScriptName) -> Result<Arc<Script>> {
        container.scripts().get(kind, name).cloned()
    }

    /// Replaces a script; another id renames it.
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` if the script has another version; `Conflict` if another has the new id; `BadRequest` for a bad id.
    pub async fn replace_script(
        &self,
        _ctx: &RequestContext,
        container: &Arc<Container>,
        kind: ScriptKind,
        name: &ScriptName,
        draft: ScriptDraft,
        if_match: Option<&str>,
    ) -> Result<Arc<Script>> {
        let (container, name, if_match) = (container.clone(), name.clone(), if_match.map(str::to_owned));
        let replace = |catalog: Arc<Catalog>| async move {
            let if_match = if_match.as_deref();
            catalog.replace_script(&container, kind, &name, draft, if_match).await
        };
        self.catalog().carry_out(replace).await
    }

    /// Deletes a script.
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` if the script has another version.
    pub async fn delete_script(
        &self,
        _ctx: &RequestContext,
        container: &Arc<Container>,
        kind: ScriptKind,
        name: &ScriptName,
        if_match: Option<&str>,
    ) -> Result<()> {
        let (container, name, if_match) = (container.clone(), name.clone(), if_match.map(str::to_owned));
        let delete = |catalog: Arc<Catalog>| async move {
            catalog
                .delete_script(&container, kind, &name, if_match.as_deref())
                .await
        };
        self.catalog().carry_out(delete).await
    }
}
