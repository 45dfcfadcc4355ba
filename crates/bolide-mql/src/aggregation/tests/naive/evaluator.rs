//! The stages and expressions, one document after the other, with copies of everything.

use std::cmp::Ordering;

use bson::{Bson, Document, doc};

use crate::filter::tests::model::{bracket, matches, order};

/// Runs a pipeline; `None` if it must fail.
pub fn run(pipeline: &[Document], input: &[Document], other: &[Document]) -> Option<Vec<Document>> {
    let mut documents = input.to_vec();
    for stage in pipeline {
        let (name, spec) = stage.iter().next().unwrap();
        if name == "$sort" && documents.iter().any(|document| has_parallel_arrays(document, spec)) {
            return None;
        }
        documents = run_stage(name, spec, documents, other);
    }
    Some(documents)
}

/// Whether a document has arrays in two fields of an order.
fn has_parallel_arrays(document: &Document, spec: &Bson) -> bool {
    let fields = spec.as_document().unwrap().keys();
    let arrays = fields.filter(|name| matches!(document.get(*name), Some(Bson::Array(_))));
    arrays.count() > 1
}

fn run_stage(name: &str, spec: &Bson, mut documents: Vec<Document>, other: &[Document]) -> Vec<Document> {
    match name {
        "$match" => documents.retain(|document| matches(spec.as_document().unwrap(), document)),
        "$project" => {
            documents = documents
                .iter()
                .map(|document| project(document, spec.as_document().unwrap()))
                .collect();
        }
        "$addFields" => {
            let (path, value) = spec.as_document().unwrap().iter().next().unwrap();
            let parts: Vec<_> = path.split('.').collect();
            for document in &mut documents {
                match evaluate(value, document) {
                    Some(value) => set(document, &parts, &value),
                    None => remove(document, &parts),
                }
            }
        }
        "$group" => documents = group(&documents, spec.as_document().unwrap()),
        "$sort" => documents.sort_by(|a, b| by_keys(a, b, spec.as_document().unwrap())),
        "$unwind" => {
            documents = documents
                .iter()
                .flat_map(|document| unwind(document, spec.as_document().unwrap()))
                .collect();
        }
        "$lookup" => {
            let spec = spec.as_document().unwrap();
            for document in &mut documents {
                let found: Vec<Bson> = join(document, spec, other).into_iter().map(Bson::Document).collect();
                document.insert(spec.get_str("as").unwrap(), found);
            }
        }
        "$skip" => documents = documents.into_iter().skip(spec.as_i64().unwrap() as usize).collect(),
        "$limit" => documents.truncate(spec.as_i64().unwrap() as usize),
        "$count" => {
            let count = i32::try_from(documents.len()).unwrap();
            documents = (count > 0)
                .then(|| doc! {spec.as_str().unwrap(): count})
                .into_iter()
                .collect();
        }
        "$replaceRoot" => {
            let swapped = doc! {"a": "$b", "b": "$a"};
            let root = |document: &Document| evaluate(&Bson::Document(swapped.clone()), document);
            documents = documents
                .iter()
                .map(|document| root(document).unwrap().as_document().unwrap().clone())
                .collect();
        }
        other => panic!("not generated: {other}"),
    }
    documents
}

/// The value of a field path: an array on the way gives the values of its elements.
fn value_of(value: &Bson, path: &[&str]) -> Option<Bson> {
    let Some((first, rest)) = path.split_first() else {
        return Some(value.clone());
    };
    match value {
        Bson::Document(fields) => value_of(fields.get(first)?, rest),
        Bson::Array(elements) => {
            // An array inside an array is not opened.
            let documents = elements.iter().filter(|element| matches!(element, Bson::Document(_)));
            Some(Bson::Array(
                documents.filter_map(|element| value_of(element, path)).collect(),
            ))
        }
        _ => None,
    }
}

fn is_true(value: Option<&Bson>) -> bool {
    match value {
        None | Some(Bson::Null | Bson::Boolean(false)) => false,
        Some(Bson::Int32(number)) => *number != 0,
        Some(Bson::Int64(number)) => *number != 0,
        Some(Bson::Double(number)) => *number != 0.0,
        Some(_) => true,
    }
}

