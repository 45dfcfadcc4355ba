mod find;
mod stages;

use bolide_model::UnixMillis;
use bson::RawBsonRef;

use super::{Projection, ShapeStage};
use crate::context::Context;
use crate::error::Result;
use crate::expression::{ParseScope, Scope};
use crate::filter::Filter;
use crate::value::testing::{document, value};
use crate::value::text;

/// Applies the projection of a `find` whose filter is given.
fn find(projection: &str, filter: &str, input: &str) -> Result<String> {
    let context = Context::new(UnixMillis(0));
    let projection = Projection::parse_find(&document(projection), &mut ParseScope::new(&context))?;
    let input = document(input);
    let output = projection.apply_matched(
        &input,
        &Filter::parse(&document(filter))?,
        &Scope::new(&context, &input),
    )?;
    Ok(text::render(RawBsonRef::Document(&output)))
}

/// Applies a stage.
fn stage(name: &str, spec: &str, input: &str) -> Result<String> {
    let context = Context::new(UnixMillis(0));
    let stage = ShapeStage::parse(name, value(spec).as_raw_bson_ref(), &mut ParseScope::new(&context))?.unwrap();
    let input = document(input);
    let output = stage.apply(&input, &Scope::new(&context, &input))?;
    Ok(text::render(RawBsonRef::Document(&output)))
}

fn rendered(expected: &str) -> String {
    text::render(RawBsonRef::Document(&document(expected)))
}
