//! The maximum cost of a pattern with look-around or back-references.
//!
//! The backtracking engine delegates what it can to an engine that reads the text once ([`Size`]). It runs loops itself if something in them or next
//! to them needs backtracking. Each round of such a loop leaves a backtracking point. So between one step back or backtracking point and the next,
//! each part of the pattern runs at most once: this is a pass. The number of steps back is limited, and there are as many backtracking points as
//! steps, plus those left at the end. But where backtracking points are discarded (atomic groups, negative look-arounds) inside loops, there may be
//! as many per step as the text has characters, once more for each nested loop.

use fancy_regex::{Expr, LookAround};

use super::size::{self, COMPILE_WORK, Parsed, Size};
use crate::fuel::Fuel;

/// Maximum number of separately compiled parts of a pattern, at about 70 KB for a class of all letters.
const PARTS: usize = 256;

/// Maximum number of backtracking points that the engine keeps.
const PLACES: u64 = 1_000_000;

/// Units to run a part that is compiled separately, and any other part.
const PART: u64 = 60;
const INSTRUCTION: u64 = 10;

/// Units to make a set of one position, for each way into a character.
const SET: u64 = 5_000;

/// Maximum text length beyond ASCII for a back-reference that ignores case: the engine compiles the content of its group at each comparison.
const FOLDED_BYTES: u64 = 1_024;

/// Units over texts of ASCII, and over others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ByText {
    ascii: u64,
    other: u64,
}

impl ByText {
    fn new(units: impl Fn(bool) -> u64) -> ByText {
        ByText {
            ascii: units(true),
            other: units(false),
        }
    }

    fn and(self, other: ByText) -> ByText {
        ByText {
            ascii: self.ascii.saturating_add(other.ascii),
            other: self.other.saturating_add(other.other),
        }
    }

    fn times(self, rounds: u64) -> ByText {
        ByText {
            ascii: self.ascii.saturating_mul(rounds),
            other: self.other.saturating_mul(rounds),
        }
    }

    fn of(self, is_ascii: bool) -> u64 {
        if is_ascii { self.ascii } else { self.other }
    }
}

/// The cost of running each part of an expression once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Pass {
    /// Per byte: parts that may go on to the end of the text.
    long: ByText,
    /// Parts that read only a few characters.
    short: ByText,
    references: u64,
    folded_references: u64,
}

impl Pass {
    fn and(self, other: Pass) -> Pass {
        Pass {
            long: self.long.and(other.long),
            short: self.short.and(other.short),
            references: self.references.saturating_add(other.references),
            folded_references: self.folded_references.saturating_add(other.folded_references),
        }
    }

    fn times(self, rounds: u64) -> Pass {
        Pass {
            long: self.long.times(rounds),
            short: self.short.times(rounds),
            references: self.references.saturating_mul(rounds),
            folded_references: self.folded_references.saturating_mul(rounds),
        }
    }

    /// Maximum units over a text. `None`: it must not run at all.
    fn units(&self, bytes: u64, is_ascii: bool) -> Option<u64> {
        let reference = bytes / 8 + 20;
        let folded = match (is_ascii, self.folded_references) {
            (_, 0) => 0,
            (true, _) => bytes + 20,
            (false, _) if bytes > FOLDED_BYTES => return None,
            (false, _) => 100_000 + bytes * (2_000 + 10 * bytes),
        };
        let units = INSTRUCTION
            .saturating_add(self.short.of(is_ascii))
            .saturating_add(self.long.of(is_ascii).saturating_mul(bytes))
            .saturating_add(self.references.saturating_mul(reference))
            .saturating_add(self.folded_references.saturating_mul(folded));
        Some(units)
    }
}

/// The properties of an expression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Steps {
    /// It needs backtracking.
    is_hard: bool,
    /// The last part that does not need backtracking: it may be compiled together with what follows.
    open: Size,
    /// Maximum bytes that `open` reads; `u64::MAX`: to the end of the text.
    reach: u64,
    /// `open` may match a varying number of characters: several positions are visited at once.
    is_varied: bool,
    /// The cost of running each part of `open` alone.
    alone: ByText,
    pass: Pass,
    /// The parts inside loops.
    rounds: Pass,
    /// For a search: what its parts cache.
    sets: ByText,
    /// Nesting depth of loops that only the text ends.
    loops: u32,
    /// Maximum number of rounds of other loops, nested or in sequence.
    counted: u64,
    /// Backtracking points are discarded in a loop.
    has_cuts: bool,
    /// Units to compile it.
    pub compile: u64,
}