/// The order of values in expressions: missing ones come first of all, then null.
fn compare(a: Option<&Bson>, b: Option<&Bson>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => bracket(a).cmp(&bracket(b)).then_with(|| order(a, b)),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

fn evaluate(expression: &Bson, document: &Document) -> Option<Bson> {
    let operation = match expression {
        Bson::String(path) => match path.strip_prefix('$') {
            Some(path) => return value_of(&Bson::Document(document.clone()), &path.split('.').collect::<Vec<_>>()),
            None => return Some(expression.clone()),
        },
        Bson::Array(elements) => {
            // A missing element is null.
            let values = elements
                .iter()
                .map(|element| evaluate(element, document).unwrap_or(Bson::Null));
            return Some(Bson::Array(values.collect()));
        }
        Bson::Document(operation) => operation,
        constant => return Some(constant.clone()),
    };
    let (name, argument) = operation.iter().next().unwrap();
    if !name.starts_with('$') {
        let fields = operation
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), evaluate(value, document)?)));
        return Some(Bson::Document(fields.collect()));
    }
    if name == "$literal" {
        return Some(argument.clone());
    }
    let arguments: Vec<Option<Bson>> = match argument {
        Bson::Array(arguments) => arguments.iter().map(|argument| evaluate(argument, document)).collect(),
        argument => vec![evaluate(argument, document)],
    };
    let compared =
        |accepts: fn(Ordering) -> bool| Bson::Boolean(accepts(compare(arguments[0].as_ref(), arguments[1].as_ref())));
    Some(match name.as_str() {
        "$eq" => compared(Ordering::is_eq),
        "$ne" => compared(Ordering::is_ne),
        "$gt" => compared(Ordering::is_gt),
        "$gte" => compared(Ordering::is_ge),
        "$lt" => compared(Ordering::is_lt),
        "$lte" => compared(Ordering::is_le),
        "$cmp" => Bson::Int32(compare(arguments[0].as_ref(), arguments[1].as_ref()) as i32),
        "$ifNull" => {
            let is_there = arguments[0].as_ref().is_some_and(|value| *value != Bson::Null);
            return arguments[usize::from(!is_there)].clone();
        }
        "$cond" => return arguments[if is_true(arguments[0].as_ref()) { 1 } else { 2 }].clone(),
        "$isArray" => Bson::Boolean(matches!(arguments[0], Some(Bson::Array(_)))),
        "$type" => Bson::String(type_of(arguments[0].as_ref()).to_owned()),
        "$and" => Bson::Boolean(arguments.iter().all(|value| is_true(value.as_ref()))),
        "$or" => Bson::Boolean(arguments.iter().any(|value| is_true(value.as_ref()))),
        "$not" => Bson::Boolean(!is_true(arguments[0].as_ref())),
        other => panic!("not generated: {other}"),
    })
}

fn type_of(value: Option<&Bson>) -> &'static str {
    match value {
        None => "missing",
        Some(Bson::Null) => "null",
        Some(Bson::Int32(_)) => "int",
        Some(Bson::Int64(_)) => "long",
        Some(Bson::Double(_)) => "double",
        Some(Bson::String(_)) => "string",
        Some(Bson::Document(_)) => "object",
        Some(Bson::Array(_)) => "array",
        Some(Bson::Boolean(_)) => "bool",
        Some(_) => "date",
    }
}

/// Sets a field; what is no document on the way becomes one, in every element of an array.
fn set(document: &mut Document, path: &[&str], value: &Bson) {
    let (first, rest) = path.split_first().unwrap();
    if rest.is_empty() {
        document.insert(*first, value.clone());
        return;
    }
    let inner = document.get(first).cloned();
    document.insert(*first, set_in(inner, rest, value));
}

fn set_in(inner: Option<Bson>, path: &[&str], value: &Bson) -> Bson {
    match inner {
        Some(Bson::Array(elements)) => Bson::Array(
            elements
                .into_iter()
                .map(|element| set_in(Some(element), path, value))
                .collect(),
        ),
        inner => {
            let mut inner = match inner {
                Some(Bson::Document(inner)) => inner,
                _ => Document::new(),
            };
            set(&mut inner, path, value);
            Bson::Document(inner)
        }
    }
}

/// What `$addFields` does with a missing value: the way to the field is made, and the field is removed.
fn remove(document: &mut Document, path: &[&str]) {
    let (first, rest) = path.split_first().unwrap();
    if rest.is_empty() {
        document.remove(*first);
        return;
    }
    let inner = document.get(first).cloned();
    document.insert(*first, remove_in(inner, rest));
}

fn remove_in(inner: Option<Bson>, path: &[&str]) -> Bson {
    match inner {
        Some(Bson::Array(elements)) => Bson::Array(
            elements
                .into_iter()
                .map(|element| remove_in(Some(element), path))
                .collect(),
        ),
        inner => {
            let mut inner = match inner {
                Some(Bson::Document(inner)) => inner,
                _ => Document::new(),
            };
            remove(&mut inner, path);
            Bson::Document(inner)
        }
    }
}

