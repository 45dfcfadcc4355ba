//! How often a pattern may go through the text without a step back.
//!
//! Going forward, loops share the text: all together go through it once. A look-around goes back to where it began, so in a loop it goes
//! through the text once for each round: `(?:(?=.*)a)*` takes time in the square of the text, and one more nested like that in its cube.

use fancy_regex::Expr;

/// Work of an expression: the power of the text's length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Work {
    /// Of going through it once.
    once: u32,
    /// Of the worst look-around in it, if there is one.
    look_around: Option<u32>,
}

impl Work {
    fn and(self, other: Work) -> Work {
        Work {
            once: self.once.max(other.once),
            look_around: self.look_around.max(other.look_around),
        }
    }
}

/// The power of the text's length that one pass may take; `None` for patterns that are invalid or call their own parts.
pub(super) fn of(pattern: &str) -> Option<u32> {
    let tree = Expr::parse_tree(pattern).ok()?;
    Some(work(&tree.expr)?.once)
}

fn work(expr: &Expr) -> Option<Work> {
    let once = |once| Work {
        once,
        look_around: None,
    };
    Some(match expr {
        Expr::Empty
        | Expr::Any { .. }
        | Expr::Assertion(_)
        | Expr::Literal { .. }
        | Expr::Delegate { .. }
        | Expr::KeepOut
        | Expr::ContinueFromPreviousMatchEnd
        | Expr::BackrefExistsCondition(_) => once(0),
        // As much as its group has taken is compared.
        Expr::Backref { .. } | Expr::BackrefWithRelativeRecursionLevel { .. } => once(1),
        Expr::Concat(parts) | Expr::Alt(parts) => all(parts)?,
        Expr::Group(inner) | Expr::AtomicGroup(inner) => work(inner)?,
        Expr::LookAround(inner, _) => {
            let inner = work(inner)?;
            Work {
                once: inner.once,
                look_around: inner.look_around.max(Some(inner.once)),
            }
        }
        Expr::Repeat { child, hi, .. } => {
            let child = work(child)?;
            if *hi <= 1 {
                return Some(child);
            }
            let rounds = child.look_around.map_or(0, |look_around| look_around + 1);
            Work {
                once: child.once.max(rounds).max(1),
                look_around: child.look_around,
            }
        }
        Expr::Conditional {
            condition,
            true_branch,
            false_branch,
        } => work(condition)?.and(work(true_branch)?).and(work(false_branch)?),
        Expr::SubroutineCall(_) | Expr::UnresolvedNamedSubroutineCall { .. } => return None,
    })
}

fn all(parts: &[Expr]) -> Option<Work> {
    parts
        .iter()
        .try_fold(Work::default(), |sum, part| Some(sum.and(work(part)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_arounds_in_loops_multiply() {
        for (pattern, depth) in [
            ("(?=abc)a", 0),
            ("^(?=.*[A-Z])(?=.*[0-9]).{8,}$", 1),
            // Each look-ahead sees three characters.
            ("^(?:(?!end).)*$", 1),
            (r"(a+)+b\1", 1),
            (r"^(?:(?=\1).)*(a)", 2),
            ("^(?:(?=.*)a)*b", 2),
            ("^(?:x(?:(?=.*)a)*)*b", 2),
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
    }
}
