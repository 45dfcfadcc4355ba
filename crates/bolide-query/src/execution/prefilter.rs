//! A prefilter of substrings that an item's text must contain: a selective query skips most items without parsing them.
//!
//! A condition `path = 'text'` that every row must meet can hold only if the item's JSON contains `"text"`, or contains escape sequences. So an item
//! without escapes and without `"text"` has no row. It is the same with the text of CONTAINS, with the beginning of STARTSWITH, which follows a
//! quotation mark, with the end of ENDSWITH, which precedes one, and with the longest text between the wildcards of LIKE, unless they ignore case.
//! Conditions that may fail or have side effects are left to evaluation: queries with UDFs, subqueries or volatile functions have no such substrings.

use memchr::memmem::Finder;

use crate::path::PathStep;
use crate::program::{ITEM_SLOT, LikePattern, Ordering, Scalar, Select, Source, regards_case};
use crate::text::ast::BinaryOp;

/// Maximum number of substrings to search for; each further one costs nearly as much as it saves.
const MAX: usize = 8;

/// The substrings that a query's filter requires.
#[derive(Debug, Default)]
pub(super) struct SubstringPrefilter {
    finders: Vec<Finder<'static>>,
}

impl SubstringPrefilter {
    /// The substrings that `select` requires in every item.
    pub fn of(select: &Select) -> SubstringPrefilter {
        let mut prefilter = SubstringPrefilter::default();
        if let Some(filter) = filter_without_effects(select) {
            prefilter.add(select, filter);
        }
        prefilter
    }

    /// Whether an item's document may have a row.
    #[inline]
    pub fn may_match(&self, document: &[u8]) -> bool {
        self.finders
            .iter()
            .all(|finder| finder.find(document).is_some() || memchr::memchr(b'\\', document).is_some())
    }

    fn add(&mut self, select: &Select, condition: &Scalar) {
        if let Scalar::And(list) = condition {
            list.iter().for_each(|condition| self.add(select, condition));
        } else if self.finders.len() < MAX
            && let Some(substring) = substring(select, condition)
        {
            self.finders.push(Finder::new(&substring).into_owned());
        }
    }
}

/// The JSON text, or a part of it, of a string that meets a condition on a path of the item's document.
fn substring(select: &Select, condition: &Scalar) -> Option<Vec<u8>> {
    match condition {
        Scalar::Binary(BinaryOp::Equal, sides) => whole(select, &sides.0, &sides.1),
        Scalar::Call(function, args) => {
            let [value, text, flag @ ..] = &args[..] else {
                return None;
            };
            if !regards_case(flag) {
                return None;
            }
            match function.name {
                "CONTAINS" => written(select, value, ("", text_of(text)?, "")),
                "STARTSWITH" => written(select, value, ("\"", text_of(text)?, "")),
                "ENDSWITH" => written(select, value, ("", text_of(text)?, "\"")),
                "STRINGEQUALS" => whole(select, value, text),
                _ => None,
            }
        }
        Scalar::Like(value, pattern) => match &**pattern {
            LikePattern::Constant(like) => written(select, value, ("", &like.longest_literal(), "")),
            LikePattern::Dynamic(..) => None,
        },
        _ => None,
    }
}

/// The JSON text of a constant that is compared with a path, on whichever side it is.
fn whole(select: &Select, left: &Scalar, right: &Scalar) -> Option<Vec<u8>> {
    let of = |path, constant| written(select, path, ("\"", text_of(constant)?, "\""));
    of(left, right).or_else(|| of(right, left))
}

fn text_of(constant: &Scalar) -> Option<&str> {
    constant.as_const()?.as_str()
}

/// A text in the value of a path, with what is before and after it in the item's JSON; `None` if it may be written in another way.
fn written(select: &Select, path: &Scalar, (before, text, after): (&str, &str, &str)) -> Option<Vec<u8>> {
    let is_written_as_is = !text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\'));
    let tells =
        is_written_as_is && !(text.is_empty() && before.len() + after.len() < 2) && is_in_document(select, path);
    tells.then(|| format!("{before}{text}{after}").into_bytes())
}

/// Whether the value of a path is part of the item's document.
fn is_in_document(select: &Select, path: &Scalar) -> bool {
    match path {
        Scalar::Path { slot: ITEM_SLOT, steps } => {
            // System properties are not part of the document.
            matches!(steps.first(), Some(PathStep::Name(name)) if !name.starts_with('_'))
        }
        Scalar::Slot(slot) | Scalar::Path { slot, .. } => {
            let input = select.inputs.iter().find(|input| input.slot == *slot);
            input.is_some_and(|input| match &input.source {
                Source::Value(source) | Source::Each(source) => is_in_document(select, source),
                Source::Item | Source::Subquery(_) | Source::EachOfSubquery(_) => false,
            })
        }
        _ => false,
    }
}

/// The filter of a query of which the items that do not pass may be left out: it has no effect besides its value and no error, and nor have the inputs. Ranking also
/// counts items that do not pass.
pub(super) fn filter_without_effects(select: &Select) -> Option<&Scalar> {
    let is_plain = !matches!(select.ordering, Ordering::Rank(_))
        && select.inputs.iter().all(|input| is_inside_item(select, &input.source));
    select
        .filter
        .as_ref()
        .filter(|filter| is_plain && always_succeeds(filter))
}

fn is_inside_item(select: &Select, source: &Source) -> bool {
    match source {
        Source::Item => true,
        Source::Value(path) | Source::Each(path) => is_in_document(select, path),
        Source::Subquery(_) | Source::EachOfSubquery(_) => false,
    }
}

/// Whether evaluation has no effect besides its value, and no error.
fn always_succeeds(scalar: &Scalar) -> bool {
    let is_harmless = match scalar {
        Scalar::Udf(..) | Scalar::Subquery(..) | Scalar::Computed(_) => false,
        Scalar::Call(function, _) => function.is_pure(),
        _ => true,
    };
    let mut all = is_harmless;
    scalar.for_each_operand(&mut |operand| all &= always_succeeds(operand));
    all
}

#[cfg(test)]
mod tests;
