//! The size of a compiled pattern, and the maximum cost of a search with it.
//!
//! The engine keeps the set of all positions in the pattern at which a match may be (a DFA state). It caches these sets, so that a character usually
//! costs one look-up. If a pattern has too many sets for the cache, such as `[ab]*a[ab]{100}`, the engine visits the positions one by one for each
//! character: this is the cost that must be affordable before.

use regex_syntax::ast::{self, Ast, ClassPerlKind, ClassSetItem, FlagsItemKind};
use regex_syntax::hir::translate::Translator;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

use crate::fuel::Fuel;

/// More positions never fit the limit of a compiled pattern.
const POSITIONS: u64 = 50_000;

/// Maximum units to compile a pattern, or all parts of one.
pub(super) const COMPILE_WORK: u64 = 60_000_000;

/// Maximum units to compile a part before its size ends it.
const BUILD_WORK: u64 = 20_000_000;

/// Number of sets that fit the cache in any case, as a power of two.
const KEPT_BITS: u64 = 11;

/// Units to compile a group.
const GROUP: u64 = 600;

/// Units to read a byte of a pattern.
pub(super) const READ_BYTE: u64 = 150;

/// Units to find the other cases of a character in a class.
const FOLD_CHAR: u64 = 6;

/// Characters of the largest class, and of `\w`.
const ALL_CHARS: u64 = 0x11_0000;
const WORD_CHARS: u64 = 150_000;

/// Units per position and character, for making a set and for visiting the positions one by one.
const MAKE_SETS: u64 = 24;
pub(super) const VISIT_POSITIONS: u64 = 10;
/// The same if groups must be located.
const VISIT_GROUPS: u64 = 40;
/// Units spent on making sets before the engine gives up its cache.
const MAX_SETS: u64 = 60_000_000;

/// The size of a pattern, or of a part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// Positions at which a match may be: characters times their repetitions.
    pub positions: u64,
    /// Number of possible sets of positions, as a power of two.
    bits: u64,
    /// The addition to `bits` if characters take several bytes.
    wide_bits: u64,
    /// Units to compile it.
    pub compile: u64,
    /// It has word boundaries, which are not cached beyond ASCII.
    has_words: bool,
    pub has_groups: bool,
}

impl Size {
    /// Two parts in a sequence or in an alternation.
    pub fn and(self, other: Size) -> Size {
        Size {
            positions: self.positions.saturating_add(other.positions),
            bits: self.bits.saturating_add(other.bits),
            wide_bits: self.wide_bits.max(other.wide_bits),
            compile: self.compile.saturating_add(other.compile),
            has_words: self.has_words | other.has_words,
            has_groups: self.has_groups | other.has_groups,
        }
    }

    /// A part that is repeated; each repetition is compiled.
    pub fn times(self, min: u64, max: Option<u64>) -> Size {
        let rounds = max.unwrap_or(min).max(1);
        let ends = if max == Some(min) { 0 } else { rounds };
        Size {
            positions: self.positions.saturating_mul(rounds).saturating_add(ends),
            bits: self.bits.saturating_mul(rounds),
            compile: self
                .compile
                .saturating_mul(rounds)
                .saturating_add(200 * rounds.min(POSITIONS)),
            ..self
        }
    }

    pub fn group(self) -> Size {
        Size {
            compile: self.compile.saturating_add(GROUP),
            has_groups: true,
            ..self
        }
    }

    /// A literal of `bytes` bytes.
    pub fn literal(bytes: usize) -> Size {
        Size {
            positions: bytes as u64,
            bits: log2(bytes as u64),
            compile: 700 * bytes as u64,
            ..Size::default()
        }
    }

    /// Characters in any case.
    pub fn letters(chars: usize) -> Size {
        let chars = chars as u64;
        Size {
            bits: chars,
            wide_bits: 2,
            compile: 3_000 * chars,
            ..Size::literal(chars as usize)
        }
    }