impl Steps {
    /// A part that is compiled separately, unless another one joins it.
    fn part(size: Size, reach: u64, call: u64) -> Steps {
        let bytes = reach.min(1_024);
        Steps {
            open: size,
            reach,
            alone: ByText::new(|is_ascii| call + bytes * size.units_of_byte(is_ascii)),
            ..Steps::default()
        }
    }

    /// An operation that the engine runs itself.
    fn instruction() -> Steps {
        Steps::part(Size::default(), 0, INSTRUCTION)
    }

    fn and(self, other: Steps) -> Steps {
        Steps {
            is_hard: self.is_hard || other.is_hard,
            open: self.open.and(other.open),
            reach: self.reach.saturating_add(other.reach),
            is_varied: self.is_varied || other.is_varied,
            alone: self.alone.and(other.alone),
            pass: self.pass.and(other.pass),
            rounds: self.rounds.and(other.rounds),
            sets: self.sets.and(other.sets),
            loops: self.loops.max(other.loops),
            counted: self.counted.saturating_add(other.counted),
            has_cuts: self.has_cuts || other.has_cuts,
            compile: self.compile.saturating_add(other.compile),
        }
    }

    fn back_reference(ignores_case: bool) -> Steps {
        let own = Steps::instruction().hard();
        let pass = Pass {
            references: u64::from(!ignores_case),
            folded_references: u64::from(ignores_case),
            ..own.pass
        };
        Steps { pass, ..own }
    }

    /// Marks the expression as needing backtracking: no part outside joins those in it. The engine runs its loops.
    fn hard(self) -> Steps {
        let reach = if self.reach == u64::MAX { 0 } else { self.reach };
        Steps { reach, ..self }.closed()
    }

    /// No part outside joins those in it.
    fn closed(self) -> Steps {
        let bytes = ByText::new(|is_ascii| self.open.units_of_byte(is_ascii));
        let (long, short) = match self.reach {
            u64::MAX => (bytes, ByText::default()),
            _ if !self.is_varied && !self.open.has_groups => {
                // One position at a time.
                let bytes = self.reach.saturating_mul(2 * size::VISIT_POSITIONS);
                (ByText::default(), ByText::new(|_| bytes))
            }
            reach => (ByText::default(), bytes.times(reach)),
        };
        let own = Pass {
            long,
            short: short.and(self.alone),
            ..Pass::default()
        };
        let sets = match self.open {
            nothing if nothing == Size::default() => ByText::default(),
            _ if !self.is_varied => ByText::new(|_| self.open.positions.saturating_mul(SET)),
            open => ByText::new(|is_ascii| open.units_of_sets(is_ascii)),
        };
        Steps {
            is_hard: true,
            open: Size::default(),
            reach: 0,
            is_varied: false,
            alone: ByText::default(),
            pass: self.pass.and(own),
            sets: self.sets.and(sets),
            compile: self.compile.saturating_add(self.open.compile),
            ..self
        }
    }

    /// Its content is compiled separately from the parts around it.
    fn apart(self) -> Steps {
        if self.is_hard {
            return self.hard();
        }
        // Without backtracking in it, the engine does not run its loops.
        Steps {
            rounds: Pass::default(),
            loops: 0,
            counted: 0,
            ..self
        }
        .closed()
    }

    /// As [`Steps::hard`] if the engine runs its content, else as [`Steps::apart`].
    fn closed_or_apart(self, is_run: bool) -> Steps {
        if is_run { self.hard() } else { self.apart() }
    }

    /// As [`Steps::apart`], and no step back goes beyond it.
    fn cut(self) -> Steps {
        let inner = self.apart();
        Steps {
            has_cuts: inner.has_cuts || inner.loops > 0 || inner.counted > 0,
            ..inner
        }
    }

