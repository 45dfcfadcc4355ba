//! Trigonometric and hyperbolic functions of decimals.
//!
//! They are computed with 75 digits, by series after the argument was made small, and rounded to the 34 digits of a decimal. Angles beyond
//! [`ANGLE_LIMIT`] and what is not finite are left to the caller.

use dec::{Context, Decimal128};

use crate::value::number::Decimal;

/// Units of three digits of a number in a computation.
const UNITS: usize = 25;

/// The exponent of ten of the first angle that is too large: its whole turns have too many digits.
const ANGLE_LIMIT: i32 = 30;

/// Below ten to this power three terms of a series are exact.
const SMALL: i32 = -12;

const PI: &str = "3.14159265358979323846264338327950288419716939937510582097494459230781640629";

type Wide = dec::Decimal<UNITS>;

/// A function of one angle or number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Sine,
    Cosine,
    Tangent,
    ArcSine,
    ArcCosine,
    ArcTangent,
    HyperbolicSine,
    HyperbolicCosine,
    HyperbolicTangent,
    AreaSine,
    AreaCosine,
    AreaTangent,
}

/// Computes a function of a number in its domain; `None` if it is beyond what is computed here.
pub(super) fn evaluate(function: Function, value: Decimal) -> Option<Decimal> {
    let value = Decimal128::from(value);
    if !value.is_finite() {
        return None;
    }
    let mut math = Math::new();
    let x = Wide::from(value);
    let is_large = math.power_of_ten(x) >= ANGLE_LIMIT;
    let result = match function {
        Function::Sine | Function::Cosine | Function::Tangent if is_large => return None,
        Function::Sine => math.sine_and_cosine(x).0,
        Function::Cosine => math.sine_and_cosine(x).1,
        Function::Tangent => {
            let (sine, cosine) = math.sine_and_cosine(x);
            math.div(sine, cosine)
        }
        Function::ArcSine => math.arc_sine(x),
        Function::ArcCosine => math.arc_cosine(x),
        Function::ArcTangent => math.arc_tangent(x),
        Function::HyperbolicSine => math.hyperbolic_sine(x),
        Function::HyperbolicCosine => math.hyperbolic_cosine(x),
        Function::HyperbolicTangent => math.hyperbolic_tangent(x),
        Function::AreaSine => math.area_sine(x),
        Function::AreaCosine => math.area_cosine(x),
        Function::AreaTangent => math.area_tangent(x),
    };
    Some(math.narrow(result))
}

/// The angle of a point; `None` on an axis or beyond what is computed here.
pub(super) fn arc_tangent_of_two(y: Decimal, x: Decimal) -> Option<Decimal> {
    if y.is_zero() || x.is_zero() || !y.is_finite() || !x.is_finite() {
        return None;
    }
    let mut math = Math::new();
    let (y, x) = (Wide::from(Decimal128::from(y)), Wide::from(Decimal128::from(x)));
    let quotient = math.div(y, x);
    let mut angle = math.arc_tangent(quotient);
    if x.is_negative() {
        let pi = math.pi();
        angle = if y.is_negative() {
            math.sub(angle, pi)
        } else {
            math.add(angle, pi)
        };
    }
    Some(math.narrow(angle))
}

/// Arithmetic with 75 digits.
struct Math {
    context: Context<Wide>,
}

impl Math {
    fn new() -> Math {
        let mut context = Context::<Wide>::default();
        // Both limits are inside of those of the library, so the results are not errors.
        let _ = context.set_max_exponent(20_000);
        let _ = context.set_min_exponent(-20_000);
        Math { context }
    }

    fn narrow(&mut self, value: Wide) -> Decimal {
        let mut value = value;
        self.context.reduce(&mut value);
        Decimal::from(Context::<Decimal128>::default().from_decimal(&value))
    }

    fn number(&mut self, value: i32) -> Wide {
        self.context.from_i32(value)
    }

    fn pi(&mut self) -> Wide {
        self.context.parse(PI).unwrap_or_default()
    }

