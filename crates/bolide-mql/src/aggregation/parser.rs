//! The parser of pipelines: the table of stages, and where each may stand.

use std::sync::Arc;

use bson::raw::{RawArray, RawBsonRef};

use super::limits::{MAX_STAGES, MAX_SUB_PIPELINE_DEPTH};
use super::namespace::Namespace;
use super::pipeline::{Pipeline, PipelineOptions};
use super::sink::{self, Sink};
use super::source::SourceStage;
use super::stage::Stage;
use super::stages;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::ParseScope;

/// What is known while a pipeline is parsed.
pub(super) struct Parser {
    /// The collection, or database, of the pipeline.
    pub(super) namespace: Namespace,
    /// The variables that expressions may name.
    pub(super) scope: ParseScope,
    /// The fields that have a geometric index, for `$geoNear` without `key`.
    pub(super) geo_fields: Vec<String>,
    place: Place,
    depth: usize,
    /// Whether the current stage is the first one.
    is_first: bool,
}

/// What a pipeline is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A command.
    Command,
    /// A view.
    View,
    /// `$facet`
    Facet,
    /// `$lookup`
    Lookup,
    /// `$unionWith`
    Union,
}

/// What one element of a pipeline becomes.
pub(super) enum Parsed {
    /// Stages; most are one.
    Stages(Vec<Arc<dyn Stage>>),
    /// A stage that makes documents itself, at the start.
    Documents(Arc<dyn Stage>),
    /// A stage at the start whose documents the caller supplies.
    Source(SourceStage),
    /// A stage at the end.
    Sink(Sink),
}

impl Parsed {
    /// Returns one stage.
    pub(super) fn stage(stage: impl Stage + 'static) -> Parsed {
        Parsed::Stages(vec![Arc::new(stage)])
    }
}

/// A parser of a stage: its name and specification.
type Parse = fn(&'static str, RawBsonRef<'_>, &mut Parser) -> Result<Parsed>;

/// Where a stage may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Any,
    /// Only at the start.
    First,
    /// Only at the start, of a pipeline on a database.
    FirstOfDatabase,
    /// Only at the end.
    Last,
}

struct Row {
    name: &'static str,
    parse: Parse,
    position: Position,
    in_facet: bool,
}

const fn row(name: &'static str, parse: Parse, position: Position, in_facet: bool) -> Row {
    Row {
        name,
        parse,
        position,
        in_facet,
    }
}

/// The stages of mongo.md §13, by name.
const STAGES: &[Row] = &[
    row("$addFields", stages::shape::parse, Position::Any, true),
    row("$bucket", stages::bucket::parse, Position::Any, true),
    row("$bucketAuto", stages::bucket_auto::parse, Position::Any, true),
    row("$changeStream", stages::caller::parse, Position::First, false),
    row(
        "$changeStreamSplitLargeEvent",
        stages::caller::not_implemented,
        Position::Any,
        false,
    ),
    row("$collStats", stages::caller::parse, Position::First, false),
    row("$count", stages::count::parse, Position::Any, true),
    row("$currentOp", stages::caller::parse, Position::FirstOfDatabase, false),
    row("$densify", stages::densify::parse, Position::Any, true),
    row("$documents", stages::documents::parse, Position::FirstOfDatabase, false),
    row("$facet", stages::facet::parse, Position::Any, false),
    row("$fill", stages::fill::parse, Position::Any, true),
    row("$geoNear", stages::geo_near::parse, Position::First, false),
    row("$graphLookup", stages::graph_lookup::parse, Position::Any, true),
    row("$group", stages::group::parse, Position::Any, true),
    row("$indexStats", stages::caller::parse, Position::First, false),
    row("$limit", stages::limit::parse_limit, Position::Any, true),
    row(
        "$listLocalSessions",
        stages::caller::parse,
        Position::FirstOfDatabase,
        false,
    ),
    row("$listSessions", stages::caller::parse, Position::First, false),
    row("$lookup", stages::lookup::parse, Position::Any, true),
    row("$match", stages::matching::parse, Position::Any, true),
    row("$merge", sink::parse_merge, Position::Last, false),
    row("$out", sink::parse_out, Position::Last, false),
    row("$planCacheStats", stages::caller::parse, Position::First, false),
    row("$project", stages::shape::parse, Position::Any, true),
    row("$redact", stages::redact::parse, Position::Any, true),
    row("$replaceRoot", stages::shape::parse, Position::Any, true),
    row("$replaceWith", stages::shape::parse, Position::Any, true),
    row("$sample", stages::sample::parse, Position::Any, true),
    row("$search", stages::vector_search::parse_cosmos, Position::First, false),
    row("$searchMeta", stages::caller::not_implemented, Position::First, false),
    row("$set", stages::shape::parse, Position::Any, true),
    row("$setWindowFields", stages::window::parse, Position::Any, true),
    row("$skip", stages::limit::parse_skip, Position::Any, true),
    row("$sort", stages::sort::parse, Position::Any, true),
    row("$sortByCount", stages::count::parse_sort_by_count, Position::Any, true),
    row("$unionWith", stages::union_with::parse, Position::Any, true),
    row("$unset", stages::shape::parse, Position::Any, true),
    row("$unwind", stages::unwind::parse, Position::Any, true),
    row(
        "$vectorSearch",
        stages::vector_search::parse_atlas,
        Position::First,
        false,
    ),
];

