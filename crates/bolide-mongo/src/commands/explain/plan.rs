//! The plan of a query, and what its execution counts.

use std::sync::Arc;

use bolide_core::{Container, IndexPart, ScanDirection, Task};
use bolide_mql::filter::{Filter, MatchDetails};
use bolide_mql::update::Update;
use bolide_mql::{Code, Context, Error, Result};
use bson::raw::{RawBsonRef, cstr};
use bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use super::index_scan;
use super::request::{Explained, Purpose};
use crate::commands::context::CommandContext;
use crate::commands::data::find::Matches;
use crate::commands::data::in_order::InOrder;
use crate::commands::data::language::{Hinted, check_hint, filter};
use crate::commands::data::order::Order;
use crate::commands::data::statements::count;
use crate::commands::data::writer::DataContext;
use crate::commands::data::{collections, tasks, views};

/// How a query would be carried out.
#[derive(Clone)]
pub struct Plan {
    /// `None`: there is no such collection.
    container: Option<Arc<Container>>,
    filter: Arc<Filter>,
    /// The filter as it was sent.
    sent: RawDocumentBuf,
    language: Context,
    access: Access,
    hinted: Hinted,
    order: Order,
    sort: Option<RawDocumentBuf>,
    projection: Option<RawDocumentBuf>,
    skip: u64,
    limit: u64,
    root: Root,
}

/// How documents are found.
#[derive(Debug, Clone)]
enum Access {
    /// There is no such collection.
    Nothing,
    Scan(ScanDirection),
    /// By one value of `_id`.
    Id,
    /// By several.
    Ids,
    /// By parts of indexes, with the number of their keys in the first range.
    Indexes(Vec<IndexPart>, u64),
    /// By a part of an index in the order of the sort, from its start or from its end.
    InOrder {
        part: IndexPart,
        is_backward: bool,
    },
}

/// What is done with them.
#[derive(Clone)]
enum Root {
    Return,
    Count,
    Delete,
    Update { update: Arc<Update>, is_upsert: bool },
}

/// What an execution counted. Documents that have ended count nowhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Execution {
    /// Documents that were read.
    pub examined: u64,
    /// Keys of indexes that were read.
    pub keys_examined: u64,
    /// Documents that matched.
    matched: u64,
    /// Documents that the update would change.
    modified: u64,
    /// Whether they were sorted although the plan was to read an index in their order.
    has_sorted: bool,
    /// Time in milliseconds.
    pub millis: i32,
}

impl Execution {
    /// Reads without writes.
    pub fn of_reads(examined: u64, matched: u64, millis: i32, keys_examined: u64) -> Execution {
        Execution {
            examined,
            keys_examined,
            matched,
            modified: 0,
            has_sorted: false,
            millis,
        }
    }

    /// The same, whose documents were sorted although the plan was to read an index in their order.
    #[must_use]
    pub fn sorted_if(self, has_sorted: bool) -> Execution {
        Execution { has_sorted, ..self }
    }
}

/// A stage of the plan.
struct Stage {
    name: &'static str,
    /// Its parameters.
    details: RawDocumentBuf,
    /// How many documents it returned.
    returned: u64,
    /// What else it counted.
    counters: RawDocumentBuf,
}

impl Stage {
    fn new(name: &'static str, details: RawDocumentBuf, returned: u64) -> Stage {
        Stage {
            name,
            details,
            returned,
            counters: RawDocumentBuf::new(),
        }
    }
}