    fn add(&mut self, mut a: Wide, b: Wide) -> Wide {
        self.context.add(&mut a, &b);
        a
    }

    fn sub(&mut self, mut a: Wide, b: Wide) -> Wide {
        self.context.sub(&mut a, &b);
        a
    }

    fn mul(&mut self, mut a: Wide, b: Wide) -> Wide {
        self.context.mul(&mut a, &b);
        a
    }

    fn div(&mut self, mut a: Wide, b: Wide) -> Wide {
        self.context.div(&mut a, &b);
        a
    }

    fn sqrt(&mut self, mut a: Wide) -> Wide {
        self.context.sqrt(&mut a);
        a
    }

    fn exp(&mut self, mut a: Wide) -> Wide {
        self.context.exp(&mut a);
        a
    }

    fn ln(&mut self, mut a: Wide) -> Wide {
        self.context.ln(&mut a);
        a
    }

    /// The power of ten of the first digit.
    fn power_of_ten(&self, value: Wide) -> i32 {
        if value.is_zero() {
            return i32::MIN;
        }
        value.exponent().saturating_add(value.digits().cast_signed() - 1)
    }

    /// `x + a·x³ + b·x⁵`, the coefficients as fractions.
    fn small(&mut self, x: Wide, a: (i32, i32), b: (i32, i32)) -> Wide {
        let square = self.mul(x, x);
        let mut power = x;
        let mut sum = x;
        for (numerator, denominator) in [a, b] {
            power = self.mul(power, square);
            let numerator = self.number(numerator);
            let denominator = self.number(denominator);
            let term = self.mul(power, numerator);
            let term = self.div(term, denominator);
            sum = self.add(sum, term);
        }
        sum
    }

    /// Sums a series whose terms follow from the one before, until they change nothing.
    fn series(&mut self, first: Wide, mut next: impl FnMut(&mut Math, Wide, i32) -> Wide) -> Wide {
        const TERMS: i32 = 100;
        let (mut sum, mut term) = (first, first);
        for index in 1..TERMS {
            term = next(self, term, index);
            if term.is_zero() || self.power_of_ten(term) < self.power_of_ten(sum).saturating_sub(74) {
                break;
            }
            sum = self.add(sum, term);
        }
        sum
    }

    /// The angle is brought to at most π/4 by whole quarters of a turn.
    fn sine_and_cosine(&mut self, x: Wide) -> (Wide, Wide) {
        let (pi, two) = (self.pi(), self.number(2));
        let quarter = self.div(pi, two);
        let mut turns = self.div(x, quarter);
        self.context.round(&mut turns);
        let whole = self.mul(turns, quarter);
        let rest = self.sub(x, whole);
        let square = self.mul(rest, rest);
        let term = |math: &mut Math, term: Wide, factors: i32| {
            let divisor = math.number(-factors);
            let product = math.mul(term, square);
            math.div(product, divisor)
        };
        let sine = self.series(rest, |math, last, index| term(math, last, 2 * index * (2 * index + 1)));
        let one = self.number(1);
        let cosine = self.series(one, |math, last, index| term(math, last, (2 * index - 1) * 2 * index));
        let four = self.number(4);
        let mut quarters = turns;
        self.context.rem(&mut quarters, &four);
        // The conversion fails if an earlier operation of its context was inexact.
        let quarters = Context::<Wide>::default()
            .try_into_i32(quarters)
            .unwrap_or(0)
            .rem_euclid(4);
        let zero = self.number(0);
        let (minus_sine, minus_cosine) = (self.sub(zero, sine), self.sub(zero, cosine));
        match quarters {
            0 => (sine, cosine),
            1 => (cosine, minus_sine),
            2 => (minus_sine, minus_cosine),
            _ => (minus_cosine, sine),
        }
    }