fn project(document: &Document, spec: &Document) -> Document {
    let is_number = |value: &Bson| matches!(value, Bson::Int32(_));
    let is_exclusion = spec
        .iter()
        .any(|(name, value)| *value == Bson::Int32(0) && (name != "_id" || spec.len() == 1));
    if is_exclusion {
        let excluded = |document, (name, _): (&String, &Bson)| exclude(document, &name.split('.').collect::<Vec<_>>());
        return spec.iter().fold(document.clone(), excluded);
    }
    let mut kept = Document::new();
    let has_id = spec.get("_id") != Some(&Bson::Int32(0));
    for (name, value) in document {
        let asked = spec.keys().find(|path| path.split('.').next() == Some(name));
        let asked = asked.filter(|asked| *asked != "_id" && is_number(&spec[*asked]));
        if name == "_id" && has_id {
            kept.insert(name, value.clone());
        } else if let Some(asked) = asked {
            let rest: Vec<_> = asked.split('.').skip(1).collect();
            kept.extend(include(value, &rest).map(|value| (name.clone(), value)));
        }
    }
    for (name, value) in spec.iter().filter(|(name, _)| *name == "x") {
        kept.extend(evaluate(value, document).map(|value| (name.clone(), value)));
    }
    kept
}

fn include(value: &Bson, path: &[&str]) -> Option<Bson> {
    let Some((first, rest)) = path.split_first() else {
        return Some(value.clone());
    };
    match value {
        Bson::Document(fields) => {
            let field = fields.get(first).and_then(|value| include(value, rest));
            Some(Bson::Document(
                field.map(|value| ((*first).to_owned(), value)).into_iter().collect(),
            ))
        }
        Bson::Array(elements) => Some(Bson::Array(
            elements.iter().filter_map(|element| include(element, path)).collect(),
        )),
        _ => None,
    }
}

fn exclude(mut document: Document, path: &[&str]) -> Document {
    let (first, rest) = path.split_first().unwrap();
    if rest.is_empty() {
        document.remove(*first);
    } else if let Some(inner) = document.get_mut(first) {
        exclude_in(inner, rest);
    }
    document
}

fn exclude_in(value: &mut Bson, path: &[&str]) {
    match value {
        Bson::Document(fields) => *fields = exclude(fields.clone(), path),
        Bson::Array(elements) => elements.iter_mut().for_each(|element| exclude_in(element, path)),
        _ => {}
    }
}

fn group(documents: &[Document], spec: &Document) -> Vec<Document> {
    let mut groups: Vec<(Bson, Vec<&Document>)> = Vec::new();
    for document in documents {
        let key = evaluate(&spec["_id"], document).unwrap_or(Bson::Null);
        match groups
            .iter_mut()
            .find(|(other, _)| compare(Some(other), Some(&key)).is_eq())
        {
            Some((_, members)) => members.push(document),
            None => groups.push((key, vec![document])),
        }
    }
    let of_group = |(key, members): (Bson, Vec<&Document>)| {
        let mut result = doc! {"_id": key};
        for (name, accumulator) in spec.iter().skip(1) {
            let (operator, argument) = accumulator.as_document().unwrap().iter().next().unwrap();
            let values: Vec<Option<Bson>> = members.iter().map(|member| evaluate(argument, member)).collect();
            result.insert(name, accumulate(operator, values));
        }
        result
    };
    groups.into_iter().map(of_group).collect()
}

fn accumulate(operator: &str, values: Vec<Option<Bson>>) -> Bson {
    let first = values.first().cloned().flatten();
    let last = values.last().cloned().flatten();
    let there: Vec<Bson> = values.into_iter().flatten().collect();
    let numbers: Vec<&Bson> = there.iter().filter(|value| bracket(value) == 1).collect();
    let sum: f64 = numbers
        .iter()
        .map(|number| match number {
            Bson::Int32(number) => f64::from(*number),
            Bson::Int64(number) => *number as f64,
            number => number.as_f64().unwrap(),
        })
        .sum();
    let of_values = there.iter().filter(|value| **value != Bson::Null);
    match operator {
        "$sum" if numbers.iter().any(|number| matches!(number, Bson::Double(_))) => Bson::Double(sum),
        "$sum" if numbers.iter().any(|number| matches!(number, Bson::Int64(_))) => Bson::Int64(sum as i64),
        "$sum" => Bson::Int32(sum as i32),
        "$avg" if numbers.is_empty() => Bson::Null,
        "$avg" => Bson::Double(sum / numbers.len() as f64),
        // Of equal values the first is kept.
        "$min" => of_values
            .cloned()
            .reduce(|a, b| if compare(Some(&b), Some(&a)).is_lt() { b } else { a })
            .unwrap_or(Bson::Null),
        "$max" => of_values
            .cloned()
            .reduce(|a, b| if compare(Some(&b), Some(&a)).is_gt() { b } else { a })
            .unwrap_or(Bson::Null),
        "$first" => first.unwrap_or(Bson::Null),
        "$last" => last.unwrap_or(Bson::Null),
        "$push" => Bson::Array(there),
        other => panic!("not generated: {other}"),
    }
}

