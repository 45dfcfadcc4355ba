//! Random updates of random documents, against a literal model: one operator after the other on a tree.

use bson::raw::CString;
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf};
use proptest::prelude::*;

use super::{apply, updated};
use crate::update::{ChangedPath, Delta, FieldChanges, diff};

/// A value of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Null,
    Number(i32),
    Text(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    pub(super) fn to_bson(&self) -> RawBson {
        match self {
            Tree::Null => RawBson::Null,
            Tree::Number(number) => RawBson::Int32(*number),
            Tree::Text(text) => RawBson::String(text.clone()),
            Tree::Array(elements) => {
                let mut array = RawArrayBuf::new();
                elements.iter().for_each(|element| array.push(element.to_bson()));
                RawBson::Array(array)
            }
            Tree::Object(_) => RawBson::Document(self.to_document()),
        }
    }

    pub(super) fn to_document(&self) -> RawDocumentBuf {
        let Tree::Object(fields) = self else {
            panic!("not a document: {self:?}");
        };
        fields
            .iter()
            .map(|(name, value)| (CString::try_from(name.as_str()).unwrap(), value.to_bson()))
            .collect()
    }

    pub(super) fn get(&self, path: &[String]) -> Option<&Tree> {
        let Some((name, rest)) = path.split_first() else {
            return Some(self);
        };
        match self {
            Tree::Object(fields) => fields.iter().find(|(field, _)| field == name)?.1.get(rest),
            Tree::Array(elements) => elements.get(name.parse::<usize>().ok()?)?.get(rest),
            _ => None,
        }
    }

    fn get_mut(&mut self, path: &[String]) -> Option<&mut Tree> {
        let Some((name, rest)) = path.split_first() else {
            return Some(self);
        };
        match self {
            Tree::Object(fields) => fields.iter_mut().find(|(field, _)| field == name)?.1.get_mut(rest),
            Tree::Array(elements) => elements.get_mut(name.parse::<usize>().ok()?)?.get_mut(rest),
            _ => None,
        }
    }

    fn set(&mut self, path: &[String], value: Tree) -> Option<()> {
        let (name, rest) = path.split_first().unwrap();
        match self {
            Tree::Object(fields) => {
                if !fields.iter().any(|(field, _)| field == name) {
                    fields.push((name.clone(), Tree::Object(Vec::new())));
                }
                let field = &mut fields.iter_mut().find(|(field, _)| field == name).unwrap().1;
                if rest.is_empty() {
                    *field = value;
                    return Some(());
                }
                field.set(rest, value)
            }
            Tree::Array(elements) => {
                let index: usize = name.parse().ok()?;
                while elements.len() < index {
                    elements.push(Tree::Null);
                }
                if elements.len() == index {
                    elements.push(Tree::Object(Vec::new()));
                }
                if rest.is_empty() {
                    elements[index] = value;
                    return Some(());
                }
                elements[index].set(rest, value)
            }
            _ => None,
        }
    }

    fn unset(&mut self, path: &[String]) {
        let (name, parent) = path.split_last().unwrap();
        match self.get_mut(parent) {
            Some(Tree::Object(fields)) => fields.retain(|(field, _)| field != name),
            Some(Tree::Array(elements)) => {
                if let Some(element) = name.parse().ok().and_then(|index: usize| elements.get_mut(index)) {
                    *element = Tree::Null;
                }
            }
            _ => {}
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Set(Tree),
    Unset,
    Inc(i32),
    Push(Tree),
    AddToSet(Tree),
    Pull(Tree),
    PullAll(Vec<Tree>),
    Pop(i32),
    Min(i32),
    Rename(Vec<String>),
}

type Operation = (Vec<String>, Step);

/// Applies the operations to a document; `None` for an error.
fn model(document: &Tree, operations: &[Operation]) -> Option<Tree> {
    let mut paths: Vec<&Vec<String>> = Vec::new();
    for (path, step) in operations {
        paths.push(path);
        if let Step::Rename(to) = step {
            paths.push(to);
        }
    }
    for (number, left) in paths.iter().enumerate() {
        if paths[number + 1..]
            .iter()
            .any(|right| left.starts_with(right) || right.starts_with(left))
        {
            return None;
        }
    }
    // All operators see the document before the update: a rename reads its value now.
    let mut changes: Vec<Operation> = Vec::new();
    for (path, step) in operations {
        if let Step::Rename(to) = step {
            if leads_through(document, path, |tree| !matches!(tree, Tree::Object(_) | Tree::Array(_))) {
                return None;
            }
            if leads_through(document, path, |tree| matches!(tree, Tree::Array(_))) {
                // An element is an error, a missing one is not renamed, a field of an array is not possible.
                let missing = document.get(path).is_none() && is_numeric_in_arrays(document, path);
                if missing {
                    continue;
                }
                return None;
            }
            let Some(value) = document.get(path) else { continue };
            if leads_through(document, to, |tree| matches!(tree, Tree::Array(_))) {
                return None;
            }
            changes.push((path.clone(), Step::Unset));
            changes.push((to.clone(), Step::Set(value.clone())));
        } else {
            changes.push((path.clone(), step.clone()));
        }
    }
    changes.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut document = document.clone();
    for (path, step) in changes {
        run(&mut document, &path, step)?;
    }
    Some(document)
}

/// Tells whether a value before the end of the path has some property.
fn leads_through(document: &Tree, path: &[String], property: impl Fn(&Tree) -> bool) -> bool {
    (1..path.len()).any(|length| document.get(&path[..length]).is_some_and(&property))
}

fn is_numeric_in_arrays(document: &Tree, path: &[String]) -> bool {
    (1..path.len()).all(|length| match document.get(&path[..length]) {
        Some(Tree::Array(_)) => path[length].parse::<usize>().is_ok(),
        _ => true,
    })
}

/// Tells whether there could be a value at the path.
fn is_viable(document: &Tree, path: &[String]) -> bool {
    !leads_through(document, path, |tree| !matches!(tree, Tree::Object(_) | Tree::Array(_)))
        && is_numeric_in_arrays(document, path)
}

pub(super) fn run(document: &mut Tree, path: &[String], step: Step) -> Option<()> {
    let old = document.get(path).cloned();
    let new = match (step, old) {
        (Step::Set(value), _) => value,
        (Step::Unset, _) => {
            document.unset(path);
            return Some(());
        }
        (Step::Inc(amount), None) => Tree::Number(amount),
        (Step::Inc(amount), Some(Tree::Number(number))) => Tree::Number(number + amount),
        (Step::Inc(_), Some(_)) => return None,
        (Step::Min(amount), None) => Tree::Number(amount),
        (Step::Min(amount), Some(old)) => match old {
            Tree::Null => old,
            Tree::Number(number) => Tree::Number(number.min(amount)),
            _ => Tree::Number(amount),
        },
        (Step::Push(value) | Step::AddToSet(value), None) => Tree::Array(vec![value]),
        (Step::Push(value), Some(Tree::Array(mut elements))) => {
            elements.push(value);
            Tree::Array(elements)
        }
        (Step::AddToSet(value), Some(Tree::Array(mut elements))) => {
            if !elements.contains(&value) {
                elements.push(value);
            }
            Tree::Array(elements)
        }
        (Step::Pull(_) | Step::PullAll(_) | Step::Pop(_), None) => return is_viable(document, path).then_some(()),
        (Step::Pull(value), Some(Tree::Array(mut elements))) => {
            elements.retain(|element| *element != value);
            Tree::Array(elements)
        }
        (Step::PullAll(values), Some(Tree::Array(mut elements))) => {
            elements.retain(|element| !values.contains(element));
            Tree::Array(elements)
        }
        (Step::Pop(end), Some(Tree::Array(mut elements))) => {
            if end > 0 {
                elements.pop();
            } else if !elements.is_empty() {
                elements.remove(0);
            }
            Tree::Array(elements)
        }
        (Step::Push(_) | Step::AddToSet(_) | Step::Pull(_) | Step::PullAll(_) | Step::Pop(_), Some(_)) => return None,
        (Step::Rename(_), _) => panic!("renames are split before"),
    };
    document.set(path, new)
}

fn update_of(operations: &[Operation]) -> RawDocumentBuf {
    let mut update = RawDocumentBuf::new();
    for (path, step) in operations {
        let (operator, argument) = match step {
            Step::Set(value) => ("$set", value.to_bson()),
            Step::Unset => ("$unset", RawBson::Boolean(true)),
            Step::Inc(amount) => ("$inc", RawBson::Int32(*amount)),
            Step::Min(amount) => ("$min", RawBson::Int32(*amount)),
            Step::Push(value) => ("$push", value.to_bson()),
            Step::AddToSet(value) => ("$addToSet", value.to_bson()),
            Step::Pull(value) => ("$pull", value.to_bson()),
            Step::PullAll(values) => ("$pullAll", Tree::Array(values.clone()).to_bson()),
            Step::Pop(end) => ("$pop", RawBson::Int32(*end)),
            Step::Rename(to) => ("$rename", RawBson::String(to.join("."))),
        };
        let mut fields = RawDocumentBuf::new();
        fields.append(CString::try_from(path.join(".")).unwrap(), argument);
        update.append(CString::try_from(operator).unwrap(), fields);
    }
    update
}

fn scalar() -> impl Strategy<Value = Tree> {
    prop_oneof![
        Just(Tree::Null),
        (0..4).prop_map(Tree::Number),
        "[xy]".prop_map(Tree::Text),
    ]
}

pub(super) fn value() -> impl Strategy<Value = Tree> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Tree::Array),
            fields(inner).prop_map(Tree::Object),
        ]
    })
}

