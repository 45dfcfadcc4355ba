//! Stored procedures of the programs: one transaction each, which sees what it has written (TTL-252).

use std::sync::Arc;

use bolide_core::{Account, Container, Cost, ExecuteProcedure, Executed, ScriptName};
use bolide_model::ErrorKind;
use serde_json::{Value, json};

use super::checks::{check_shown, differ};
use super::program::{Ending, Op};
use super::runner::{Runner, Stepped, Stop};
use crate::model::{Model, Part, Plan, Write};
use crate::test_container::{define_procedure, key};

const NAME: &str = "program";

/// Takes steps and an ending. Gives back what became of each step (the item; `null` for a delete; a number for an error) and, last, all
/// items.
const SOURCE: &str = "function (steps, ending) {
    var x = getContext(), c = x.getCollection(), l = c.getSelfLink(), seen = [];
    function finish() {
        c.queryDocuments(l, 'SELECT * FROM c', {pageSize: 1000}, function (e, all) {
            if (e) throw e;
            if (ending === 'Throws') throw new Error('as the program says');
            seen.push(all);
            x.getResponse().setBody(seen);
        });
    }
    function next(i) {
        if (i === steps.length) return finish();
        var step = steps[i], link = c.getAltLink() + '/docs/' + step.id, options = step.etag ? {etag: step.etag} : {};
        function done(e, item) {
            if (e && ending === 'Strict') throw e;
            seen.push(e ? e.number : step.what === 'delete' ? null : item);
            next(i + 1);
        }
        switch (step.what) {
            case 'create': return c.createDocument(l, step.item, done);
            case 'upsert': return c.upsertDocument(l, step.item, options, done);
            case 'replace': return c.replaceDocument(link, step.item, options, done);
            case 'delete': return c.deleteDocument(link, options, done);
        }
    }
    next(0);
}";

/// Stores the procedure in a new container.
pub async fn define(account: &Account, container: &Arc<Container>) {
    define_procedure(account, container, NAME, SOURCE).await;
}

impl Runner {
    pub(super) async fn script(&mut self, pk: &'static str, ops: Vec<Op>, ending: Ending) -> Stepped {
        // As with a batch.
        self.be_calm(true);
        let writes: Vec<Write> = ops.into_iter().filter_map(|op| self.write_of(op)).collect();
        // Scripts have no patches.
        let writes: Vec<Write> = writes
            .into_iter()
            .filter(|write| !matches!(write, Write::Patch(..)))
            .collect();
        let execute = ExecuteProcedure {
            name: ScriptName::Id(NAME.into()),
            partition_key: key(pk),
            arguments: json!([writes.iter().map(step).collect::<Vec<_>>(), format!("{ending:?}")]).to_string(),
            is_logging: false,
        };
        let fails = ending == Ending::Throws || ending == Ending::Strict && any_fails(self.model.clone(), &writes);
        let ctx = self.begin().await?;
        let answer = self.account().execute_procedure(&ctx, self.container(), execute).await;
        let (cost, answered): (Cost, String) = match answer {
            Ok(answer) if !fails => {
                let answered = self.script_done(pk, &writes, answer.value)?;
                (answer.cost, answered)
            }
            Err(refusal) if fails && matches!(refusal.error.kind, ErrorKind::ScriptFailed { .. }) => {
                (refusal.cost, "failed".into())
            }
            other => {
                return Err(Stop::Wrong(format!(
                    "{writes:?}\n  got  {other:?}\n  want fails: {fails}"
                )));
            }
        };
        self.charged(&cost);
        self.be_calm(false);
        Ok(format!("{answered} {:?}", cost.charge))
    }

    fn script_done(&mut self, pk: &'static str, writes: &[Write], executed: Executed) -> Result<String, Stop> {
        let body = executed.body.ok_or_else(|| "a script without a body".to_owned())?;
        let mut seen: Vec<Value> = serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))?;
        let all = seen.pop().unwrap_or_default();
        differ("what a script saw", seen.len(), writes.len())?;
        let mut answered = Vec::new();
        self.model.begin_transaction();
        for (write, seen) in writes.iter().zip(seen) {
            answered.push(match self.model.plan(write) {
                Ok(plan) => self.script_wrote(write, plan, seen)?,
                Err(kinds) => {
                    let number = seen.as_u64();
                    if !kinds.iter().any(|kind| number == Some(status(kind))) {
                        return Err(Stop::Wrong(format!("{write:?}: got {seen}, want one of {kinds:?}")));
                    }
                    format!("{number:?}")
                }
            });
        }
        self.model.end_transaction();
        let want = self.model.listed(Part::Key(pk), &Vec::new());
        let all = all.as_array().ok_or_else(|| format!("no items: {all}"))?;
        differ("items that a script saw", all.len(), want.len())?;
        for (item, version) in all.iter().zip(want) {
            check_shown(item.clone(), version)?;
        }
        Ok(format!("{answered:?}"))
    }

    fn script_wrote(&mut self, write: &Write, plan: Plan, seen: Value) -> Result<String, String> {
        let (pk, id) = write.name();
        if plan.version.is_none() {
            differ("a delete in a script", &seen, &Value::Null)?;
            self.model.carry_out(plan, "", "");
            return Ok("deleted".into());
        }
        let label = |name: &str| seen[name].as_str().map(str::to_owned);
        let (etag, rid) = label("_etag")
            .zip(label("_rid"))
            .ok_or_else(|| format!("{write:?}: {seen}"))?;
        self.labelled(pk, id, plan, &etag, &rid)?;
        check_shown(seen, self.model.stored(pk, id).expect("just stored"))?;
        Ok("written".into())
    }
}

/// Whether one of the writes is refused, each over the effects of those before it.
fn any_fails(mut model: Model, writes: &[Write]) -> bool {
    writes.iter().enumerate().any(|(at, write)| match model.plan(write) {
        // Labels that no client knows.
        Ok(plan) => {
            model.carry_out(plan, &format!("in the script {at}"), "");
            false
        }
        Err(_) => true,
    })
}

fn step(write: &Write) -> Value {
    let item = |text: String| serde_json::from_str::<Value>(&text).expect("programs send JSON objects");
    match write {
        Write::Create(doc) => json!({"what": "create", "item": item(doc.text())}),
        Write::Upsert(doc, etag) => json!({"what": "upsert", "item": item(doc.text()), "etag": etag}),
        Write::Replace(id, doc, etag) => json!({"what": "replace", "id": id, "item": item(doc.text()), "etag": etag}),
        Write::Delete(_, id, etag) => json!({"what": "delete", "id": id, "etag": etag}),
        Write::Patch(..) => Value::Null,
    }
}

/// What a script sees of a refusal. Source: cosmos-rest §11.3.
fn status(kind: &ErrorKind) -> u64 {
    match kind {
        ErrorKind::NotFound => 404,
        ErrorKind::Conflict | ErrorKind::UniqueKeyConflict => 409,
        ErrorKind::PreconditionFailed => 412,
        ErrorKind::BadRequest => 400,
        other => panic!("the model refuses nothing so: {other:?}"),
    }
}
