//! The arguments by which a command changes how values are compared and which variables exist.

use std::sync::Arc;

use bolide_core::{CollectionDefinition, CollectionIndex, Container, RequestContext, ScanDirection};
use bolide_mql::collation::Collation;
use bolide_mql::expression::{Expression, ParseScope, Scope, check_variable_name};
use bolide_mql::filter::Filter;
use bolide_mql::text_search::TextSource;
use bolide_mql::value::number;
use bolide_mql::vector::VectorIndex;
use bolide_mql::{Code, Context, Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawBson, RawDocument, RawDocumentBuf};

use super::super::arguments::Arguments;
use super::super::context::CommandContext;
use super::order::hinted_direction;
use super::views;

/// `collation` and `let`.
#[derive(Debug, Clone, Default)]
pub struct LanguageArguments<'a> {
    collation: Option<&'a RawDocument>,
    variables: Option<&'a RawDocument>,
    constants: Option<&'a RawDocument>,
}

impl<'a> LanguageArguments<'a> {
    /// Reads them.
    ///
    /// # Errors
    /// `TypeMismatch`.
    pub fn read(arguments: &mut Arguments<'a>) -> Result<LanguageArguments<'a>> {
        Ok(LanguageArguments {
            collation: arguments.document("collation")?,
            variables: arguments.document("let")?,
            constants: None,
        })
    }

    /// The same variables with the collation of one statement.
    #[must_use]
    pub fn with_collation(&self, collation: Option<&'a RawDocument>) -> LanguageArguments<'a> {
        LanguageArguments {
            collation,
            ..self.clone()
        }
    }

    /// The same with the constants of one statement (`c` of an update), which are variables, too.
    #[must_use]
    pub fn with_constants(&self, constants: Option<&'a RawDocument>) -> LanguageArguments<'a> {
        LanguageArguments {
            constants,
            ..self.clone()
        }
    }

    /// What the query language needs to know of the command. Without a collation of its own it has that of the collection.
    ///
    /// # Errors
    /// Of the collation; of the expressions of `let`.
    pub fn context(
        &self,
        context: &CommandContext<'_>,
        request: &RequestContext,
        container: Option<&Arc<Container>>,
    ) -> Result<Context> {
        let collation = match self.collation.filter(|collation| !collation.is_empty()) {
            Some(given) => {
                let collation = Collation::parse(given)?;
                check_view_collation(container, collation.as_deref())?;
                collation
            }
            None => container
                .and_then(|container| container.collection())
                .and_then(|definition| definition.collation.clone()),
        };
        let mut language = Context {
            collation,
            text: container.and_then(|container| text_source(container)).map(Arc::new),
            vector_indexes: container
                .map(|container| vector_indexes(container))
                .unwrap_or_default()
                .into(),
            ..context.language(request)
        };
        if self.variables.is_some() || self.constants.is_some() {
            let mut values = match self.variables {
                Some(variables) => variable_values(variables, &language)?,
                None => Vec::new(),
            };
            for constant in self.constants.into_iter().flatten() {
                let (name, value) = constant?;
                values.push((name.as_str().to_owned(), value.into()));
            }
            language.variables = values.into();
        }
        Ok(language)
    }
}

/// Checks that a command has the collation of the view that it reads.
///
/// # Errors
/// `OptionNotSupportedOnView`.
fn check_view_collation(container: Option<&Arc<Container>>, collation: Option<&Collation>) -> Result<()> {
    let Some(definition) = container.and_then(|container| container.collection()) else {
        return Ok(());
    };
    let own = definition.collation.as_deref().map(Collation::to_document);
    if !views::is_view(&definition) || own == collation.map(Collation::to_document) {
        return Ok(());
    }
    let text = "Cannot override a view's default collation";
    Err(Error::new(Code::OPTION_NOT_SUPPORTED_ON_VIEW, text))
}

/// What the collection's text index takes words from; `None` if it has none.
fn text_source(container: &Container) -> Option<TextSource> {
    let definition = container.collection()?;
    let mut indexes = definition.indexes.iter();
    indexes.find_map(|index| index.definition.text_source())
}

fn vector_indexes(container: &Container) -> Vec<VectorIndex> {
    let definition = container.collection();
    let indexes = definition.iter().flat_map(|definition| &definition.indexes);
    indexes.filter_map(|index| index.definition.vector_index()).collect()
}

/// Parses the filter of a command; without one it matches every document.
///
/// # Errors
/// Of the filter.
pub fn filter(document: Option<&RawDocument>, language: &Context) -> Result<Arc<Filter>> {
    let filter = match document {
        Some(document) => Filter::parse_in(document, &ParseScope::new(language))?,
        None => Filter::all(),
    };
    Ok(Arc::new(filter))
}

/// Returns the values of the variables of `let`, which are expressions without fields.
fn variable_values(variables: &RawDocument, language: &Context) -> Result<Vec<(String, RawBson)>> {
    let document = RawDocumentBuf::new();
    let mut values = Vec::new();
    for variable in variables {
        let (name, value) = variable?;
        check_variable_name(name.as_str())?;
        let value =
            Expression::parse(value, &mut ParseScope::new(language))?.evaluate(&Scope::new(language, &document))?;
        values.push((name.as_str().to_owned(), value.unwrap_or(RawBson::Null)));
    }
    Ok(values)
}

/// What a command's hint asks for.
#[derive(Debug, Clone, Default)]
pub struct Hinted {
    /// A scan of the whole collection.
    pub direction: Option<ScanDirection>,
    /// The index to read by.
    pub index: Option<CollectionIndex>,
}

/// Reads `hint`: the name or the key of an index, or `{$natural: ±1}`.
///
/// # Errors
/// `FailedToParse`.
pub fn read_hint<'a>(arguments: &mut Arguments<'a>) -> Result<Option<RawBsonRef<'a>>> {
    match arguments.value("hint") {
        Some(hint @ (RawBsonRef::String(_) | RawBsonRef::Document(_))) => Ok(Some(hint)),
        Some(_) => Err(Error::new(Code::FAILED_TO_PARSE, "Hint must be a string or an object")),
        None => Ok(None),
    }
}

/// Returns what a hint asks for: it must name an index of the collection, or the natural order.
///
/// # Errors
/// `BadValue`.
pub fn check_hint(container: &Container, hint: Option<RawBsonRef<'_>>) -> Result<Hinted> {
    let (Some(hint), Some(definition)) = (hint, container.collection()) else {
        return Ok(Hinted::default());
    };
    if is_natural(hint)? {
        return Ok(Hinted {
            direction: hinted_direction(Some(hint))?,
            index: None,
        });
    }
    if let Some(index) = hinted_index(&definition, hint) {
        return Ok(Hinted {
            direction: None,
            index: Some(index.clone()),
        });
    }
    let text = "error processing query: planner returned error: hint provided does not correspond to an existing index";
    Err(Error::new(Code::BAD_VALUE, text))
}

/// Whether a hint asks for the natural order, or for nothing.
///
/// # Errors
/// `BadValue`: `$natural` with another value than 1 and -1, or with other fields.
fn is_natural(hint: RawBsonRef<'_>) -> Result<bool> {
    let RawBsonRef::Document(key) = hint else {
        return Ok(false);
    };
    let Some(direction) = key.get("$natural")? else {
        return Ok(key.is_empty());
    };
    if key.iter().nth(1).is_some() {
        let text = "$natural hint cannot be combined with other fields";
        return Err(Error::bad_value(text));
    }
    match number::whole(direction) {
        Some(1 | -1) => Ok(true),
        _ => Err(Error::bad_value("$natural hint must be 1 or -1")),
    }
}

/// Returns the index that a hint names, if queries may use it.
pub fn hinted_index<'d>(definition: &'d CollectionDefinition, hint: RawBsonRef<'_>) -> Option<&'d CollectionIndex> {
    let mut indexes = definition
        .indexes
        .iter()
        .filter(|index| !index.is_building && !index.definition.is_hidden());
    indexes.find(|index| match hint {
        RawBsonRef::String(name) => index.definition.name() == name,
        RawBsonRef::Document(key) => index.definition.key().is_same(key),
        _ => false,
    })
}

#[cfg(test)]
mod tests;