fn fields(value: impl Strategy<Value = Tree>) -> impl Strategy<Value = Vec<(String, Tree)>> {
    prop::collection::btree_map("[abc0]", value, 0..3).prop_map(|fields| {
        // Not in the order of the names.
        fields.into_iter().rev().collect()
    })
}

fn path() -> impl Strategy<Value = Vec<String>> {
    ("[abc]", prop::collection::vec("[abc012]", 0..3)).prop_map(|(first, mut rest)| {
        rest.insert(0, first);
        rest
    })
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => value().prop_map(Step::Set),
        2 => Just(Step::Unset),
        2 => (-2..3).prop_map(Step::Inc),
        1 => (-2..3).prop_map(Step::Min),
        2 => value().prop_map(Step::Push),
        2 => value().prop_map(Step::AddToSet),
        1 => scalar().prop_map(Step::Pull),
        1 => prop::collection::vec(value(), 0..3).prop_map(Step::PullAll),
        1 => prop_oneof![Just(-1), Just(1)].prop_map(Step::Pop),
        2 => path().prop_map(Step::Rename),
    ]
}

pub(super) fn document() -> impl Strategy<Value = Tree> {
    fields(value()).prop_map(|mut fields| {
        fields.insert(0, ("_id".to_owned(), Tree::Number(1)));
        Tree::Object(fields)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn updates_do_what_the_model_does(
        document in document(),
        operations in prop::collection::vec((path(), step()), 1..4),
    ) {
        // An element that is `{$each: …}` or an operator cannot come up: no name begins with `$`.
        let result = apply(&document.to_document(), &update_of(&operations));
        let expected = model(&document, &operations).map(|tree| tree.to_document());
        prop_assert_eq!(result.ok(), expected);
    }
}

pub(super) fn tree_of(value: RawBsonRef<'_>) -> Tree {
    match value {
        RawBsonRef::Int32(number) => Tree::Number(number),
        RawBsonRef::String(text) => Tree::Text(text.to_owned()),
        RawBsonRef::Array(array) => Tree::Array(array.into_iter().map(|element| tree_of(element.unwrap())).collect()),
        RawBsonRef::Document(document) => {
            let fields = document.into_iter().map(|field| field.unwrap());
            Tree::Object(
                fields
                    .map(|(name, value)| (name.as_str().to_owned(), tree_of(value)))
                    .collect(),
            )
        }
        _ => Tree::Null,
    }
}

/// Sorts fields by name: descriptions of changes do not say where new fields are.
pub(super) fn sorted(tree: Tree) -> Tree {
    match tree {
        Tree::Object(mut fields) => {
            fields.sort_by(|(left, _), (right, _)| left.cmp(right));
            Tree::Object(fields.into_iter().map(|(name, value)| (name, sorted(value))).collect())
        }
        Tree::Array(elements) => Tree::Array(elements.into_iter().map(sorted).collect()),
        tree => tree,
    }
}

/// Does what a consumer of change events does with a description of changes.
fn follow(document: &Tree, changes: &FieldChanges) -> Tree {
    let parts = |path: &ChangedPath| path.0.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut document = document.clone();
    for path in &changes.removed {
        document.unset(&parts(path));
    }
    for (path, length) in &changes.truncated {
        match document.get_mut(&parts(path)) {
            Some(Tree::Array(elements)) => elements.truncate(*length),
            other => panic!("truncated is not an array: {other:?}"),
        }
    }
    for (path, value) in &changes.updated {
        document.set(&parts(path), tree_of(value.as_raw_bson_ref())).unwrap();
    }
    document
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn descriptions_of_changes_lead_to_the_new_document(
        document in document(),
        operations in prop::collection::vec((path(), step()), 1..4),
    ) {
        if let Ok(updated) = updated(&document.to_document(), &update_of(&operations)) {
            let Delta::Fields(changes) = updated.delta else { panic!("operators replace nothing") };
            let expected = sorted(tree_of(RawBsonRef::Document(&updated.document)));
            prop_assert_eq!(sorted(follow(&document, &changes)), expected);
            prop_assert_eq!(updated.changed, !changes.is_empty());
        }
    }

    #[test]
    fn differences_lead_to_the_new_document(old in document(), new in document()) {
        if let Delta::Fields(changes) = diff(&old.to_document(), &new.to_document()).unwrap() {
            prop_assert_eq!(sorted(follow(&old, &changes)), sorted(new));
        }
    }
}
