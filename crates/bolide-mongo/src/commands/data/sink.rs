//! `$out` and `$merge`: writing the documents of a pipeline into a collection.

use std::sync::Arc;

use bolide_core::{CollectionDefinition, Container, ShardKey};
use bolide_model::epk::Epk;
use bolide_model::ttl::Policy;
use bolide_mql::aggregation::{Merge, Out, Sink, WhenMatched, WhenNotMatched};
use bolide_mql::filter::Filter;
use bolide_mql::path::field::FieldPath;
use bolide_mql::update::{ParseOptions, Update};
use bolide_mql::{Code, Context, Error, Result, document};
use bson::raw::{CString, RawBsonRef};
use bson::{RawBson, RawDocument, RawDocumentBuf, rawdoc};

use super::super::aggregate::{PipelineCursor, next_documents};
use super::super::context::CommandContext;
use super::changes::{Action, Effect, Statement};
use super::language::Hinted;
use super::order::Order;
use super::validation::Validator;
use super::writer::DataContext;
use super::{collections, drafts, views};
use crate::codes;
use crate::namespace::Namespace;

/// MongoDB's code for a document without a match when `whenNotMatched` is `fail`.
const NOT_MATCHED: i32 = 13113;
/// MongoDB's code for `$out` into a sharded collection.
const OUT_TO_SHARDED: i32 = 28769;
/// MongoDB's code for `on` fields without a unique index.
const NO_UNIQUE_INDEX: i32 = 51190;
/// MongoDB's code for a document without one of the `on` fields.
const MISSING_ON_FIELD: i32 = 51132;

/// The writes of one command.
pub struct Writes<'a> {
    /// The command.
    pub context: &'a CommandContext<'a>,
    /// Its time, collation and variables.
    pub language: Context,
    /// Whether the validator of the collection is bypassed.
    pub bypasses_validation: bool,
}