    /// Halving the angle four times leaves a quick series.
    fn arc_tangent(&mut self, x: Wide) -> Wide {
        const HALVINGS: usize = 4;
        let one = self.number(1);
        let mut small = x;
        for _ in 0..HALVINGS {
            // x / (1 + √(1 + x²)) is the tangent of half the angle.
            let square = self.mul(small, small);
            let sum = self.add(one, square);
            let root = self.sqrt(sum);
            let divisor = self.add(one, root);
            small = self.div(small, divisor);
        }
        let square = self.mul(small, small);
        let mut power = small;
        let sum = self.series(small, |math, _, index| {
            let zero = math.number(0);
            let product = math.mul(power, square);
            power = math.sub(zero, product);
            let divisor = math.number(2 * index + 1);
            math.div(power, divisor)
        });
        let factor = self.number(1 << HALVINGS);
        self.mul(sum, factor)
    }

    fn arc_sine(&mut self, x: Wide) -> Wide {
        // x / (1 + √(1 − x²)) is the tangent of half the angle.
        let (one, two) = (self.number(1), self.number(2));
        let square = self.mul(x, x);
        let rest = self.sub(one, square);
        let root = self.sqrt(rest);
        let divisor = self.add(one, root);
        let half = self.div(x, divisor);
        let angle = self.arc_tangent(half);
        self.mul(angle, two)
    }

    fn arc_cosine(&mut self, x: Wide) -> Wide {
        let (one, two) = (self.number(1), self.number(2));
        let above = self.add(one, x);
        if above.is_zero() {
            return self.pi();
        }
        let below = self.sub(one, x);
        let quotient = self.div(below, above);
        let tangent = self.sqrt(quotient);
        let half = self.arc_tangent(tangent);
        self.mul(half, two)
    }

    /// `eˣ` and `e⁻ˣ`.
    fn exponentials(&mut self, x: Wide) -> (Wide, Wide) {
        let zero = self.number(0);
        let minus = self.sub(zero, x);
        (self.exp(x), self.exp(minus))
    }

    fn hyperbolic_sine(&mut self, x: Wide) -> Wide {
        if self.power_of_ten(x) < SMALL {
            return self.small(x, (1, 6), (1, 120));
        }
        let two = self.number(2);
        let (up, down) = self.exponentials(x);
        let difference = self.sub(up, down);
        self.div(difference, two)
    }

    fn hyperbolic_cosine(&mut self, x: Wide) -> Wide {
        let two = self.number(2);
        let (up, down) = self.exponentials(x);
        let sum = self.add(up, down);
        self.div(sum, two)
    }

    fn hyperbolic_tangent(&mut self, x: Wide) -> Wide {
        // Beyond 100 the distance to 1 has more zeros than there are digits.
        if self.power_of_ten(x) >= 2 {
            return self.number(if x.is_negative() { -1 } else { 1 });
        }
        let (sine, cosine) = (self.hyperbolic_sine(x), self.hyperbolic_cosine(x));
        self.div(sine, cosine)
    }

    fn area_sine(&mut self, x: Wide) -> Wide {
        if self.power_of_ten(x) < SMALL {
            return self.small(x, (-1, 6), (3, 40));
        }
        let (zero, one) = (self.number(0), self.number(1));
        let magnitude = if x.is_negative() { self.sub(zero, x) } else { x };
        let square = self.mul(x, x);
        let sum = self.add(square, one);
        let root = self.sqrt(sum);
        let sum = self.add(magnitude, root);
        let area = self.ln(sum);
        if x.is_negative() { self.sub(zero, area) } else { area }
    }

    fn area_cosine(&mut self, x: Wide) -> Wide {
        let one = self.number(1);
        let square = self.mul(x, x);
        let rest = self.sub(square, one);
        let root = self.sqrt(rest);
        let sum = self.add(x, root);
        self.ln(sum)
    }

    fn area_tangent(&mut self, x: Wide) -> Wide {
        if self.power_of_ten(x) < SMALL {
            return self.small(x, (1, 3), (1, 5));
        }
        let (one, two) = (self.number(1), self.number(2));
        let (above, below) = (self.add(one, x), self.sub(one, x));
        let quotient = self.div(above, below);
        let logarithm = self.ln(quotient);
        self.div(logarithm, two)
    }
}