    fn repeated(self, min: usize, max: usize) -> Steps {
        // The required rounds leave no backtracking point.
        let must = (min as u64).max(1);
        let max = (max != usize::MAX).then_some(max as u64);
        let (loops, counted) = match max {
            Some(0 | 1) => (self.loops, self.counted),
            Some(max) => (self.loops, self.counted.max(1).saturating_mul(max)),
            None if self.is_hard => (self.loops + 1, self.counted),
            // Together they match no more than the text.
            None => (1, self.counted),
        };
        let reach = match max {
            Some(max) => self.reach.saturating_mul(max),
            None => u64::MAX,
        };
        let alone = self.alone.times(must).and(ByText::new(|_| INSTRUCTION));
        let pass = self.pass.times(must);
        let rounds = match max {
            Some(0 | 1) => self.rounds,
            _ => pass.and(Pass {
                short: alone,
                ..Pass::default()
            }),
        };
        Steps {
            open: self.open.times(min as u64, max),
            reach: if self.is_hard { 0 } else { reach },
            is_varied: self.is_varied || max != Some(min as u64),
            alone,
            pass,
            rounds,
            loops,
            counted,
            ..self
        }
    }

    /// Maximum units of a search of a text with `steps` steps back. `None`: it must not run at all.
    pub fn units(&self, bytes: u64, is_ascii: bool, steps: u64) -> Option<u64> {
        if !self.is_hard {
            return Some(self.open.units(bytes, is_ascii));
        }
        let pass = self.pass.units(bytes, is_ascii)?;
        let round = self.rounds.units(bytes, is_ascii)?;
        let places = bytes.saturating_pow(self.loops).saturating_mul(self.counted.max(1));
        let rounds = if self.has_cuts {
            (steps + 1).saturating_mul(places)
        } else {
            steps + places.min(PLACES)
        };
        let passes = (steps + 1).saturating_mul(pass);
        let units = passes.saturating_add(rounds.saturating_mul(round));
        Some(units.saturating_add(self.sets.of(is_ascii)))
    }
}

/// The maximum cost of a pattern; `None` if it is invalid, too large, calls its own parts, or if fuel is refused.
pub(super) fn of(pattern: &str, fuel: &Fuel) -> Option<Steps> {
    if !fuel.spend(2_000 + pattern.len() as u64 * size::READ_BYTE) {
        return None;
    }
    let tree = Expr::parse_tree(pattern).ok()?;
    let mut reading = PatternAnalysis {
        fuel,
        parts: 0,
        has_references: !tree.backrefs.is_empty(),
    };
    // The engine runs a look-ahead at the end like the part after a group.
    let ahead = match &tree.expr {
        Expr::Concat(parts) => parts.split_last(),
        alone => Some((alone, &[][..])),
    };
    let steps = match ahead {
        Some((Expr::LookAround(inner, LookAround::LookAhead), before)) => {
            let group = reading.concatenation(before, true)?;
            let inner = reading.expression(inner, true)?;
            match (group.is_hard, inner.is_hard) {
                (false, false) => Steps {
                    open: group.open.and(inner.open).group(),
                    ..group
                },
                (true, false) => group.and(inner.apart()),
                (_, true) => group.hard().and(inner),
            }
        }
        _ => reading.expression(&tree.expr, false)?,
    };
    let steps = if steps.is_hard {
        steps.hard()
    } else {
        Steps {
            compile: steps.open.compile,
            ..steps
        }
    };
    (steps.compile <= COMPILE_WORK).then_some(steps)
}

/// The analysis of a pattern. The depth of trees is limited by the parser.
struct PatternAnalysis<'f> {
    fuel: &'f Fuel,
    parts: usize,
    has_references: bool,
}

