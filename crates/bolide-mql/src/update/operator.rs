//! Update operators: their arguments, and what each does with a value (mongo.md §12).
//!
//! An operator is a function of the value at its path. It says what becomes of the value; the walk in `apply` does it.

use bson::raw::CStr;
use bson::{RawArray, RawArrayBuf, RawBson, RawBsonRef, RawDocument};

use super::add_to_set::AddToSet;
use super::arithmetic::{Arithmetic, Function};
use super::bit::Bit;
use super::current_date::CurrentDate;
use super::pop::Pop;
use super::pull::{Pull, PullAll};
use super::push::Push;
use super::text;
use crate::context::Context;
use crate::error::Result;
use crate::value;

/// An operator with its argument.
#[derive(Debug)]
pub(super) enum Operator {
    /// `$set`.
    Set(RawBson),
    /// `$setOnInsert`: a `$set` that does nothing to a stored document.
    SetOnInsert(RawBson),
    /// `$unset`.
    Unset,
    /// `$inc` and `$mul`.
    Arithmetic(Arithmetic),
    /// `$min`.
    Min(RawBson),
    /// `$max`.
    Max(RawBson),
    /// `$currentDate`.
    CurrentDate(CurrentDate),
    /// `$push`.
    Push(Push),
    /// `$addToSet`.
    AddToSet(AddToSet),
    /// `$pull`.
    Pull(Pull),
    /// `$pullAll`.
    PullAll(PullAll),
    /// `$pop`.
    Pop(Pop),
    /// `$bit`.
    Bit(Bit),
    /// The old place of a `$rename`; the number is that of the renamed value.
    RenameFrom(usize),
    /// The new place of a `$rename`.
    RenameTo(usize),
}

/// Parses the argument of an operator for one field.
pub(super) type Parser = fn(&CStr, RawBsonRef<'_>) -> Result<Operator>;

/// The operators; `$rename` is not here, because it has two paths.
const PARSERS: [(&str, Parser); 14] = [
    ("$addToSet", |_, argument| {
        AddToSet::parse(argument).map(Operator::AddToSet)
    }),
    ("$bit", |_, argument| Bit::parse(argument).map(Operator::Bit)),
    ("$currentDate", |_, argument| {
        CurrentDate::parse(argument).map(Operator::CurrentDate)
    }),
    ("$inc", |field, argument| {
        arithmetic(Function::Increment, field, argument)
    }),
    ("$max", |_, argument| Ok(Operator::Max(argument.into()))),
    ("$min", |_, argument| Ok(Operator::Min(argument.into()))),
    ("$mul", |field, argument| {
        arithmetic(Function::Multiply, field, argument)
    }),
    ("$pop", |field, argument| Pop::parse(field, argument).map(Operator::Pop)),
    ("$pull", |_, argument| Pull::parse(argument).map(Operator::Pull)),
    ("$pullAll", |_, argument| {
        PullAll::parse(argument).map(Operator::PullAll)
    }),
    ("$push", |_, argument| Push::parse(argument).map(Operator::Push)),
    ("$set", |_, argument| Ok(Operator::Set(argument.into()))),
    ("$setOnInsert", |_, argument| Ok(Operator::SetOnInsert(argument.into()))),
    ("$unset", |_, _| Ok(Operator::Unset)),
];

/// Returns the parser of an operator's arguments; `None` for an unknown operator.
pub(super) fn parser(operator: &str) -> Option<Parser> {
    let row = PARSERS.binary_search_by_key(&operator, |(name, _)| name).ok()?;
    Some(PARSERS[row].1)
}

fn arithmetic(function: Function, field: &CStr, argument: RawBsonRef<'_>) -> Result<Operator> {
    Arithmetic::parse(function, field, argument).map(Operator::Arithmetic)
}

/// What becomes of a value.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    /// It stays.
    None,
    /// It is replaced.
    Value(RawBson),
    /// The array gets more elements at its end. `first` is the number of the first new one.
    Append {
        /// The whole new array.
        array: RawArrayBuf,
        /// The number of old elements.
        first: usize,
    },
    /// It is removed.
    Remove,
}