    /// A class of `ranges` ranges.
    fn class(ranges: usize, is_ascii: bool) -> Size {
        let ranges = ranges as u64;
        Size {
            positions: 1 + ranges.min(64) / 16,
            bits: 1,
            // A set for each way into the middle of a character.
            wide_bits: if is_ascii { 0 } else { 1 + log2(ranges.min(255)) },
            compile: 500 + 700 * ranges,
            ..Size::default()
        }
    }

    /// Maximum units of a search over `bytes` bytes.
    pub fn units(&self, bytes: u64, is_ascii: bool) -> u64 {
        let meeting_all = bytes.saturating_mul(self.positions).saturating_mul(MAKE_SETS);
        let going = bytes.saturating_mul(self.units_of_byte(is_ascii));
        going.saturating_add(meeting_all.min(self.units_of_sets(is_ascii)))
    }

    /// Maximum units per byte, without making sets.
    pub fn units_of_byte(&self, is_ascii: bool) -> u64 {
        let all = if self.are_sets_kept(is_ascii) {
            4
        } else {
            self.positions.saturating_mul(VISIT_POSITIONS)
        };
        // Groups are located by visiting their positions again after the match was found.
        let groups = if self.has_groups { self.positions } else { 0 };
        all.saturating_add(groups.saturating_mul(VISIT_GROUPS))
    }

    /// Maximum units to make the sets that are cached, for all searches together.
    pub fn units_of_sets(&self, is_ascii: bool) -> u64 {
        if !self.are_sets_kept(is_ascii) {
            return MAX_SETS;
        }
        (1_u64 << self.bits(is_ascii)).saturating_mul(60 * self.positions.min(POSITIONS) + 500)
    }

    fn are_sets_kept(&self, is_ascii: bool) -> bool {
        self.bits(is_ascii) <= KEPT_BITS && (is_ascii || !self.has_words)
    }

    fn bits(&self, is_ascii: bool) -> u64 {
        self.bits.saturating_add(if is_ascii { 0 } else { self.wide_bits })
    }
}

/// A number's length in bits.
fn log2(number: u64) -> u64 {
    u64::from(u64::BITS - number.leading_zeros())
}

/// The result of parsing a pattern.
#[derive(Debug)]
pub(super) enum Parsed {
    Hir(Hir, Size),
    /// It is invalid, or needs backtracking.
    Unknown,
    /// It is larger than the limit, or fuel was refused.
    TooLarge,
}

/// Parses a pattern, which spends fuel.
pub(super) fn parse(text: &str, fuel: &Fuel) -> Parsed {
    if !fuel.spend(2_000 + text.len() as u64 * READ_BYTE) {
        return Parsed::TooLarge;
    }
    let Ok(tree) = ast::parse::Parser::new().parse(text) else {
        return Parsed::Unknown;
    };
    let fold = folding(&tree);
    if fold > COMPILE_WORK || !fuel.spend(fold) {
        return Parsed::TooLarge;
    }
    let Ok(hir) = Translator::new().translate(text, &tree) else {
        return Parsed::Unknown;
    };
    let size = of(&hir);
    // A repeated part is case-folded once. The limit of a compiled pattern ends compilation early.
    let size = Size {
        compile: size.compile.min(BUILD_WORK) + fold,
        ..size
    };
    if size.positions > POSITIONS {
        return Parsed::TooLarge;
    }
    Parsed::Hir(hir, size)
}