impl Plan {
    /// Plans a command.
    ///
    /// # Errors
    /// Of the filter, the collation, the hint and the update.
    pub async fn new(context: &CommandContext<'_>, data: &DataContext, explained: Explained<'_>) -> Result<Plan> {
        let container = collections::find(context, &explained.namespace);
        if let Some(container) = &container
            && views::View::of(container, &explained.namespace.database).is_some()
        {
            let text = "explain of a view is not supported";
            return Err(Error::new(Code::NOT_IMPLEMENTED, text));
        }
        let language = explained.language.context(context, &data.request, container.as_ref())?;
        let filter = filter(explained.filter, &language)?;
        let order = Order::parse(explained.sort, explained.hint, &filter)?;
        let mut hinted = Hinted::default();
        let access = match &container {
            None => Access::Nothing,
            Some(container) => {
                hinted = check_hint(container, explained.hint)?;
                let mut matches = Matches::new(container.clone(), filter.clone(), &language)?;
                matches.follow(&hinted);
                let wanted = wanted(explained.skip, explained.limit);
                let mut documents = InOrder::new(matches, (order.clone(), &hinted), None, wanted);
                if matches!(explained.purpose, Purpose::Return) {
                    documents = documents.by_hint(&hinted);
                }
                access_of(documents, order.scan_direction(), data).await?
            }
        };
        let root = match explained.purpose {
            Purpose::Return => Root::Return,
            Purpose::Count => Root::Count,
            Purpose::Delete => Root::Delete,
            Purpose::Update {
                update,
                array_filters,
                options,
                is_upsert,
            } => Root::Update {
                update: Arc::new(Update::parse(update, array_filters, options, &language)?),
                is_upsert,
            },
        };
        Ok(Plan {
            container,
            filter,
            sent: explained.filter.map(ToOwned::to_owned).unwrap_or_default(),
            language,
            access,
            hinted,
            order,
            sort: explained
                .sort
                .filter(|sort| matches!(sort.get("$natural"), Ok(None)))
                .map(ToOwned::to_owned),
            projection: explained.projection.map(ToOwned::to_owned),
            skip: explained.skip,
            limit: explained.limit,
            root,
        })
    }

    /// The filter in the form in which MongoDB shows it: equalities with `$eq`, several conditions under `$and`.
    ///
    /// # Errors
    /// The filter is invalid BSON.
    pub fn parsed_query(&self) -> Result<RawDocumentBuf> {
        let mut conditions = Vec::new();
        for condition in &self.sent {
            let (path, value) = condition?;
            let is_operator = match value {
                RawBsonRef::Document(document) => has_operator(document),
                RawBsonRef::RegularExpression(_) => true,
                _ => path.as_str().starts_with('$'),
            };
            let mut shown = RawDocumentBuf::new();
            match is_operator {
                true => shown.append(path, value),
                false => {
                    let mut equal = RawDocumentBuf::new();
                    equal.append(cstr!("$eq"), value);
                    shown.append(path, equal);
                }
            }
            conditions.push(shown);
        }
        Ok(match conditions.len() {
            0 => RawDocumentBuf::new(),
            1 => conditions.swap_remove(0),
            _ => {
                let mut all = RawArrayBuf::new();
                for condition in conditions {
                    all.push(condition);
                }
                rawdoc! {"$and": all}
            }
        })
    }

    /// Carries out the reading side.
    ///
    /// # Errors
    /// Of the storage, the filter and the update; the command is killed or late.
    pub async fn execute(self, context: &CommandContext<'_>, data: &DataContext) -> Result<Execution> {
        let Some(container) = self.container.clone() else {
            return Ok(Execution::default());
        };
        let monotonic = context.state.monotonic().clone();
        let begun = monotonic.now();
        let scope = data.scope();
        let executed = tasks::run(context.state, move |task: &Task| {
            let mut language = self.language.clone();
            language.interrupt = tasks::interrupt(task, language.interrupt.clone());
            let mut matches = Matches::new(container, self.filter.clone(), &language)?;
            match self.access {
                Access::Scan(direction) => matches.scan(direction),
                _ => matches.follow(&self.hinted),
            }
            let wanted = wanted(self.skip, self.limit);
            let (order, most) = match (&self.access, &self.sort) {
                (Access::InOrder { .. }, _) => (self.order.clone(), wanted),
                // All are read to be sorted.
                (_, Some(_)) => (Order::Natural, None),
                (_, None) => (Order::Natural, wanted),
            };
            let mut documents = InOrder::new(matches, (order, &self.hinted), None, wanted);
            if matches!(self.access, Access::InOrder { .. }) {
                documents = documents.by_hint(&self.hinted);
            }
            documents.want(most);
            let mut execution = Execution::default();
            while most.is_none_or(|most| execution.matched < most) {
                let Some(document) = task.wait(documents.next(&scope, &language))? else {
                    break;
                };
                execution.matched += 1;
                if self.would_modify(document.document(), &language)? {
                    execution.modified += 1;
                }
            }
            let reads = Execution::of_reads(documents.examined(), execution.matched, 0, documents.keys_examined());
            execution.has_sorted = documents.has_sorted();
            Ok(Execution {
                modified: execution.modified,
                has_sorted: execution.has_sorted,
                ..reads
            })
        });
        let mut execution = executed.await?;
        execution.millis = i32::try_from(monotonic.since(begun).as_millis()).unwrap_or(i32::MAX);
        Ok(execution)
    }