impl Writes<'_> {
    /// Writes all documents of a pipeline.
    ///
    /// # Errors
    /// Those of the pipeline, of the language and of the storage. `$out` leaves the collection as it was then; what `$merge` has written stays.
    pub async fn all(&self, sink: &Sink, source: &mut PipelineCursor) -> Result<()> {
        if self.context.transaction.is_some() {
            let text = "$out and $merge cannot be used in a transaction";
            return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text));
        }
        match sink {
            Sink::Out(out) => self.out(out, source).await,
            Sink::Merge(merge) => self.merge(merge, source).await,
        }
    }

    async fn out(&self, out: &Out, source: &mut PipelineCursor) -> Result<()> {
        let into = Namespace::new(&out.into.database, &out.into.collection)?;
        let known = collections::find(self.context, &into);
        views::refuse(self.context.state, &into.database, &into.collection)?;
        let (definition, policy) = match &known {
            Some(container) if container.is_sharded() => {
                let text = format!("namespace '{into}' is sharded so it can't be used for $out'");
                return Err(Error::new(OUT_TO_SHARDED, text));
            }
            Some(container) => {
                let known = collections::definition(container)?;
                (copy_of(&known), container.properties().policy)
            }
            None => {
                let id_index = bolide_mql::index::IndexDefinition::id_index(None)?;
                let definition = CollectionDefinition::new(RawDocumentBuf::new(), None, id_index);
                (definition, Policy::Off)
            }
        };
        let name = format!("tmp.agg_out.{}", uuid::Uuid::new_v4().simple());
        let temporary = Namespace::new(&into.database, &name)?;
        let container = collections::create(self.context, &temporary, definition, policy).await?;
        let filled = self.fill(&temporary, &container, source).await;
        let account = &self.context.state.account;
        let renamed = match filled {
            Ok(()) => {
                let renamed = account.rename_collection(&container, &into.collection, true).await;
                renamed.map_err(|error| codes::error(&error))
            }
            Err(error) => Err(error),
        };
        if renamed.is_err() {
            // The error that is told is the one before; what is left over is only space.
            let _ = account.drop_collection(&container).await;
        }
        renamed
    }

    async fn fill(&self, namespace: &Namespace, container: &Arc<Container>, source: &mut PipelineCursor) -> Result<()> {
        let definition = collections::definition(container)?;
        let validator = Validator::of(&definition, self.bypasses_validation)?;
        loop {
            let (documents, is_last) = next_documents(self.context, source).await?;
            let mut prepared = Vec::with_capacity(documents.len());
            for document in documents {
                let document = document::prepare_insert(&document, &self.language, true)?;
                validator.check(&document, &self.language)?;
                prepared.push(drafts::draft(self.context, &definition, document)?);
            }
            let prepared = Arc::new(prepared);
            let data = DataContext::outside_of_transactions(self.context).await?;
            let inserting = prepared.clone();
            let written = data.write(self.context, (container, Epk::start()), move |batch| {
                batch.foresee_all(inserting.iter())?;
                for (at, draft) in inserting.iter().enumerate() {
                    if let Err(duplicate) = batch.insert(draft)? {
                        return Ok(Err((at, duplicate)));
                    }
                }
                Ok(Ok(()))
            });
            if let Err((at, duplicate)) = written.await?
                && let Some(draft) = prepared.get(at)
            {
                return Err(drafts::duplicate(&definition, namespace, draft.document(), &duplicate));
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn merge(&self, merge: &Arc<Merge>, source: &mut PipelineCursor) -> Result<()> {
        let into = Namespace::new(&merge.into.database, &merge.into.collection)?;
        views::refuse(self.context.state, &into.database, &into.collection)?;
        let container = collections::find_or_create(self.context, &into).await?;
        let on: Vec<String> = match &merge.on {
            Some(fields) => fields.iter().map(FieldPath::text).collect(),
            None => vec!["_id".to_owned()],
        };
        check_unique(&container, &on)?;
        loop {
            let (documents, is_last) = next_documents(self.context, source).await?;
            for document in documents {
                self.merge_one(merge, (&into, &container), &on, &document).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    // Long: each combination of the two options is a branch.
    async fn merge_one(
        &self,
        merge: &Merge,
        (namespace, container): (&Namespace, &Arc<Container>),
        on: &[String],
        document: &RawDocument,
    ) -> Result<()> {
        let document = match document.get("_id")? {
            Some(_) => document.to_owned(),
            None => document::prepare_insert(document, &self.language, true)?,
        };
        let filter = filter_of(merge, (on, shard_key_of(container)?), &document)?;
        let inserts = merge.when_not_matched == WhenNotMatched::Insert;
        let update = match &merge.when_matched {
            WhenMatched::Replace => RawBson::Document(document.clone()),
            WhenMatched::Merge => RawBson::Document(rawdoc! {"$set": document.clone()}),
            WhenMatched::Pipeline(stages) => RawBson::Array(stages.clone()),
            WhenMatched::KeepExisting | WhenMatched::Fail => {
                RawBson::Document(rawdoc! {"$setOnInsert": document.clone()})
            }
        };
        let mut language = self.language.clone();
        if matches!(merge.when_matched, WhenMatched::Pipeline(_)) {
            let mut variables = language.variables.to_vec();
            variables.extend(merge.variables(&document, &language)?);
            language.variables = variables.into();
        }
        let parsed = Update::parse(update.as_raw_bson_ref(), None, ParseOptions::default(), &language)?;
        // A pipeline changes a document that is there; a new one is inserted as it is.
        let is_pipeline = matches!(merge.when_matched, WhenMatched::Pipeline(_));
        let data = DataContext::outside_of_transactions(self.context).await?;
        let statement = |action| Statement {
            context: self.context,
            data: &data,
            container,
            namespace,
            filter: filter.clone(),
            language: language.clone(),
            action,
            is_multi: false,
            order: Order::Natural,
            hinted: Hinted::default(),
            retry: None,
        };
        let changed = statement(Action::Update {
            update: Arc::new(parsed),
            is_upsert: inserts && !is_pipeline,
            bypasses_validation: self.bypasses_validation,
        });
        let mut changed = changed.run(Arc::new(no_result)).await?;
        if is_pipeline && inserts && changed.matched == 0 {
            let update = rawdoc! {"$setOnInsert": document.clone()};
            let update = Update::parse(RawBsonRef::Document(&update), None, ParseOptions::default(), &language)?;
            let inserted = statement(Action::Update {
                update: Arc::new(update),
                is_upsert: true,
                bypasses_validation: self.bypasses_validation,
            });
            changed = inserted.run(Arc::new(no_result)).await?;
        }
        if changed.matched > 0 && merge.when_matched == WhenMatched::Fail {
            let text = format!("$merge found a document that exists already in {namespace}");
            return Err(Error::new(Code::DUPLICATE_KEY, text));
        }
        if changed.matched == 0 && merge.when_not_matched == WhenNotMatched::Fail {
            let text = "$merge could not find a matching document in the target collection for at least one document in the source collection";
            return Err(Error::new(NOT_MATCHED, text));
        }
        Ok(())
    }
}

/// The definition of a collection that takes the place of another: the same options and indexes.
fn copy_of(known: &CollectionDefinition) -> CollectionDefinition {
    let id_index = known.indexes.first().map(|index| (*index.definition).clone());
    let Some(id_index) = id_index else {
        return known.clone();
    };
    let mut copy = CollectionDefinition::new(known.options.clone(), known.collation.clone(), id_index);
    for index in known.indexes.iter().skip(1).filter(|index| !index.is_building) {
        let seconds = match index.definition.ttl_rule() {
            Some(bolide_mql::index::TtlRule::Date(seconds)) => Some(seconds),
            _ => None,
        };
        copy.add_index((*index.definition).clone(), seconds, false);
    }
    copy
}

/// Returns the filter that finds the document to merge with.
fn filter_of(
    merge: &Merge,
    (on, shard_key): (&[String], Option<Arc<ShardKey>>),
    document: &RawDocument,
) -> Result<Arc<Filter>> {
    let paths = merge.on.as_deref().unwrap_or_default();
    let mut conditions = RawDocumentBuf::new();
    let values: Vec<RawBson> = match paths.is_empty() {
        true => document.get("_id")?.map(RawBson::from).into_iter().collect(),
        false => merge
            .on_values(document, paths)?
            .into_iter()
            .map(RawBson::from)
            .collect(),
    };
    if values.len() != on.len() {
        let text = "$merge write error: 'on' field cannot be missing, null, undefined or an array";
        return Err(Error::new(MISSING_ON_FIELD, text));
    }
    for (field, value) in on.iter().zip(values) {
        let name = CString::try_from(field.as_str()).map_err(|_| Error::bad_value("a field's name has a null byte"))?;
        conditions.append(name, rawdoc! {"$eq": value});
    }
    // In a sharded collection `_id` alone does not identify a document.
    if let Some(shard_key) = shard_key.filter(|shard_key| !on.contains(&shard_key.path())) {
        conditions.append(
            shard_key.name(),
            rawdoc! {"$eq": RawBson::from(shard_key.value_in(document)?)},
        );
    }
    Filter::parse(&conditions).map(Arc::new)
}

fn shard_key_of(container: &Container) -> Result<Option<Arc<ShardKey>>> {
    Ok(collections::definition(container)?.shard_key.clone())
}

/// Checks that the fields have a unique index of exactly these fields, in any order.
fn check_unique(container: &Container, on: &[String]) -> Result<()> {
    let definition = collections::definition(container)?;
    let is_unique = definition.indexes.iter().any(|index| {
        let definition = &index.definition;
        let fields: Vec<String> = definition
            .key()
            .fields()
            .iter()
            .map(|field| field.name.to_string())
            .collect();
        let has_all = fields.len() == on.len() && on.iter().all(|field| fields.contains(field));
        has_all && definition.enforces_unique() && definition.partial().is_none() && !index.is_building
    });
    if is_unique {
        return Ok(());
    }
    let text = "Cannot find index to verify that join fields will be unique";
    Err(Error::new(NO_UNIQUE_INDEX, text))
}

/// No retryable write: nothing is stored.
fn no_result(_: &Effect<'_>) -> Result<RawDocumentBuf> {
    Ok(RawDocumentBuf::new())
}