/// The size of a parsed pattern. The depth of trees is limited by the parser.
fn of(hir: &Hir) -> Size {
    match hir.kind() {
        HirKind::Empty => Size::default(),
        HirKind::Literal(literal) => Size::literal(literal.0.len()),
        HirKind::Class(Class::Unicode(class)) => Size::class(class.ranges().len(), class.is_ascii()),
        HirKind::Class(Class::Bytes(class)) => Size::class(class.ranges().len(), true),
        HirKind::Look(look) => Size {
            positions: 1,
            bits: 1,
            compile: 500,
            has_words: !matches!(
                look,
                Look::Start | Look::End | Look::StartLF | Look::EndLF | Look::StartCRLF | Look::EndCRLF
            ),
            ..Size::default()
        },
        HirKind::Repetition(repeated) => of(&repeated.sub).times(u64::from(repeated.min), repeated.max.map(u64::from)),
        HirKind::Capture(group) => {
            let inner = of(&group.sub);
            Size {
                compile: inner.compile.saturating_add(GROUP),
                ..inner
            }
        }
        HirKind::Concat(parts) => parts.iter().map(of).fold(Size::default(), Size::and),
        HirKind::Alternation(parts) => {
            let all = parts.iter().map(of).fold(Size::default(), Size::and);
            let is_literal = |part: &Hir| matches!(part.kind(), HirKind::Literal(_) | HirKind::Empty);
            // An alternation of words has one set per letter.
            let bits = if parts.iter().all(is_literal) {
                log2(all.positions)
            } else {
                all.bits
            };
            Size {
                positions: all.positions.saturating_add(parts.len() as u64),
                bits,
                ..all
            }
        }
    }
}

/// Units to add the other cases of classes: each character is looked up once per enclosing bracket.
fn folding(tree: &Ast) -> u64 {
    let Ok(chars) = ast::visit(tree, Folding::default());
    chars.saturating_mul(FOLD_CHAR)
}

#[derive(Debug, Default)]
struct Folding {
    ignores_case: bool,
    /// Number of enclosing brackets and operations.
    depth: u64,
    chars: u64,
}

impl Folding {
    fn flags(&mut self, flags: &ast::Flags) {
        self.ignores_case |= flags
            .items
            .iter()
            .any(|item| item.kind == FlagsItemKind::Flag(ast::Flag::CaseInsensitive));
    }

    fn add(&mut self, chars: u64) {
        self.chars = self.chars.saturating_add(chars.saturating_mul(self.depth));
    }
}

impl ast::Visitor for Folding {
    type Output = u64;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<u64, Self::Err> {
        Ok(if self.ignores_case { self.chars } else { 0 })
    }

    fn visit_pre(&mut self, tree: &Ast) -> Result<(), Self::Err> {
        match tree {
            Ast::Flags(set) => self.flags(&set.flags),
            Ast::Group(group) => {
                if let Some(flags) = group.flags() {
                    self.flags(flags);
                }
            }
            Ast::ClassUnicode(_) => self.chars = self.chars.saturating_add(ALL_CHARS),
            Ast::ClassBracketed(_) => self.depth = 1,
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Self::Err> {
        match item {
            ClassSetItem::Empty(_) | ClassSetItem::Union(_) => {}
            ClassSetItem::Literal(_) => self.add(1),
            ClassSetItem::Range(range) => {
                let (start, end) = (u64::from(u32::from(range.start.c)), u64::from(u32::from(range.end.c)));
                self.add(end.saturating_sub(start) + 1);
            }
            ClassSetItem::Ascii(class) => self.add(if class.negated { ALL_CHARS } else { 128 }),
            ClassSetItem::Perl(class) => self.add(match class.kind {
                _ if class.negated => ALL_CHARS,
                ClassPerlKind::Digit | ClassPerlKind::Space => 1_000,
                ClassPerlKind::Word => WORD_CHARS,
            }),
            ClassSetItem::Unicode(_) => self.add(ALL_CHARS),
            ClassSetItem::Bracketed(class) => {
                if class.negated {
                    self.add(ALL_CHARS);
                }
                self.depth += 1;
            }
        }
        Ok(())
    }

    fn visit_class_set_item_post(&mut self, item: &ClassSetItem) -> Result<(), Self::Err> {
        if let ClassSetItem::Bracketed(_) = item {
            self.depth -= 1;
        }
        Ok(())
    }

    fn visit_class_set_binary_op_pre(&mut self, _: &ast::ClassSetBinaryOp) -> Result<(), Self::Err> {
        self.depth += 1;
        Ok(())
    }

    fn visit_class_set_binary_op_post(&mut self, _: &ast::ClassSetBinaryOp) -> Result<(), Self::Err> {
        self.depth -= 1;
        Ok(())
    }
}