    /// Number of keys of indexes that are read with so many documents.
    pub fn keys_of(&self, documents: u64) -> u64 {
        match self.access {
            Access::Id | Access::Ids => documents,
            Access::Indexes(_, keys) => keys,
            Access::Nothing | Access::Scan(_) | Access::InOrder { .. } => 0,
        }
    }

    fn would_modify(&self, document: &RawDocument, language: &Context) -> Result<bool> {
        let Root::Update { update, .. } = &self.root else {
            return Ok(false);
        };
        let details = match update.uses_matched_element() {
            true => self.filter.matches_with(document, language)?.unwrap_or_default(),
            false => MatchDetails::default(),
        };
        Ok(update.apply(document, &details, language)?.changed)
    }

    /// How many documents a client would get.
    pub fn returned(&self, execution: &Execution) -> u64 {
        match self.root {
            Root::Return => self.after_limit(execution.matched),
            Root::Count | Root::Delete | Root::Update { .. } => 0,
        }
    }

    fn after_limit(&self, matched: u64) -> u64 {
        let left = matched.saturating_sub(self.skip);
        match self.limit {
            0 => left,
            limit => left.min(limit),
        }
    }

    /// The stages of the plan as documents inside each other, with what an execution counted.
    pub fn tree(&self, execution: Option<&Execution>) -> RawDocumentBuf {
        let counted = execution.copied().unwrap_or_default();
        let mut tree: Option<RawDocumentBuf> = None;
        for stage in self.stages(&counted) {
            let mut document = rawdoc! {"stage": stage.name};
            append_all(&mut document, &stage.details);
            if execution.is_some() {
                document.append(cstr!("nReturned"), count(stage.returned));
                document.append(cstr!("executionTimeMillisEstimate"), counted.millis);
                document.append(cstr!("isEOF"), 1);
                append_all(&mut document, &stage.counters);
            }
            if let Some(input) = tree.take() {
                document.append(cstr!("inputStage"), input);
            }
            tree = Some(document);
        }
        tree.unwrap_or_default()
    }

    /// The stages, each after its input.
    fn stages(&self, counted: &Execution) -> Vec<Stage> {
        let mut stages = self.access_stages(counted);
        let mut returned = counted.matched;
        let is_in_order = matches!(self.access, Access::InOrder { .. }) && !counted.has_sorted;
        if let Some(sort) = self.sort.as_ref().filter(|_| !is_in_order) {
            let details = rawdoc! {"sortPattern": sort.clone(), "type": "simple"};
            stages.push(Stage::new("SORT", details, returned));
        }
        let is_count = matches!(self.root, Root::Count);
        if self.skip > 0 && !is_count {
            returned = returned.saturating_sub(self.skip);
            stages.push(Stage::new("SKIP", rawdoc! {"skipAmount": count(self.skip)}, returned));
        }
        if matches!(self.root, Root::Return) && self.limit > 0 {
            returned = returned.min(self.limit);
            stages.push(Stage::new(
                "LIMIT",
                rawdoc! {"limitAmount": count(self.limit)},
                returned,
            ));
        }
        stages.extend(self.root_stage(counted));
        if let Some(projection) = &self.projection {
            let details = rawdoc! {"transformBy": projection.clone()};
            stages.push(Stage::new("PROJECTION_DEFAULT", details, returned));
        }
        stages
    }

