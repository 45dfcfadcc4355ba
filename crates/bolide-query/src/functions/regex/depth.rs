//! How long a pattern with look-around or back-references may go on without a step back.
//!
//! What the backtracking engine can, it leaves to one whose time is at most that of going through the text once. It runs loops itself where something
//! in them needs backtracking, and each round may then go through the text: `(?:(?=.*)a)*` takes time in the square of the text, and one more
//! such loop around it in its cube.

use fancy_regex::Expr;

/// Most parts of a pattern that are compiled apart from each other, at about 70 KB for a class of all letters.
const PARTS: usize = 256;

/// What is known of an expression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Work {
    /// The power of the text's length that going through it once may take.
    power: u32,
    /// Whether it needs backtracking.
    is_hard: bool,
    parts: usize,
}

impl Work {
    fn and(self, other: Work) -> Work {
        Work {
            power: self.power.max(other.power),
            is_hard: self.is_hard || other.is_hard,
            parts: self.parts + other.parts,
        }
    }

    fn hard(self) -> Work {
        Work { is_hard: true, ..self }
    }
}

/// The power of the text's length that one pass may take; `None` for patterns that are invalid, have too many parts, or call their own parts.
pub(super) fn of(pattern: &str) -> Option<u32> {
    let tree = Expr::parse_tree(pattern).ok()?;
    let work = work(&tree.expr)?;
    (work.parts <= PARTS).then_some(work.power)
}

fn work(expr: &Expr) -> Option<Work> {
    let part = Work {
        parts: 1,
        ..Work::default()
    };
    Some(match expr {
        Expr::Empty | Expr::Literal { .. } => Work::default(),
        Expr::Any { .. } | Expr::Assertion(_) | Expr::Delegate { .. } => part,
        Expr::KeepOut | Expr::ContinueFromPreviousMatchEnd | Expr::BackrefExistsCondition(_) => part.hard(),
        // As much as its group has taken is compared.
        Expr::Backref { .. } | Expr::BackrefWithRelativeRecursionLevel { .. } => Work { power: 1, ..part }.hard(),
        Expr::Concat(parts) | Expr::Alt(parts) => parts
            .iter()
            .try_fold(Work::default(), |sum, part| Some(sum.and(work(part)?)))?,
        Expr::Group(inner) => work(inner)?,
        Expr::AtomicGroup(inner) | Expr::LookAround(inner, _) => work(inner)?.hard(),
        Expr::Repeat { child, hi, .. } => {
            let child = work(child)?;
            let power = match (*hi <= 1, child.is_hard) {
                (true, _) => child.power,
                (false, true) => child.power + 1,
                (false, false) => 1,
            };
            Work { power, ..child }
        }
        Expr::Conditional {
            condition,
            true_branch,
            false_branch,
        } => work(condition)?.and(work(true_branch)?).and(work(false_branch)?).hard(),
        Expr::SubroutineCall(_) | Expr::UnresolvedNamedSubroutineCall { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_loops_multiply() {
        for (pattern, depth) in [
            ("(?=abc)a", 0),
            ("^(?=.*[A-Z])(?=.*[0-9]).{8,}$", 1),
            // Each look-ahead sees three characters.
            ("^(?:(?!end).)*$", 1),
            (r"(a+)+b\1", 1),
            ("^(?>a(?:.*b)?)*c", 2),
            (r"^(?:(?=\1).)*(a)", 2),
            ("^(?:(?=.*)a)*b", 2),
            ("^(?:x(?:(?=.*)a)*)*b", 3),
            ("^(?:(?=.{5})a){9}", 2),
            ("^(?>(?:(?=(?>(?:(?=.*)a)*))a)*)b", 3),
            ("^(?:(?=(?!(?<=(a)).*)x)a)*b", 2),
            ("(a)?(?(1)(?:(?=a*)a)*|b)", 2),
        ] {
            assert_eq!(of(pattern), Some(depth), "{pattern}");
        }
        for invalid in ["(", r"(a)\g<1>(?=x)"] {
            assert_eq!(of(invalid), None, "{invalid}");
        }
        let classes = |count: usize| r"(?=a)".to_owned() + &r"\w(?=a)".repeat(count);
        assert_eq!(of(&classes(PARTS)), Some(0));
        assert_eq!(of(&classes(PARTS + 1)), None, "too many parts");
    }
}
