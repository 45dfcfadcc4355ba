//! Scripts on a [`TestContainer`].

use std::sync::Arc;

use bolide_core::{
    ExecuteProcedure, Executed, ItemWrite, QueryItems, Script, ScriptDraft, ScriptKind, ScriptName, TriggerFires,
    TriggeredWrite,
};
use bolide_model::document::Document;
use bolide_model::{Error, ErrorKind};
use serde_json::Value;

use crate::test_container::{TestContainer, key, scope_of};

/// The start of most procedures: the response and the collection with its link.
pub const START: &str = "var x = getContext(), r = x.getResponse(), c = x.getCollection(), l = c.getSelfLink();";

/// Returns a procedure that begins with [`START`].
pub fn procedure(rest: &str) -> String {
    format!("function (a, b) {{ {START} {rest} }}")
}

impl TestContainer {
    pub async fn define_script(
        &self,
        kind: ScriptKind,
        id: &str,
        source: &str,
        fires: Option<TriggerFires>,
    ) -> Arc<Script> {
        let draft = ScriptDraft {
            id: id.into(),
            body: source.into(),
            fires,
        };
        let created = self
            .account
            .create_script(&self.begin().await, &self.container, kind, draft, true)
            .await;
        created.expect("a script").0
    }

    pub async fn trigger(&self, id: &str, time: &str, operation: &str, source: &str) {
        let fires = TriggerFires::parse(time, operation).expect("known words");
        self.define_script(ScriptKind::Trigger, id, source, Some(fires)).await;
    }

    /// Executes a source in the partition `pk`.
    pub async fn execute_in(&self, pk: &str, source: &str, arguments: &Value) -> Result<Executed, Error> {
        let id = format!("p{:x}", source.len());
        self.define_script(ScriptKind::StoredProcedure, &id, source, None).await;
        self.execute_named(pk, id, arguments).await
    }

    /// Executes an existing procedure.
    async fn execute_named(&self, pk: &str, id: String, arguments: &Value) -> Result<Executed, Error> {
        let execute = ExecuteProcedure {
            name: ScriptName::Id(id),
            partition_key: key(pk),
            arguments: arguments.to_string(),
            is_logging: false,
        };
        let answer = self
            .account
            .execute_procedure(&self.begin().await, &self.container, execute)
            .await;
        answer.map(|answer| answer.value).map_err(|refusal| refusal.error)
    }

    /// Executes a source that an earlier call has stored.
    pub async fn execute_stored_with(&self, source: &str, arguments: &Value) -> Result<Executed, Error> {
        self.execute_named("p", format!("p{:x}", source.len()), arguments).await
    }

    /// Creates an item with a pre-trigger.
    pub async fn create_with_trigger(&self, trigger: &str) -> Result<(), ErrorKind> {
        let document = Document::parse(br#"{"id": "t", "pk": "p"}"#).expect("an item");
        let write = TriggeredWrite {
            before: vec![trigger.into()],
            after: vec![],
            partition_key: None,
            write: ItemWrite::Create(document),
            if_match: None,
        };
        let written = self
            .account
            .write_with_triggers(&self.begin().await, &self.container, write)
            .await;
        written.map(|_| ()).map_err(|refusal| refusal.error.kind)
    }

    /// Returns the response body of a procedure that begins with [`START`].
    pub async fn execute(&self, rest: &str) -> Result<Value, ErrorKind> {
        let executed = self.execute_in("p", &procedure(rest), &Value::Array(vec![])).await;
        let body = executed.map_err(|error| error.kind)?.body;
        Ok(body.map_or(Value::Null, |body| serde_json::from_str(&body).expect("a body is JSON")))
    }

    /// As [`TestContainer::execute`], for a procedure that an earlier call has stored.
    pub async fn execute_stored(&self, rest: &str) -> Result<Value, ErrorKind> {
        let id = format!("p{:x}", procedure(rest).len());
        let executed = self.execute_named("p", id, &Value::Array(vec![])).await;
        let body = executed.map_err(|error| error.kind)?.body;
        Ok(body.map_or(Value::Null, |body| serde_json::from_str(&body).expect("a body is JSON")))
    }

    /// Returns the rows of a query over the partition `p`.
    pub async fn query(&self, text: &str) -> Result<Value, Error> {
        let query = QueryItems {
            text: text.into(),
            scope: scope_of("p"),
            ..QueryItems::default()
        };
        let answer = self.account.query(&self.begin().await, &self.container, &query).await;
        let page = answer.map_err(|refusal| refusal.error)?.value;
        Ok(serde_json::from_str(&format!("[{}]", String::from_utf8_lossy(&page.rows))).expect("rows are JSON"))
    }
}