    fn access_stages(&self, counted: &Execution) -> Vec<Stage> {
        let mut filter = RawDocumentBuf::new();
        if let Ok(parsed) = self.parsed_query()
            && !parsed.is_empty()
        {
            filter.append(cstr!("filter"), parsed);
        }
        let id = rawdoc! {"keyPattern": {"_id": 1}, "indexName": "_id_"};
        let examined = rawdoc! {"docsExamined": count(counted.examined)};
        let access = match &self.access {
            Access::InOrder { .. } if counted.has_sorted => &Access::Scan(ScanDirection::Forward),
            access => access,
        };
        match access {
            Access::Nothing => vec![Stage::new("EOF", RawDocumentBuf::new(), 0)],
            Access::Scan(direction) => {
                let direction = match direction {
                    ScanDirection::Backward => "backward",
                    ScanDirection::Forward => "forward",
                };
                filter.append(cstr!("direction"), direction);
                vec![Stage {
                    counters: examined,
                    ..Stage::new("COLLSCAN", filter, counted.matched)
                }]
            }
            Access::Id => {
                let mut counters = rawdoc! {"keysExamined": count(counted.keys_examined)};
                append_all(&mut counters, &examined);
                vec![Stage {
                    counters,
                    ..Stage::new("IDHACK", id, counted.matched)
                }]
            }
            Access::Indexes(parts, _) => fetched(index_scan::stage(parts), (filter, examined), counted),
            Access::InOrder { part, is_backward } => {
                let scan = ("IXSCAN", index_scan::in_order(part, *is_backward));
                fetched(scan, (filter, examined), counted)
            }
            Access::Ids => fetched(("IXSCAN", id), (filter, examined), counted),
        }
    }

    fn root_stage(&self, counted: &Execution) -> Option<Stage> {
        // At most one document is changed, even if all were read to find the first in an order.
        let changed = match self.limit {
            0 => counted.matched,
            limit => counted.matched.min(limit),
        };
        let (name, counters) = match &self.root {
            Root::Return => return None,
            Root::Count => {
                let counted = self.after_limit(counted.matched);
                let skipped = self.skip;
                (
                    "COUNT",
                    rawdoc! {"nCounted": count(counted), "nSkipped": count(skipped)},
                )
            }
            Root::Delete => ("DELETE", rawdoc! {"nWouldDelete": count(changed)}),
            Root::Update { is_upsert, .. } => (
                "UPDATE",
                rawdoc! {
                    "nMatched": count(changed),
                    "nWouldModify": count(counted.modified.min(changed)),
                    "nWouldUpsert": i32::from(*is_upsert && counted.matched == 0),
                },
            ),
        };
        Some(Stage {
            counters,
            ..Stage::new(name, RawDocumentBuf::new(), 0)
        })
    }
}

/// The stages that read keys and then their documents.
fn fetched(
    (name, details): (&'static str, RawDocumentBuf),
    (filter, examined): (RawDocumentBuf, RawDocumentBuf),
    counted: &Execution,
) -> Vec<Stage> {
    vec![
        Stage {
            counters: rawdoc! {"keysExamined": count(counted.keys_examined)},
            ..Stage::new(name, details, counted.keys_examined)
        },
        Stage {
            counters: examined,
            ..Stage::new("FETCH", filter, counted.matched)
        },
    ]
}

/// How many documents are read at most, if a limit says so.
fn wanted(skip: u64, limit: u64) -> Option<u64> {
    (limit > 0).then(|| limit.saturating_add(skip))
}

/// Decides how documents are found, without reading them.
async fn access_of(mut documents: InOrder, direction: Option<ScanDirection>, data: &DataContext) -> Result<Access> {
    Ok(match (direction, documents.matches().ids()) {
        (Some(direction), _) => Access::Scan(direction),
        (None, Some(1)) => Access::Id,
        (None, Some(_)) => Access::Ids,
        (None, None) => {
            if let Some((part, is_backward)) = documents.prepare(&data.scope()).await? {
                return Ok(Access::InOrder { part, is_backward });
            }
            let matches = documents.matches();
            match matches.plan() {
                [] => Access::Scan(ScanDirection::Forward),
                parts => Access::Indexes(parts.to_vec(), matches.keys_examined()),
            }
        }
    })
}

fn has_operator(document: &RawDocument) -> bool {
    matches!(document.iter().next(), Some(Ok((name, _))) if name.as_str().starts_with('$'))
}

fn append_all(document: &mut RawDocumentBuf, fields: &RawDocument) {
    for (name, value) in fields.iter().flatten() {
        document.append(name, value);
    }
}