fn find_row(name: &str) -> Option<&'static Row> {
    let place = STAGES.binary_search_by(|row| row.name.cmp(name)).ok()?;
    STAGES.get(place)
}

impl Parser {
    /// Returns the parser of a command's pipeline.
    pub(super) fn new(options: &PipelineOptions) -> Parser {
        Parser {
            namespace: options.namespace.clone(),
            scope: options.scope.clone(),
            geo_fields: options.geo_fields.clone(),
            place: Place::Command,
            depth: 0,
            is_first: true,
        }
    }

    /// Returns a parser for a view's pipeline, `depth` views down.
    pub(super) fn for_view(namespace: Namespace, depth: usize, context: &Context) -> Parser {
        Parser {
            namespace,
            // A view sees no variables of the command.
            scope: ParseScope::new(&Context {
                variables: Arc::new([]),
                ..context.clone()
            }),
            geo_fields: Vec::new(),
            place: Place::View,
            depth,
            is_first: true,
        }
    }

    /// Parses a pipeline.
    pub(super) fn pipeline(&mut self, stages: &RawArray) -> Result<Pipeline> {
        let mut pipeline = Pipeline {
            source: None,
            stages: Vec::new(),
            sink: None,
            has_documents: false,
            elements: Vec::new(),
        };
        let count = length_of(stages)?;
        for (index, element) in stages.into_iter().enumerate() {
            let (row, spec) = row_of(element?)?;
            self.is_first = index == 0;
            self.check_place(row, index == 0, index + 1 == count)?;
            let before = pipeline.stages.len();
            match (row.parse)(row.name, spec, self)? {
                Parsed::Stages(stages) => pipeline.stages.extend(stages),
                Parsed::Documents(stage) => {
                    pipeline.has_documents = true;
                    pipeline.stages.push(stage);
                }
                Parsed::Source(source) => pipeline.source = Some(source),
                Parsed::Sink(sink) => pipeline.sink = Some(sink),
            }
            pipeline.elements.push(pipeline.stages.len() - before);
        }
        if count == 0 && self.namespace.is_database() && self.place == Place::Command {
            let text = "{aggregate: 1} is not valid for an empty pipeline.";
            return Err(Error::new(Code::INVALID_NAMESPACE, text));
        }
        pipeline.limit_sorts();
        Ok(pipeline)
    }

    /// Parses a pipeline that is a part of a stage.
    pub(super) fn sub_pipeline(
        &self,
        place: Place,
        namespace: Namespace,
        scope: ParseScope,
        stages: &RawArray,
    ) -> Result<Pipeline> {
        let depth = self.depth + 1;
        if depth > MAX_SUB_PIPELINE_DEPTH {
            let text = format!("Maximum number of nested sub-pipelines exceeded. Limit is {MAX_SUB_PIPELINE_DEPTH}");
            return Err(Error::new(Code::MAX_SUB_PIPELINE_DEPTH_EXCEEDED, text));
        }
        let mut parser = Parser {
            namespace,
            scope,
            geo_fields: Vec::new(),
            place,
            depth,
            is_first: true,
        };
        parser.pipeline(stages)
    }

