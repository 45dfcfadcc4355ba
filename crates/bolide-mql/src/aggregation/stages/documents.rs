//! `$documents`

use std::sync::Arc;

use bson::raw::{RawBson, RawBsonRef, RawDocumentBuf};

use crate::aggregation::document::Document;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::{BoxSource, Documents};
use crate::aggregation::stage::{Run, Stage};
use crate::error::{Error, Result};
use crate::expression::{Expression, Scope};
use crate::projection::check_depth;
use crate::value::types;

#[derive(Debug)]
struct Literals {
    expression: Expression,
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let expression = Expression::parse(spec, &mut parser.scope)?;
    Ok(Parsed::Documents(Arc::new(Literals { expression })))
}

impl Stage for Literals {
    fn open(self: Arc<Self>, _: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let nothing = RawDocumentBuf::new();
        let value = self.expression.evaluate(&Scope::new(&run.context, &nothing))?;
        let Some(RawBson::Array(elements)) = value else {
            let found = value.map_or("missing", |value| types::name(value.as_raw_bson_ref()));
            let text = format!("an array is expected as argument to $documents, but found: {found}");
            return Err(Error::new(5858203, text));
        };
        let mut documents = Vec::new();
        for element in &elements {
            let element = element?;
            let RawBsonRef::Document(document) = element else {
                let found = types::name(element);
                let text = format!("$documents expects an array of objects, but an element is of type {found}");
                return Err(Error::new(40228, text));
            };
            check_depth(document)?;
            documents.push(Document::new(document.to_owned()));
        }
        Ok(Box::new(Documents::new(documents)))
    }
}
