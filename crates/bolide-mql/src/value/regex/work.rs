//! The greatest cost of a search, estimated from the pattern.
//!
//! A unit is one position of the pattern tried at one character. The engine without steps back needs at most positions × text. Each step back of the
//! other engine can run a part of the pattern over the whole text, if it repeats without bound, or else over as many characters as it has positions.

use fancy_regex::Expr;

/// Limits of steps back: the largest one that is affordable is used.
pub(super) const STEPS: [usize; 5] = [1_000_000, 100_000, 10_000, 1_000, 100];

/// Units that one search may take; the engines do some hundred million in a second at worst.
const UNITS: u64 = 4_000_000_000;

/// Counted repetitions of more than this are as costly as those without bound.
const LONG_REPETITION: usize = 1_000;

/// What a pattern costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Work {
    /// Characters and classes, multiplied by the counts of repetitions around them.
    positions: u64,
    repeats_without_bound: bool,
    /// Whether it has look-around, back-references or the like.
    steps_back: bool,
}

impl Work {
    /// Estimates the cost of a pattern.
    ///
    /// # Errors
    /// The text for a pattern that is refused: a back-reference that ignores case, for which the library compiles the text of the group at each
    /// comparison, without a limit.
    pub(super) fn of(expression: &Expr) -> Result<Work, String> {
        let mut work = Work {
            positions: 1,
            repeats_without_bound: false,
            steps_back: false,
        };
        work.positions = work.add(expression)?.max(1);
        Ok(work)
    }

    /// Returns the index of the limit of steps for a text of this many bytes; `None` if no search is affordable.
    pub(super) fn steps_index(&self, text_bytes: usize) -> Option<usize> {
        let text = text_bytes.max(1) as u64;
        if !self.steps_back {
            return (self.positions.saturating_mul(text) <= UNITS).then_some(0);
        }
        let reach = if self.repeats_without_bound {
            text
        } else {
            text.min(self.positions)
        };
        let step = self.positions.saturating_mul(reach);
        STEPS
            .iter()
            .position(|steps| step.saturating_mul(*steps as u64) <= UNITS)
    }

    /// Returns the positions of a part, and notes what it has. The parser bounds the nesting.
    fn add(&mut self, expression: &Expr) -> Result<u64, String> {
        let is_plain = matches!(
            expression,
            Expr::Empty
                | Expr::Any { .. }
                | Expr::Assertion(_)
                | Expr::Literal { .. }
                | Expr::Concat(_)
                | Expr::Alt(_)
                | Expr::Group(_)
                | Expr::Repeat { .. }
                | Expr::Delegate { .. }
        );
        self.steps_back |= !is_plain;
        match expression {
            Expr::Literal { val, .. } => Ok(val.len() as u64),
            Expr::Any { .. } | Expr::Delegate { .. } => Ok(1),
            Expr::Concat(parts) | Expr::Alt(parts) => self.add_all(parts),
            Expr::Group(part) | Expr::LookAround(part, _) | Expr::AtomicGroup(part) => self.add(part),
            Expr::Repeat { child, lo, hi, .. } => {
                self.repeats_without_bound |= *hi > LONG_REPETITION;
                let count = if *hi == usize::MAX { lo.saturating_add(1) } else { *hi };
                Ok(self.add(child)?.saturating_mul(count as u64))
            }
            Expr::Conditional {
                condition,
                true_branch,
                false_branch,
            } => {
                let positions = self.add(condition)?;
                let positions = positions.saturating_add(self.add(true_branch)?);
                Ok(positions.saturating_add(self.add(false_branch)?))
            }
            Expr::Backref { casei: true, .. } | Expr::BackrefWithRelativeRecursionLevel { casei: true, .. } => {
                Err("back references that ignore case are not supported".to_owned())
            }
            Expr::Backref { .. }
            | Expr::BackrefWithRelativeRecursionLevel { .. }
            | Expr::SubroutineCall(_)
            | Expr::UnresolvedNamedSubroutineCall { .. } => {
                self.repeats_without_bound = true;
                Ok(1)
            }
            _ => Ok(0),
        }
    }

    fn add_all(&mut self, parts: &[Expr]) -> Result<u64, String> {
        let mut positions: u64 = 0;
        for part in parts {
            positions = positions.saturating_add(self.add(part)?);
        }
        Ok(positions)
    }
}
