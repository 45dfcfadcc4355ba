//! `createIndexes`.

use bolide_core::{CollectionChange, CollectionDefinition};
use bolide_model::ttl::Policy;
use bolide_mql::Result;
use bolide_mql::index::{Comparison, Existing, IndexDefinition, ParseOptions, TtlMode, compare_definitions};
use bson::raw::cstr;
use bson::{RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::{collections, indexes};

/// `{createIndexes, indexes: [{key, name, …}], commitQuorum?}` → the numbers of indexes before and after.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let specifications = arguments.documents("indexes")?;
    let specifications = arguments.required("indexes", specifications)?;
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
            };
            add_all(&mut change, &namespace.to_string(), &specifications, mode)?;
            collections::find_or_create(context, &namespace).await?
        }
    };
    let name = namespace.to_string();
    let decide = move |change: &mut CollectionChange<'_>| add_all(change, &name, &specifications, mode);
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
    let mut to_build = Vec::new();
    for specification in specifications {
        let options = ParseOptions {
            ttl_mode,
            default_collation: change.definition.collation.as_ref(),
        };
        let definition = IndexDefinition::parse(specification, &options)?;
        let definitions = indexes::definitions(change.definition);
        let existing = Existing {
            namespace,
            definitions: &definitions,
            ttl_mode,
        };
        if compare_definitions(&existing, &definition)? == Comparison::New {
            to_build.extend(indexes::add(change, definition));
        }
    }
    Ok(Added {
        before,
        after: number(change.definition),
        to_build,
    })
}

fn number(definition: &CollectionDefinition) -> i32 {
    i32::try_from(definition.indexes.len()).unwrap_or(i32::MAX)
}
