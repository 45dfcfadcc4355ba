//! The stages that make one document of one: `$project`, `$addFields`, `$set`, `$unset`, `$replaceRoot`, `$replaceWith`.

use bson::raw::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use super::{Projection, check_depth};
use crate::error::{Error, Result};
use crate::expression::{Expression, ParseScope, Scope};
use crate::value::{text, types};

/// A stage that makes one document of one.
#[derive(Debug)]
pub enum ShapeStage {
    /// `$project`, `$unset`, `$addFields`, `$set`
    Project(Projection),
    /// `$replaceRoot`, `$replaceWith`
    ReplaceRoot {
        /// The new document.
        new_root: Expression,
        /// How an error calls it.
        name: &'static str,
    },
}

impl ShapeStage {
    /// Parses the stage `name`, with its `$`; `None` if it is another stage.
    ///
    /// # Errors
    /// As MongoDB's, prefixed with `Invalid $project :: caused by :: ` for projections.
    pub fn parse(name: &str, spec: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Option<ShapeStage>> {
        let stage = match name {
            "$project" => ShapeStage::Project(parse_project(spec, scope)?),
            "$addFields" | "$set" => ShapeStage::Project(parse_add_fields(name, spec, scope)?),
            "$unset" => ShapeStage::Project(parse_unset(spec, scope)?),
            "$replaceRoot" => parse_replace_root(spec, scope)?,
            "$replaceWith" => ShapeStage::ReplaceRoot {
                new_root: Expression::parse(spec, scope)?,
                name: "'replacement document' ",
            },
            _ => return Ok(None),
        };
        Ok(Some(stage))
    }

    /// Returns the new document.
    ///
    /// # Errors
    /// Those of expressions; 40228 if the new root is no document; 15 if the result is nested too deeply.
    pub fn apply(&self, document: &RawDocument, scope: &Scope<'_>) -> Result<RawDocumentBuf> {
        let (new_root, name) = match self {
            ShapeStage::Project(projection) => return projection.apply(document, scope),
            ShapeStage::ReplaceRoot { new_root, name } => (new_root, name),
        };
        let value = new_root.evaluate(scope)?;
        if let Some(RawBson::Document(new)) = value {
            check_depth(&new)?;
            return Ok(new);
        }
        let (shown, kind) = match &value {
            Some(value) => (
                text::render(value.as_raw_bson_ref()),
                types::name(value.as_raw_bson_ref()),
            ),
            None => ("MISSING".to_owned(), "missing"),
        };
        let input = text::render(RawBsonRef::Document(document));
        let text = format!(
            "{name} must evaluate to an object, but resulting value was: {shown}. Type of resulting value: '{kind}'. Input \
             document: {input}"
        );
        Err(Error::new(40228, text))
    }
}

fn caused_by(stage: &str) -> impl Fn(Error) -> Error {
    move |mut error| {
        error.message = format!("Invalid {stage} :: caused by :: {}", error.message);
        error
    }
}

fn parse_project(spec: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Projection> {
    let RawBsonRef::Document(spec) = spec else {
        return Err(Error::new(15969, "$project specification must be an object"));
    };
    Projection::parse_project(spec, scope).map_err(caused_by("$project"))
}

fn parse_add_fields(name: &str, spec: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Projection> {
    let RawBsonRef::Document(spec) = spec else {
        let found = types::name(spec);
        return Err(Error::new(
            40272,
            format!("{name} specification stage must be an object, got {found}"),
        ));
    };
    Projection::parse_add_fields(spec, scope).map_err(caused_by(name))
}

fn parse_unset(spec: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Projection> {
    let mut exclusion = RawDocumentBuf::new();
    let mut exclude = |value: RawBsonRef<'_>| match value.as_str() {
        Some(path) => {
            let name = <&bson::raw::CStr>::try_from(path)
                .map_err(|_| Error::new(16411, "FieldPath field names may not contain '\0'."))?;
            exclusion.append(name, false);
            Ok(())
        }
        None => {
            let text = "$unset specification must be a string or an array containing only string values";
            Err(Error::new(31120, text))
        }
    };
    match spec {
        RawBsonRef::String(_) => exclude(spec)?,
        RawBsonRef::Array(paths) => {
            for path in paths {
                exclude(path?)?;
            }
        }
        _ => return Err(Error::new(31002, "$unset specification must be a string or an array")),
    }
    if exclusion.is_empty() {
        let text = "$unset specification must be a string or an array with at least one field";
        return Err(Error::new(31119, text));
    }
    Projection::parse_project(&exclusion, scope).map_err(caused_by("$unset"))
}

fn parse_replace_root(spec: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<ShapeStage> {
    let RawBsonRef::Document(spec) = spec else {
        let found = types::name(spec);
        let text = format!("expected an object as specification for $replaceRoot stage, got {found}");
        return Err(Error::new(40229, text));
    };
    let mut new_root = None;
    for element in spec {
        let (name, value) = element?;
        if name.as_str() != "newRoot" {
            return Err(Error::new(
                40415,
                format!("BSON field '$replaceRoot.{name}' is an unknown field."),
            ));
        }
        new_root = Some(Expression::parse(value, scope)?);
    }
    let new_root = new_root.ok_or_else(|| {
        Error::new(
            40414,
            "BSON field '$replaceRoot.newRoot' is missing but a required field",
        )
    })?;
    Ok(ShapeStage::ReplaceRoot {
        new_root,
        name: "'newRoot' expression ",
    })
}
