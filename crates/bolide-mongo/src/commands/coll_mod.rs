//! `collMod`.

use std::sync::Arc;

use bolide_core::{CollectionChange, Container};
use bolide_mql::index::{Existing, IndexModification, TtlMode};
use bolide_mql::{Code, Error, Result};
use bson::raw::cstr;
use bson::{RawArray, RawDocument, RawDocumentBuf};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::indexes::{self, Conversion};
use super::data::options::{self, NO_COLLECTION_TTL, Validation};
use super::data::views::View;
use super::data::{collections, expanded_events};
use crate::namespace::Namespace;

/// `{collMod, index?: {name | keyPattern, expireAfterSeconds?, hidden?, unique?, prepareUnique?}, validator?, validationLevel?, validationAction?,
/// changeStreamPreAndPostImages?}` → the old and new values of the index. All changes are one: requests see either none or all of them.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let index = arguments.document("index")?.map(ToOwned::to_owned);
    let seconds = arguments.value("expireAfterSeconds");
    let changes = OptionChanges {
        validation: Validation::read(&mut arguments, &namespace)?,
        images: options::read_images(&mut arguments)?,
    };
    let view = (arguments.string("viewOn")?, arguments.array("pipeline")?);
    for field in ["timeseries", "cappedSize", "cappedMax"] {
        if arguments.value(field).is_some() {
            let text = format!("the option '{field}' of collMod is not supported");
            return Err(Error::new(Code::NOT_IMPLEMENTED, text));
        }
    }
    if arguments.boolean("dryRun")? == Some(true) {
        return Err(Error::new(
            Code::NOT_IMPLEMENTED,
            "the option 'dryRun' of collMod is not supported",
        ));
    }
    arguments.finish()?;
    let Some(container) = collections::find(context, &namespace) else {
        let text = format!("ns does not exist: {namespace}");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, text));
    };
    if seconds.is_some() {
        return Err(Error::new(Code::INVALID_OPTIONS, NO_COLLECTION_TTL));
    }
    if let Some(index) = &index {
        IndexModification::parse(index)?;
    }
    if let Some(known) = View::of(&container, context.database) {
        if index.is_some() || !changes.is_empty() {
            let text = "option not supported on a view";
            return Err(Error::new(Code::INVALID_OPTIONS, text));
        }
        return change_view(context, (&namespace, &container), known, view).await;
    }
    if view != (None, None) {
        let text = "option not supported on a collection: viewOn, pipeline";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    change(context, &namespace, &container, index, changes).await
}

/// The changes of a collection's options.
struct OptionChanges {
    validation: Validation,
    images: Option<RawDocumentBuf>,
}

/// Changes what a view reads.
async fn change_view(
    context: &CommandContext<'_>,
    (namespace, container): (&Namespace, &Arc<Container>),
    known: View,
    (on, pipeline): (Option<&str>, Option<&RawArray>),
) -> Result<Reply> {
    let mut view = known;
    if let Some(on) = on {
        on.clone_into(&mut view.on.collection);
    }
    if let Some(pipeline) = pipeline {
        view.pipeline = pipeline.to_owned();
    }
    view.check(context, namespace, &context.language(&context.begin().await?))?;
    let decide = move |change: &mut CollectionChange<'_>| {
        let options = options::with(
            &change.definition.options,
            cstr!("viewOn"),
            view.on.collection.as_str().into(),
        )?;
        change.definition.options = options::with(&options, cstr!("pipeline"), view.pipeline.clone().into())?;
        Ok(())
    };
    indexes::change(context, container, decide).await?;
    Ok(Reply::default())
}

impl OptionChanges {
    fn is_empty(&self) -> bool {
        self.validation.is_empty() && self.images.is_none()
    }

    fn apply(&self, change: &mut CollectionChange<'_>) -> Result<()> {
        if !self.validation.is_empty() {
            change.definition.options = self.validation.change(&change.definition.options)?;
        }
        if let Some(images) = &self.images {
            let name = cstr!("changeStreamPreAndPostImages");
            change.definition.options = options::with(&change.definition.options, name, images.clone().into())?;
        }
        let options = change.definition.options.clone();
        expanded_events::note_modified(change, options, None);
        Ok(())
    }
}

async fn change(
    context: &CommandContext<'_>,
    namespace: &Namespace,
    container: &Arc<Container>,
    index: Option<RawDocumentBuf>,
    changes: OptionChanges,
) -> Result<Reply> {
    let (name, mode) = (namespace.to_string(), context.state.account.draft_options().ttl_mode);
    let decide = move |change: &mut CollectionChange<'_>| {
        changes.apply(change)?;
        match &index {
            Some(index) => modify(change, &name, mode, index),
            None => Ok((RawDocumentBuf::new(), None)),
        }
    };
    let (reply, conversion) = indexes::change(context, container, decide).await?;
    if let Some(conversion) = conversion {
        indexes::convert(context, container, conversion).await?;
    }
    Ok(reply.into())
}

/// Changes an index. Returns the fields of the reply, and what is to be built if documents lack the keys of an index that is unique now.
fn modify(
    change: &mut CollectionChange<'_>,
    namespace: &str,
    ttl_mode: TtlMode,
    index: &RawDocument,
) -> Result<(RawDocumentBuf, Option<Conversion>)> {
    let definitions = indexes::definitions(change.definition);
    let existing = Existing {
        namespace,
        definitions: &definitions,
        ttl_mode,
    };
    let modified = IndexModification::parse(index)?.apply(&existing)?;
    let Some(before) = definitions.get(modified.position) else {
        return Ok((modified.reply, None));
    };
    indexes::check_sharded(change.definition, &modified.definition)?;
    let becomes_unique = modified.definition.enforces_unique() && !before.enforces_unique();
    // Documents that are there have no deadline under a rule that is new.
    let becomes_ttl = indexes::date_seconds(&modified.definition).is_some() && indexes::date_seconds(before).is_none();
    let must_build = (becomes_unique || becomes_ttl) && !change.is_empty;
    indexes::replace(change, before.name(), modified.definition);
    expanded_events::note_modified_index(change, before.name(), &modified.reply);
    let conversion = must_build.then(|| Conversion::begin(change, before.clone()));
    Ok((modified.reply, conversion.flatten()))
}

#[cfg(test)]
mod tests;
