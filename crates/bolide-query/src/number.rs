//! Numbers: IEEE doubles, and 64-bit integers where the value was one (cosmos-sql §1).

use std::cmp::Ordering;

/// A number of the query language.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// A literal or stored integer within 64 bits.
    Int(i64),
    /// Everything else, non-finite values included.
    Float(f64),
}

/// Doubles from this value on are too large for `i64`.
const INT_LIMIT: f64 = 9_223_372_036_854_775_808.0;

impl Number {
    /// The nearest double.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    /// The number as an integer, if it has no fraction and fits 64 bits.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Number::Int(value) => Some(value),
            Number::Float(value) if value.fract() == 0.0 && (-INT_LIMIT..INT_LIMIT).contains(&value) => {
                Some(value as i64)
            }
            Number::Float(_) => None,
        }
    }

    /// Parses the text of a JSON number.
    pub fn from_json(text: &str) -> Option<Number> {
        if !text.bytes().any(|b| matches!(b, b'.' | b'e' | b'E'))
            && let Ok(value) = text.parse()
        {
            return Some(Number::Int(value));
        }
        text.parse().ok().map(Number::Float)
    }

    /// Order by value; `None` when one is NaN.
    pub fn partial_order(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
            (Number::Int(a), Number::Float(b)) => int_to_float(a, b),
            (Number::Float(a), Number::Int(b)) => int_to_float(b, a).map(Ordering::reverse),
        }
    }

    /// A total order, with NaN below every other number, so that sorting is stable.
    pub fn total_order(self, other: Number) -> Ordering {
        self.partial_order(other)
            .unwrap_or_else(|| other.as_f64().is_nan().cmp(&self.as_f64().is_nan()))
    }

    /// Appends the JSON text; non-finite values become strings (cosmos-sql §1).
    pub fn write_json(self, out: &mut Vec<u8>) {
        match self {
            Number::Float(value) if !value.is_finite() => {
                out.push(b'"');
                self.write_plain(out);
                out.push(b'"');
            }
            _ => self.write_plain(out),
        }
    }

    /// Appends the shortest text that reads back as the same number.
    pub fn write_plain(self, out: &mut Vec<u8>) {
        use std::io::Write;
        let written = match self {
            Number::Int(value) => out.write_all(itoa::Buffer::new().format(value).as_bytes()),
            Number::Float(value) if value.is_nan() => write!(out, "NaN"),
            Number::Float(value) if value.is_infinite() => {
                write!(out, "{}", if value > 0.0 { "Infinity" } else { "-Infinity" })
            }
            Number::Float(0.0) => write!(out, "0"),
            Number::Float(value) if value.fract() == 0.0 && value.abs() < 1e21 => write!(out, "{value:.0}"),
            Number::Float(value) => write!(out, "{value:?}"),
        };
        written.expect("writing to a Vec does not fail");
    }
}

/// Compares without rounding the integer to a double.
fn int_to_float(int: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float >= INT_LIMIT {
        return Some(Ordering::Less);
    }
    if float < -INT_LIMIT {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    Some(
        int.cmp(&(whole as i64))
            .then_with(|| 0.0_f64.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal)),
    )
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.partial_order(*other) == Some(Ordering::Equal)
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Number {
        Number::Float(value)
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number::Int(value)
    }
}
