//! `createIndexes`.

use bolide_core::{CatalogEventKind, CollectionChange, CollectionDefinition};
use bolide_model::ttl::Policy;
use bolide_mql::index::{Comparison, Existing, IndexDefinition, ParseOptions, TtlMode, compare_definitions};
use bolide_mql::{Code, Error, Result};
use bson::raw::{RawBsonRef, cstr};
use bson::{RawDocument, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::{collections, expanded_events, indexes};

/// MongoDB's code for a value that should be an object.
const EXPECTED_OBJECT: i32 = 10065;

/// `{createIndexes, indexes: [{key, name, …}], commitQuorum?}` → the numbers of indexes before and after.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let specifications = read_specifications(&mut arguments)?;
    // There is one member.
    arguments.ignore(&["commitQuorum", "ignoreUnknownIndexOptions"]);
    arguments.finish()?;
    let mode = context.state.account.draft_options().ttl_mode;
    let specifications: Vec<RawDocumentBuf> = specifications.into_iter().map(ToOwned::to_owned).collect();
    let known = collections::find(context, &namespace);
    let is_created = known.is_none();
    let container = match known {
        Some(container) => container,
        None => {
            // All specifications are checked before anything is created.
            let mut empty = CollectionDefinition::new(RawDocumentBuf::new(), None, IndexDefinition::id_index(None)?);
            let mut policy = Policy::Off;
            let mut change = CollectionChange {
                definition: &mut empty,
                policy: &mut policy,
                now: context.begin().await?.now,
                is_empty: true,
                is_cancelled: false,
                event: None,
            };
            add_all(&mut change, &namespace.to_string(), &specifications, mode)?;
            collections::find_or_create(context, &namespace).await?
        }
    };
    let name = namespace.to_string();
    let is_in_transaction = context.transaction.is_some();
    let is_existing = indexes::created_in(context, &container).is_none();
    let decide = move |change: &mut CollectionChange<'_>| {
        let is_empty = change.is_empty;
        let added = add_all(change, &name, &specifications, mode)?;
        // Otherwise the definition would get a new version.
        change.is_cancelled = is_in_transaction && added.before == added.after;
        match is_in_transaction && added.before != added.after {
            true if is_existing => Err(refused_in_transaction("existing", &name)),
            true if !is_empty => Err(refused_in_transaction("non-empty", &name)),
            _ => Ok(added),
        }
    };
    let Added {
        before,
        after,
        to_build,
    } = indexes::change(context, &container, decide).await?;
    indexes::build(context, &namespace, &container, to_build).await?;
    let mut body = rawdoc! {"_t": "CreateIndexesResponse"};
    body.append(cstr!("createdCollectionAutomatically"), is_created);
    body.append(cstr!("numIndexesBefore"), before);
    body.append(cstr!("numIndexesAfter"), after);
    if before == after {
        body.append(cstr!("note"), "all indexes already exist");
    } else {
        body.append(cstr!("commitQuorum"), "votingMembers");
    }
    Ok(body.into())
}

fn refused_in_transaction(which: &str, namespace: &str) -> Error {
    let text = format!("Cannot create new indexes on {which} collection {namespace} in a multi-document transaction.");
    Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text)
}

fn read_specifications<'a>(arguments: &mut Arguments<'a>) -> Result<Vec<&'a RawDocument>> {
    match arguments.any_value("indexes") {
        Some(RawBsonRef::Null | RawBsonRef::Undefined) => {
            let text = "invalid parameter: expected an object (indexes)";
            return Err(Error::new(EXPECTED_OBJECT, text));
        }
        Some(RawBsonRef::Array(array)) if array.is_empty() => {
            return Err(Error::bad_value("Must specify at least one index to create"));
        }
        _ => {}
    }
    let specifications = arguments.documents("indexes")?;
    arguments.required("indexes", specifications)
}

/// What was added to a definition.
pub struct Added {
    before: i32,
    after: i32,
    /// The ids of indexes that have to be built.
    pub to_build: Vec<u32>,
}

/// Adds the indexes that do not exist yet.
///
/// # Errors
/// Those of the specifications; conflicts with indexes that exist.
pub fn add_all(
    change: &mut CollectionChange<'_>,
    namespace: &str,
    specifications: &[RawDocumentBuf],
    ttl_mode: TtlMode,
) -> Result<Added> {
    let before = number(change.definition);
    let (mut to_build, mut added) = (Vec::new(), Vec::new());
    for specification in specifications {
        let options = ParseOptions {
            ttl_mode,
            default_collation: change.definition.collation.as_ref(),
        };
        let definition = IndexDefinition::parse(specification, &options)?;
        indexes::check_sharded(change.definition, &definition)?;
        let definitions = indexes::definitions(change.definition);
        let existing = Existing {
            namespace,
            definitions: &definitions,
            ttl_mode,
        };
        if compare_definitions(&existing, &definition)? == Comparison::New {
            added.push(definition.clone());
            to_build.extend(indexes::add(change, definition));
        } else if added.iter().any(|known| known.name() == definition.name()) {
            let text = format!("Identical index already exists: {}", definition.name());
            return Err(Error::new(Code::INDEX_ALREADY_EXISTS, text));
        }
    }
    expanded_events::note_indexes(change, CatalogEventKind::CreateIndexes, &added);
    Ok(Added {
        before,
        after: number(change.definition),
        to_build,
    })
}

fn number(definition: &CollectionDefinition) -> i32 {
    i32::try_from(definition.indexes.len()).unwrap_or(i32::MAX)
}
