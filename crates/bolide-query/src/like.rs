//! LIKE patterns (cosmos-sql §18.3.2).

use crate::fuel::Fuel;
use crate::memory::ALLOCATION_BYTES;

/// One piece of a pattern.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    /// Exactly this character.
    Literal(char),
    /// `_`
    One,
    /// `%`
    Any,
    /// `[a-f]`, `[^abc]`
    Set { negated: bool, ranges: Vec<(char, char)> },
}

/// A compiled pattern; it matches whole strings, case-sensitively.
#[derive(Debug, Clone, PartialEq)]
pub struct Like {
    pieces: Vec<Piece>,
}

impl Like {
    /// Units to compile a pattern.
    pub fn units(pattern: &str) -> u64 {
        pattern.len() as u64 * 20
    }

    /// Maximum memory of a compiled pattern, including what is used to compile it.
    pub fn bytes(pattern: &str) -> usize {
        ALLOCATION_BYTES + pattern.len() * (size_of::<Piece>() + size_of::<char>())
    }

    /// Compiles a pattern. The character after `escape` is literal.
    pub fn new(pattern: &str, escape: Option<char>) -> Like {
        let chars: Vec<char> = pattern.chars().collect();
        let mut pieces: Vec<Piece> = Vec::with_capacity(chars.len());
        // No set is closed after the last `]`; found once instead of for each `[`.
        let last_close = chars.iter().rposition(|c| *c == ']').unwrap_or(0);
        let mut at = 0;
        while at < chars.len() {
            let c = chars[at];
            at += 1;
            let piece = match c {
                _ if Some(c) == escape && at < chars.len() => {
                    at += 1;
                    Piece::Literal(chars[at - 1])
                }
                '%' if pieces.last() == Some(&Piece::Any) => continue,
                '%' => Piece::Any,
                '_' => Piece::One,
                '[' if at > last_close => Piece::Literal('['),
                '[' => match set(&chars[at..]) {
                    Some((piece, len)) => {
                        at += len;
                        piece
                    }
                    None => Piece::Literal('['),
                },
                _ => Piece::Literal(c),
            };
            pieces.push(piece);
        }
        Like { pieces }
    }

    /// The only string this pattern matches, when it has no wildcards.
    pub fn as_literal(&self) -> Option<String> {
        self.pieces
            .iter()
            .map(|piece| if let Piece::Literal(c) = piece { Some(*c) } else { None })
            .collect()
    }

    /// The literal characters before the first wildcard.
    pub fn literal_prefix(&self) -> String {
        let literal = |piece: &Piece| if let Piece::Literal(c) = piece { Some(*c) } else { None };
        self.pieces.iter().map_while(literal).collect()
    }

    /// The longest run of literal characters, which every text that matches contains.
    pub fn longest_literal(&self) -> String {
        let runs = self.pieces.split(|piece| !matches!(piece, Piece::Literal(_)));
        let text = |run: &[Piece]| -> String {
            let literal = |piece: &Piece| if let Piece::Literal(c) = piece { Some(*c) } else { None };
            run.iter().filter_map(literal).collect()
        };
        runs.max_by_key(|run| run.len()).map(text).unwrap_or_default()
    }

    /// Whether the whole text matches.
    ///
    /// Greedy, with backtracking only to the last `%`, so the time is at most pattern × text. Also `false` when fuel is refused.
    pub fn matches(&self, text: &str, fuel: &Fuel) -> bool {
        let mut rest = text.chars();
        let mut at = 0;
        // After a `%`: the next piece of the pattern, and the text from which to try it again.
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            if let Some(Piece::Any) = self.pieces.get(at) {
                at += 1;
                retry = Some((at, rest.clone()));
                continue;
            }
            let mut after = rest.clone();
            let (piece, next) = (self.pieces.get(at), after.next());
            if !fuel.spend(piece.map_or(1, Piece::units)) {
                return false;
            }
            match (piece, next) {
                (None, None) => return true,
                (Some(piece), Some(c)) if piece.accepts(c) => {
                    rest = after;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            match &mut retry {
                None => return false,
                Some((resume, from)) => {
                    if from.next().is_none() {
                        return false;
                    }
                    at = *resume;
                    rest = from.clone();
                }
            }
        }
    }
}

impl Piece {
    /// Cost of matching a character.
    fn units(&self) -> u64 {
        match self {
            Piece::Set { ranges, .. } => 4 + ranges.len() as u64,
            Piece::Literal(_) | Piece::One | Piece::Any => 4,
        }
    }

    fn accepts(&self, c: char) -> bool {
        match self {
            Piece::Literal(own) => *own == c,
            Piece::One | Piece::Any => true,
            Piece::Set { negated, ranges } => ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated,
        }
    }
}

/// Parses a set after its `[`; returns the piece and the number of characters, or `None` if the set is not closed.
fn set(chars: &[char]) -> Option<(Piece, usize)> {
    let negated = chars.first() == Some(&'^');
    let start = usize::from(negated);
    // A `]` directly after the opening is part of the set only if another `]` closes it.
    let close = start + chars.get(start..)?.iter().position(|c| *c == ']')?;
    let body = &chars[start..close];
    if body.is_empty() {
        return None;
    }
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < body.len() {
        if at + 2 < body.len() && body[at + 1] == '-' {
            ranges.push((body[at], body[at + 2]));
            at += 3;
        } else {
            ranges.push((body[at], body[at]));
            at += 1;
        }
    }
    Some((Piece::Set { negated, ranges }, close + 1))
}