/// The values by which a document can be sorted: an array counts by one of its elements. `None` is that of an empty array, below null.
fn sort_values(value: Option<&Bson>, path: &[&str]) -> Vec<Option<Bson>> {
    let null = || vec![Some(Bson::Null)];
    match (value, path.split_first()) {
        (Some(Bson::Array(elements)), None) if elements.is_empty() => vec![None],
        (Some(Bson::Array(elements)), None) => elements.iter().cloned().map(Some).collect(),
        (value, None) => vec![Some(value.cloned().unwrap_or(Bson::Null))],
        (Some(Bson::Document(fields)), Some((first, rest))) => sort_values(fields.get(first), rest),
        (Some(Bson::Array(elements)), Some(_)) if !elements.is_empty() => {
            let of_element = |element: &Bson| match element {
                Bson::Document(_) => sort_values(Some(element), path),
                _ => null(),
            };
            elements.iter().flat_map(of_element).collect()
        }
        _ => null(),
    }
}

fn by_keys(a: &Document, b: &Document, spec: &Document) -> Ordering {
    let key = |document: &Document, path: &str, is_descending: bool| {
        let (first, rest) = path
            .split_once('.')
            .map_or((path, None), |(first, rest)| (first, Some(rest)));
        let mut values = sort_values(document.get(first), &rest.into_iter().collect::<Vec<_>>());
        values.sort_by(|a, b| compare(a.as_ref(), b.as_ref()));
        if is_descending {
            values.pop()
        } else {
            values.into_iter().next()
        }
        .unwrap()
    };
    let mut found = Ordering::Equal;
    for (path, direction) in spec {
        let is_descending = *direction == Bson::Int32(-1);
        let (a, b) = (key(a, path, is_descending), key(b, path, is_descending));
        let compared = compare(a.as_ref(), b.as_ref());
        found = found.then(if is_descending { compared.reverse() } else { compared });
    }
    found
}

fn unwind(document: &Document, spec: &Document) -> Vec<Document> {
    let path = spec.get_str("path").unwrap().trim_start_matches('$');
    let keeps = spec.get_bool("preserveNullAndEmptyArrays").unwrap();
    let with_index = |mut document: Document, index: Bson| {
        if spec.contains_key("includeArrayIndex") {
            document.insert("i", index);
        }
        document
    };
    let parts: Vec<_> = path.split('.').collect();
    // Only documents are on the way.
    let value = match parts[..] {
        [first, second] => document
            .get(first)
            .and_then(Bson::as_document)
            .and_then(|inner| inner.get(second)),
        _ => document.get(path),
    };
    let with = |value: Option<Bson>| {
        let mut changed = document.clone();
        match value {
            Some(value) => set(&mut changed, &parts, &value),
            None => changed = exclude(changed, &parts),
        }
        changed
    };
    match value {
        None | Some(Bson::Null) => keeps
            .then(|| with_index(document.clone(), Bson::Null))
            .into_iter()
            .collect(),
        Some(Bson::Array(elements)) if elements.is_empty() => {
            keeps.then(|| with_index(with(None), Bson::Null)).into_iter().collect()
        }
        Some(Bson::Array(elements)) => {
            let elements = elements.iter().cloned().enumerate();
            elements
                .map(|(at, element)| with_index(with(Some(element)), Bson::Int64(at as i64)))
                .collect()
        }
        Some(_) => vec![with_index(document.clone(), Bson::Null)],
    }
}

/// The documents of the other collection that match the local value, or one of its elements.
fn join(document: &Document, spec: &Document, other: &[Document]) -> Vec<Document> {
    let foreign = spec.get_str("foreignField").unwrap();
    let wanted = match document.get(spec.get_str("localField").unwrap()) {
        None => vec![Bson::Null],
        // An empty array finds what null finds.
        Some(Bson::Array(elements)) if elements.is_empty() => vec![Bson::Null],
        Some(Bson::Array(elements)) => elements.clone(),
        Some(value) => vec![value.clone()],
    };
    let is_wanted = |found: &&Document| {
        wanted
            .iter()
            .any(|value| matches(&doc! {foreign: {"$eq": value.clone()}}, found))
    };
    other.iter().filter(is_wanted).cloned().collect()
}
