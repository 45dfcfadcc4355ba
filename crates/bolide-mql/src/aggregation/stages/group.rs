//! `$group`

use std::collections::HashMap;
use std::sync::Arc;

use bson::raw::{CString, RawBson, RawBsonRef, RawDocumentBuf, cstr};

use crate::aggregation::accumulator::{Accumulator, State};
use crate::aggregation::document::Document;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::BoxSource;
use crate::aggregation::stage::{Blocking, Output, Run, Stage};
use crate::context::memory::StageMemory;
use crate::error::{Error, Result};
use crate::expression::{Expression, ParseScope};
use crate::path::field::parse_name;
use crate::projection::check_depth;
use crate::value::key;

/// The stage.
#[derive(Debug)]
pub(super) struct Group {
    id: Expression,
    fields: Vec<(CString, Accumulator)>,
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let RawBsonRef::Document(spec) = spec else {
        return Err(Error::new(15947, "a group's fields must be specified in an object"));
    };
    let mut id = None;
    let mut fields = Vec::new();
    for element in spec {
        let (name, value) = element?;
        if name.as_str() == "_id" {
            if id.is_some() {
                return Err(Error::new(15948, "a group's _id may only be specified once"));
            }
            id = Some(Expression::parse(value, &mut parser.scope)?);
        } else if name.as_str() != "$doingMerge" {
            fields.push(parse_field(name.as_str(), value, &mut parser.scope)?);
        }
    }
    let id = id.ok_or_else(|| Error::new(15955, "a group specification must include an _id"))?;
    Ok(Parsed::stage(Group { id, fields }))
}

/// Parses `name: {$operator: …}`, as in `$group` and in the `output` of `$bucket`.
///
/// # Errors
/// 40234, 40235, 40236, 40238 for other shapes; 15952 for an unknown accumulator.
pub(super) fn parse_field(name: &str, value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<(CString, Accumulator)> {
    if name.contains('.') {
        return Err(Error::new(40235, format!("The field name '{name}' cannot contain '.'")));
    }
    if name.starts_with('$') {
        return Err(Error::new(
            40236,
            format!("The field name '{name}' cannot be an operator name"),
        ));
    }
    let no_accumulator = || Error::new(40234, format!("The field '{name}' must be an accumulator object"));
    let RawBsonRef::Document(object) = value else {
        return Err(no_accumulator());
    };
    match object.iter().next().transpose()? {
        Some((first, _)) if first.as_str().starts_with('$') => {}
        _ => return Err(no_accumulator()),
    }
    let mut operators = object.iter();
    let (Some(operator), None) = (operators.next().transpose()?, operators.next()) else {
        return Err(Error::new(
            40238,
            format!("The field '{name}' must specify one accumulator"),
        ));
    };
    let field = match name {
        "" => CString::from(cstr!("")),
        name => parse_name(name)?,
    };
    Ok((field, Accumulator::parse(operator.0.as_str(), operator.1, scope)?))
}

impl Group {
    /// Returns a stage.
    pub(super) fn new(id: Expression, fields: Vec<(CString, Accumulator)>) -> Group {
        Group { id, fields }
    }

    fn collect(&self, mut input: BoxSource, run: &Run) -> Result<Output> {
        let mut groups = Groups::new("$group");
        while let Some(document) = input.next()? {
            let scope = document.scope(&run.context);
            let id = self.id.evaluate(&scope)?.unwrap_or(RawBson::Null);
            let key = key::of(id.as_raw_bson_ref(), run.collation());
            groups.add(key, id, &self.fields, &document, run)?;
        }
        Ok(Box::new(groups.finish(&self.fields)?.into_iter()))
    }
}

impl Stage for Group {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let run = Arc::clone(run);
        Ok(Blocking::source(move || self.collect(input, &run)))
    }
}

/// Groups in the order of their first documents.
pub(super) struct Groups {
    places: HashMap<Vec<u8>, usize>,
    groups: Vec<(RawBson, Vec<State>)>,
    memory: StageMemory,
}

impl Groups {
    /// Returns no groups, of a stage.
    pub(super) fn new(stage: &'static str) -> Groups {
        Groups {
            places: HashMap::new(),
            groups: Vec::new(),
            memory: StageMemory::new(stage),
        }
    }

    /// Adds a document to the group with a key; a new group gets the `id`.
    ///
    /// # Errors
    /// Those of expressions; 292 for too much memory.
    pub(super) fn add(
        &mut self,
        key: Vec<u8>,
        id: RawBson,
        fields: &[(CString, Accumulator)],
        document: &Document,
        run: &Run,
    ) -> Result<()> {
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None => self.start(key, id, fields, run)?,
        };
        let Some((_, states)) = self.groups.get_mut(place) else {
            return Ok(());
        };
        let scope = document.scope(&run.context);
        for ((_, accumulator), state) in fields.iter().zip(states) {
            accumulator.add(state, &scope, &mut self.memory)?;
        }
        Ok(())
    }

    fn start(&mut self, key: Vec<u8>, id: RawBson, fields: &[(CString, Accumulator)], run: &Run) -> Result<usize> {
        let id_bytes = key.len().saturating_mul(2);
        self.memory
            .add(id_bytes + fields.len() * size_of::<State>() + size_of::<(RawBson, Vec<u8>)>())?;
        let states = fields
            .iter()
            .map(|(_, accumulator)| accumulator.start(id.as_raw_bson_ref(), &run.context))
            .collect::<Result<Vec<State>>>()?;
        let place = self.groups.len();
        self.places.insert(key, place);
        self.groups.push((id, states));
        Ok(place)
    }

    /// Returns `{_id, fields…}` of each group.
    ///
    /// # Errors
    /// 15 for results that are nested too deeply.
    pub(super) fn finish(self, fields: &[(CString, Accumulator)]) -> Result<Vec<Document>> {
        let mut documents = Vec::with_capacity(self.groups.len());
        for (id, states) in self.groups {
            let mut result = RawDocumentBuf::new();
            result.append(cstr!("_id"), &id);
            for ((name, _), state) in fields.iter().zip(states) {
                result.append(name, state.result());
            }
            check_depth(&result)?;
            documents.push(Document::new(result));
        }
        Ok(documents)
    }
}
