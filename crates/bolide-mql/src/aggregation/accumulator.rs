//! Accumulators: the operators of `$group`, and most of those of `$setWindowFields` (mongo.md §13).
//!
//! An [`Accumulator`] is parsed once. It makes a [`State`] for each group or window, and an [`Item`] of each document, which goes into the
//! state.

mod parse;
mod ranked;
mod state;

use bson::raw::{RawBson, RawBsonRef, RawDocumentBuf};

pub(super) use state::{State, value_bytes};

use crate::context::Context;
use crate::context::memory::StageMemory;
use crate::error::{Error, Result};
use crate::expression::{Expression, Scope};
use crate::sort::Sort;
use crate::value::number::Number;
use crate::value::{text, types};
use ranked::Ranked;

/// An accumulator with its arguments.
#[derive(Debug)]
pub(super) struct Accumulator {
    operation: Operation,
    input: Input,
    /// How many values are kept; of an operation such as `$firstN`.
    n: Option<Expression>,
    /// The `p` of `$percentile`.
    fractions: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    AddToSet,
    Average,
    Bottom,
    BottomN,
    Count,
    DeviationOfPopulation,
    DeviationOfSample,
    First,
    FirstN,
    Last,
    LastN,
    Max,
    MaxN,
    Median,
    MergeObjects,
    Min,
    MinN,
    Percentile,
    Push,
    Sum,
    Top,
    TopN,
}

/// What an accumulator takes from a document.
#[derive(Debug)]
enum Input {
    Nothing,
    Value(Expression),
    /// A value, and its place in an order.
    Ordered {
        sort: Sort,
        output: Expression,
    },
}

/// What an accumulator took from a document.
#[derive(Debug, Clone)]
pub(super) struct Item {
    value: Option<RawBson>,
    /// The place in the order, of `$top` and the like.
    key: Vec<u8>,
}

impl Item {
    /// Returns the memory it holds, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, value_bytes) + size_of::<Item>()
    }
}

impl Accumulator {
    /// Returns `{$count: {}}`.
    pub(super) fn count() -> Accumulator {
        Accumulator {
            operation: Operation::Count,
            input: Input::Nothing,
            n: None,
            fractions: Vec::new(),
        }
    }

    /// Returns the state of a new group; `n` is computed from the group's `_id`.
    ///
    /// # Errors
    /// 5787902, 5787903, 5787908 if `n` is no positive whole number.
    pub(super) fn start(&self, id: RawBsonRef<'_>, context: &Context) -> Result<State> {
        let n = match &self.n {
            Some(n) => count_of(n, id, context)?,
            None => 1,
        };
        let state = match self.operation {
            Operation::AddToSet => State::set(),
            Operation::Average => State::average(),
            Operation::Count => State::Count(0),
            Operation::DeviationOfPopulation => State::deviation(false),
            Operation::DeviationOfSample => State::deviation(true),
            Operation::First => State::First(None),
            Operation::FirstN => State::first(n),
            Operation::Last => State::Last(None),
            Operation::LastN => State::last(n),
            Operation::Max => State::extreme(true),
            Operation::Min => State::extreme(false),
            Operation::Median => State::percentiles(vec![0.5], true),
            Operation::Percentile => State::percentiles(self.fractions.clone(), false),
            Operation::MergeObjects => State::merge(),
            Operation::Push => State::push(),
            Operation::Sum => State::sum(),
            Operation::MinN | Operation::MaxN | Operation::TopN => State::Ranked(Ranked::first(n, false)),
            Operation::Top => State::Ranked(Ranked::first(1, true)),
            Operation::BottomN => State::Ranked(Ranked::last(n, false)),
            Operation::Bottom => State::Ranked(Ranked::last(1, true)),
        };
        Ok(state)
    }

    /// Takes from a document what the accumulator needs.
    ///
    /// # Errors
    /// Those of expressions.
    pub(super) fn item(&self, scope: &Scope<'_>) -> Result<Item> {
        let collation = scope.context().collation.as_deref();
        match &self.input {
            Input::Nothing => Ok(Item {
                value: None,
                key: Vec::new(),
            }),
            Input::Value(expression) => Ok(Item {
                value: expression.evaluate(scope)?,
                key: Vec::new(),
            }),
            Input::Ordered { sort, output } => Ok(Item {
                value: output.evaluate(scope)?,
                key: sort.key(scope.root(), collation)?,
            }),
        }
    }

    /// Adds an item to a state.
    ///
    /// # Errors
    /// Those of the operation; 292 if the state needs too much memory.
    pub(super) fn add_item(
        &self,
        state: &mut State,
        item: Item,
        context: &Context,
        memory: &mut StageMemory,
    ) -> Result<()> {
        let collation = context.collation.as_deref();
        match state {
            State::Ranked(ranked) => match self.operation {
                Operation::MinN => ranked.add_value(item.value, false, collation, memory),
                Operation::MaxN => ranked.add_value(item.value, true, collation, memory),
                _ => ranked.add(item.key, item.value.unwrap_or(RawBson::Null), memory),
            },
            other => other.add(item.value, collation, memory),
        }
    }

    /// Adds a document to a state.
    ///
    /// # Errors
    /// Those of [`Accumulator::item`] and [`Accumulator::add_item`].
    pub(super) fn add(&self, state: &mut State, scope: &Scope<'_>, memory: &mut StageMemory) -> Result<()> {
        if matches!(state, State::First(Some(_))) {
            return Ok(());
        }
        let item = self.item(scope)?;
        self.add_item(state, item, scope.context(), memory)
    }
}

/// Computes `n` for a group; its expression sees the group's `_id` as the document.
fn count_of(n: &Expression, id: RawBsonRef<'_>, context: &Context) -> Result<usize> {
    let empty = RawDocumentBuf::new();
    let root = match id {
        RawBsonRef::Document(id) => id,
        _ => &empty,
    };
    let value = n.evaluate(&Scope::new(context, root))?.unwrap_or(RawBson::Null);
    let value = value.as_raw_bson_ref();
    let Some(number) = Number::of(value) else {
        let found = types::name(value);
        let text = format!("Value for 'n' must be of integral type, but found {found}");
        return Err(Error::new(5787902, text));
    };
    let Some(count) = number.whole() else {
        let shown = text::render(value);
        let text = format!("Value for 'n' must be of integral type, but found {shown}");
        return Err(Error::new(5787903, text));
    };
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Error::new(
            5787908,
            format!("'n' must be greater than 0, found {count}"),
        )),
    }
}
