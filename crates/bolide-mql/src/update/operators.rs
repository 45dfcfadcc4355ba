//! Updates with operators: `{$set: {a: 1}, $inc: {b: 2}}`.

use std::collections::HashSet;

use bson::raw::CStr;
use bson::{RawArray, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use super::apply::{Input, apply};
use super::array_filters::ArrayFilters;
use super::delta::FieldChanges;
use super::operator::{self, Operator};
use super::path::{Step, UpdatePath};
use super::plan::{Fields, Plan};
use super::rename::Rename;
use super::text::shown;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::value;

/// An update with operators.
#[derive(Debug)]
pub(super) struct Operators {
    plan: Plan,
    filters: ArrayFilters,
    renames: Vec<Rename>,
    uses_matched_element: bool,
}

impl Operators {
    /// Parses the operators and `arrayFilters`.
    ///
    /// # Errors
    /// `FailedToParse`: an unknown operator, one without a document, an array filter that is not used. Those of paths, operators and array filters;
    /// `ConflictingUpdateOperators`.
    pub(super) fn parse(update: &RawDocument, array_filters: Option<&RawArray>) -> Result<Operators> {
        let mut parser = Parser {
            operators: Operators {
                plan: Plan::Fields(Fields::default()),
                filters: array_filters.map(ArrayFilters::parse).transpose()?.unwrap_or_default(),
                renames: Vec::new(),
                uses_matched_element: false,
            },
            used_filters: HashSet::new(),
        };
        for field in update {
            let (operator, fields) = field?;
            parser.operator(operator.as_str(), fields)?;
        }
        parser.check_all_filters_used(update)?;
        Ok(parser.operators)
    }

    /// Tells whether a path has `$`.
    pub(super) fn uses_matched_element(&self) -> bool {
        self.uses_matched_element
    }

    /// Returns the changed document and its changes. `matched` is the number of the array element that the query matched.
    pub(super) fn apply(
        &self,
        document: &RawDocument,
        matched: Option<usize>,
        ctx: &Context,
        is_insert: bool,
    ) -> Result<(RawDocumentBuf, FieldChanges)> {
        let renamed: Result<Vec<Option<RawBson>>> = self.renames.iter().map(|rename| rename.value(document)).collect();
        let input = Input {
            ctx,
            document,
            filters: &self.filters,
            renamed: renamed?,
            matched,
            is_insert,
        };
        apply(&self.plan, input)
    }
}

struct Parser {
    operators: Operators,
    used_filters: HashSet<String>,
}

impl Parser {
    fn operator(&mut self, operator: &str, fields: RawBsonRef<'_>) -> Result<()> {
        let parse = operator::parser(operator);
        if parse.is_none() && operator != "$rename" {
            return Err(Error::new(
                Code::FAILED_TO_PARSE,
                format!(
                    "Unknown modifier: {operator}. Expected a valid update modifier or pipeline-style update specified as an array"
                ),
            ));
        }
        let RawBsonRef::Document(fields) = fields else {
            return Err(Error::new(
                Code::FAILED_TO_PARSE,
                format!(
                    "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not {{{operator}: {}}}",
                    value::types::name(fields),
                    shown(fields)
                ),
            ));
        };
        for field in fields {
            let (path, argument) = field?;
            match parse {
                Some(parse) => {
                    // What is wrong with the path is told before what is wrong with the argument.
                    let target = UpdatePath::parse(path)?;
                    self.add(&target, parse(path, argument)?)?;
                }
                None => self.rename(path, argument)?,
            }
        }
        Ok(())
    }

    fn check_all_filters_used(&self, update: &RawDocument) -> Result<()> {
        let mut identifiers = self.operators.filters.identifiers();
        match identifiers.find(|identifier| !self.used_filters.contains(*identifier)) {
            None => Ok(()),
            Some(identifier) => Err(Error::new(
                Code::FAILED_TO_PARSE,
                format!(
                    "The array filter for identifier '{identifier}' was not used in the update {}",
                    shown(RawBsonRef::Document(update))
                ),
            )),
        }
    }

    fn rename(&mut self, from: &CStr, to: RawBsonRef<'_>) -> Result<()> {
        let rename = Rename::parse(from, to)?;
        let number = self.operators.renames.len();
        self.add(&rename.to, Operator::RenameTo(number))?;
        self.add(&rename.from, Operator::RenameFrom(number))?;
        self.operators.renames.push(rename);
        Ok(())
    }

    fn add(&mut self, path: &UpdatePath, operator: Operator) -> Result<()> {
        for step in &path.steps {
            let Step::Elements(identifier) = step else {
                continue;
            };
            if identifier.is_empty() {
                continue;
            }
            if !self.operators.filters.contains(identifier) {
                return Err(Error::bad_value(format!(
                    "No array filter found for identifier '{identifier}' in path '{path}'"
                )));
            }
            self.used_filters.insert(identifier.clone());
        }
        self.operators.uses_matched_element |= path.steps.contains(&Step::Matched);
        self.operators.plan.add(path, operator)
    }
}