    /// Whether the current stage is the first one of a command, and so reads the command's collection.
    pub(super) fn is_at_start_of_command(&self) -> bool {
        self.is_first && self.place == Place::Command
    }

    fn check_place(&self, row: &Row, is_first: bool, is_last: bool) -> Result<()> {
        let name = row.name;
        let is_write = row.position == Position::Last;
        match self.place {
            Place::Facet if !row.in_facet => {
                let text = format!("{name} is not allowed to be used within a $facet stage");
                return Err(Error::new(40600, text));
            }
            Place::Lookup if is_write || name == "$changeStream" => {
                return Err(Error::new(
                    51047,
                    format!("{name} is not allowed within a $lookup's sub-pipeline"),
                ));
            }
            Place::Union if is_write || name == "$changeStream" => {
                let text = format!("{name} is not allowed within a $unionWith's sub-pipeline");
                return Err(Error::new(31441, text));
            }
            Place::View if is_write || name == "$changeStream" => {
                let text = format!("{name} cannot be used in a view definition");
                return Err(Error::new(Code::OPTION_NOT_SUPPORTED_ON_VIEW, text));
            }
            _ => {}
        }
        match row.position {
            Position::First | Position::FirstOfDatabase if !is_first => {
                let text = format!("{name} is only valid as the first stage in a pipeline");
                return Err(Error::new(40602, text));
            }
            Position::Last if !is_last => {
                let text = format!("{name} can only be the final stage in the pipeline");
                return Err(Error::new(40601, text));
            }
            _ => {}
        }
        self.check_namespace(row, is_first)
    }

    /// Checks that the stage goes with a pipeline on a collection, or on a database.
    fn check_namespace(&self, row: &Row, is_first: bool) -> Result<()> {
        let name = row.name;
        let of_database = row.position == Position::FirstOfDatabase || name == "$changeStream";
        let text = if is_first && self.namespace.is_database() && !of_database {
            format!("{{aggregate: 1}} is not valid for '{name}'; a collection is required.")
        } else if row.position == Position::FirstOfDatabase && !self.namespace.is_database() {
            format!("'{name}' can only be run with {{aggregate: 1}}")
        } else {
            return Ok(());
        };
        // A sub-pipeline with $documents has no collection.
        if self.place != Place::Command && name == "$documents" {
            return Ok(());
        }
        Err(Error::new(Code::INVALID_NAMESPACE, text))
    }
}

/// Returns the number of stages.
///
/// # Errors
/// 7749501 for more than [`MAX_STAGES`].
pub fn length_of(stages: &RawArray) -> Result<usize> {
    let count = stages.into_iter().take(MAX_STAGES + 1).count();
    if count > MAX_STAGES {
        let text = format!("Pipeline length must be no longer than {MAX_STAGES} stages.");
        return Err(Error::new(7749501, text));
    }
    Ok(count)
}

/// Returns the name and the specification of a stage.
///
/// # Errors
/// 14 for an element that is no document, 40323 for one without exactly one field, 40324 for an unknown stage.
pub fn stage_of(element: RawBsonRef<'_>) -> Result<(&'static str, RawBsonRef<'_>)> {
    let (row, specification) = row_of(element)?;
    Ok((row.name, specification))
}

fn row_of(element: RawBsonRef<'_>) -> Result<(&'static Row, RawBsonRef<'_>)> {
    let RawBsonRef::Document(stage) = element else {
        let text = "Each element of the 'pipeline' array must be an object";
        return Err(Error::new(Code::TYPE_MISMATCH, text));
    };
    let mut fields = stage.iter();
    let (Some(field), None) = (fields.next().transpose()?, fields.next()) else {
        let text = "A pipeline stage specification object must contain exactly one field.";
        return Err(Error::new(40323, text));
    };
    let name = field.0.as_str();
    let row = find_row(name).ok_or_else(|| Error::new(40324, format!("Unrecognized pipeline stage name: '{name}'")))?;
    Ok((row, field.1))
}