impl PatternAnalysis<'_> {
    /// `is_run`: the engine runs all of it itself, whether it needs backtracking or not.
    fn expression(&mut self, expr: &Expr, is_run: bool) -> Option<Steps> {
        Some(match expr {
            Expr::Empty => Steps::default(),
            Expr::Literal { val, casei: false } => Steps::part(Size::literal(val.len()), val.len() as u64, INSTRUCTION),
            Expr::Literal { val, casei: true } => {
                self.part()?;
                // The other case of a letter may be longer.
                Steps::part(Size::letters(val.chars().count()), 4 * val.len() as u64, PART)
            }
            Expr::Any { .. } | Expr::Assertion(_) => {
                self.part()?;
                Steps::part(Size::letters(1), 4, INSTRUCTION)
            }
            Expr::Delegate { inner, casei, .. } => self.delegate(inner, *casei)?,
            Expr::KeepOut | Expr::ContinueFromPreviousMatchEnd | Expr::BackrefExistsCondition(_) => {
                Steps::instruction().hard()
            }
            Expr::Backref { casei, .. } => Steps::back_reference(*casei),
            Expr::Concat(parts) => self.concatenation(parts, is_run)?,
            Expr::Alt(parts) => self.alternation(parts, is_run)?,
            Expr::Group(inner) => self.group(inner, is_run)?,
            Expr::AtomicGroup(inner) => self.expression(inner, false)?.cut(),
            Expr::LookAround(inner, LookAround::LookAheadNeg | LookAround::LookBehindNeg) => {
                self.expression(inner, false)?.cut()
            }
            Expr::LookAround(inner, LookAround::LookAhead | LookAround::LookBehind) => {
                self.expression(inner, false)?.apart()
            }
            Expr::Repeat { child, lo, hi, .. } => {
                let is_option = *lo == 0 && *hi <= 1;
                self.expression(child, is_run || !is_option)?.repeated(*lo, *hi)
            }
            Expr::Conditional {
                condition,
                true_branch,
                false_branch,
            } => self.conditional(condition, [true_branch, false_branch], is_run)?,
            Expr::SubroutineCall(_)
            | Expr::UnresolvedNamedSubroutineCall { .. }
            | Expr::BackrefWithRelativeRecursionLevel { .. } => return None,
        })
    }

    fn alternation(&mut self, parts: &[Expr], is_run: bool) -> Option<Steps> {
        // Branches do not follow each other, so this is an upper bound.
        let mut branches = Vec::with_capacity(parts.len());
        for part in parts {
            branches.push(self.expression(part, is_run)?.and(Steps::instruction()));
        }
        let is_hard = branches.iter().any(|branch| branch.is_hard);
        let all = branches.into_iter().map(|branch| match is_hard {
            true => branch.closed_or_apart(is_run),
            false => branch,
        });
        let varied = Steps {
            is_varied: true,
            ..Steps::default()
        };
        Some(all.fold(varied, Steps::and))
    }

    fn group(&mut self, inner: &Expr, is_run: bool) -> Option<Steps> {
        let inner = self.expression(inner, is_run)?;
        // The content of a group may have to be tried again.
        if self.has_references {
            return Some(inner.closed_or_apart(is_run));
        }
        Some(Steps {
            open: if inner.is_hard { inner.open } else { inner.open.group() },
            ..inner.and(Steps::instruction())
        })
    }

    fn conditional(&mut self, condition: &Expr, branches: [&Expr; 2], is_run: bool) -> Option<Steps> {
        let condition = self.expression(condition, is_run)?.closed_or_apart(is_run);
        let mut all = Steps {
            has_cuts: condition.has_cuts || condition.loops > 0 || condition.counted > 0,
            ..condition
        };
        for branch in branches {
            all = all.and(self.expression(branch, is_run)?.closed_or_apart(is_run));
        }
        Some(all)
    }

    /// Parts in sequence. Those at the end that do not need backtracking are compiled together, unless the engine runs everything here.
    fn concatenation(&mut self, parts: &[Expr], is_run: bool) -> Option<Steps> {
        let mut front = Steps::default();
        let mut end = Steps::default();
        for part in parts {
            let part = self.expression(part, true)?;
            if part.is_hard {
                front = front.and(end).and(part);
                end = Steps::default();
            } else {
                end = end.and(part);
            }
        }
        Some(match (front.is_hard, is_run) {
            (true, false) => front.hard().and(end.apart()),
            (true, true) => front.and(end).hard(),
            (false, _) => end,
        })
    }

    /// Counts one more part that may be compiled separately.
    fn part(&mut self) -> Option<()> {
        self.parts += 1;
        (self.parts <= PARTS).then_some(())
    }

    fn delegate(&mut self, inner: &str, ignores_case: bool) -> Option<Steps> {
        self.part()?;
        let text = match ignores_case {
            true => format!("(?i:{inner})"),
            false => inner.to_owned(),
        };
        let Parsed::Hir(hir, size) = size::parse(&text, self.fuel) else {
            return None;
        };
        let reach = hir.properties().maximum_len().map_or(u64::MAX, |bytes| bytes as u64);
        Some(Steps::part(size, reach, PART))
    }
}

#[cfg(test)]
mod tests;