/// The place that an operator is applied to.
pub(super) struct Target<'t> {
    /// Time and collation.
    pub(super) ctx: &'t Context,
    /// The document before the update.
    pub(super) document: &'t RawDocument,
    /// The path, with the numbers of array elements.
    pub(super) path: &'t str,
    /// The name of the field.
    pub(super) name: &'t str,
    /// The values of `$rename`; `None` where there is nothing to rename.
    pub(super) renamed: &'t [Option<RawBson>],
    /// The update inserts the document.
    pub(super) is_insert: bool,
}

impl Target<'_> {
    /// Returns `_id: 1` for error messages.
    pub(super) fn id(&self) -> String {
        text::id_of(self.document)
    }
}

impl Operator {
    /// Returns what becomes of an existing value.
    ///
    /// # Errors
    /// `TypeMismatch`, `BadValue`: the value has a type that the operator cannot change.
    pub(super) fn change(&self, current: RawBsonRef<'_>, target: &Target<'_>) -> Result<Change> {
        let collation = target.ctx.collation.as_deref();
        match self {
            Operator::Set(value) => Ok(Change::Value(value.clone())),
            Operator::SetOnInsert(value) if target.is_insert => Ok(Change::Value(value.clone())),
            Operator::SetOnInsert(_) => Ok(Change::None),
            Operator::Unset => Ok(Change::Remove),
            Operator::Arithmetic(arithmetic) => arithmetic.change(current, target),
            Operator::Min(value) | Operator::Max(value) => {
                let order = value::compare_with(value.as_raw_bson_ref(), current, collation);
                let replaces = if matches!(self, Operator::Min(_)) {
                    order.is_lt()
                } else {
                    order.is_gt()
                };
                Ok(if replaces {
                    Change::Value(value.clone())
                } else {
                    Change::None
                })
            }
            Operator::CurrentDate(date) => Ok(Change::Value(date.value(target.ctx))),
            Operator::Push(push) => push.change(current, target),
            Operator::AddToSet(add) => add.change(current, target),
            Operator::Pull(pull) => pull.change(current, target),
            Operator::PullAll(pull) => pull.change(current, target),
            Operator::Pop(pop) => pop.change(current, target),
            Operator::Bit(bit) => bit.change(current, target),
            Operator::RenameFrom(number) => Ok(match renamed(target, *number) {
                Some(_) => Change::Remove,
                None => Change::None,
            }),
            Operator::RenameTo(number) => Ok(renamed(target, *number).map_or(Change::None, Change::Value)),
        }
    }

    /// Returns the value to add where there is none; `None` if the operator adds none.
    ///
    /// # Errors
    /// Those of [`Operator::change`].
    pub(super) fn create(&self, target: &Target<'_>) -> Result<Option<RawBson>> {
        match self {
            Operator::Set(value) | Operator::Min(value) | Operator::Max(value) => Ok(Some(value.clone())),
            Operator::SetOnInsert(value) => Ok(target.is_insert.then(|| value.clone())),
            Operator::Arithmetic(arithmetic) => Ok(Some(arithmetic.create())),
            Operator::CurrentDate(date) => Ok(Some(date.value(target.ctx))),
            Operator::Push(push) => push.create(target).map(Some),
            Operator::AddToSet(add) => add.create(target).map(Some),
            Operator::Bit(bit) => Ok(Some(bit.create())),
            Operator::RenameTo(number) => Ok(renamed(target, *number)),
            Operator::Unset | Operator::Pull(_) | Operator::PullAll(_) | Operator::Pop(_) | Operator::RenameFrom(_) => {
                Ok(None)
            }
        }
    }

    /// Tells whether the operator only removes, so that it may be used on fields whose names cannot be written.
    pub(super) fn only_removes(&self) -> bool {
        matches!(
            self,
            Operator::Unset | Operator::Pull(_) | Operator::PullAll(_) | Operator::Pop(_) | Operator::RenameFrom(_)
        )
    }
}

fn renamed(target: &Target<'_>, number: usize) -> Option<RawBson> {
    target.renamed.get(number)?.clone()
}

/// Returns the elements of an array.
pub(super) fn elements_of(array: &RawArray) -> Result<Vec<RawBsonRef<'_>>> {
    let mut elements = Vec::new();
    for element in array {
        elements.push(element?);
    }
    Ok(elements)
}

/// Returns the array of these elements.
pub(super) fn array_of<'v>(elements: impl IntoIterator<Item = RawBsonRef<'v>>) -> RawArrayBuf {
    let mut array = RawArrayBuf::new();
    for element in elements {
        array.push(element);
    }
    array
}
