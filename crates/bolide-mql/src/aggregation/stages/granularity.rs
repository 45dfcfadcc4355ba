//! The series of preferred numbers by which `$bucketAuto` rounds boundaries.

use crate::error::{Error, Result};
use crate::value::number::{Decimal, Number};

/// A series of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Granularity {
    /// Powers of two.
    PowersOfTwo,
    /// These numbers times the powers of ten.
    Decades(&'static [f64]),
}

const R5: &[f64] = &[10.0, 16.0, 25.0, 40.0, 63.0];
const R10: &[f64] = &[100.0, 125.0, 160.0, 200.0, 250.0, 315.0, 400.0, 500.0, 630.0, 800.0];
const R20: &[f64] = &[
    100.0, 112.0, 125.0, 140.0, 160.0, 180.0, 200.0, 224.0, 250.0, 280.0, 315.0, 355.0, 400.0, 450.0, 500.0, 560.0,
    630.0, 710.0, 800.0, 900.0,
];
const R40: &[f64] = &[
    100.0, 106.0, 112.0, 118.0, 125.0, 132.0, 140.0, 150.0, 160.0, 170.0, 180.0, 190.0, 200.0, 212.0, 224.0, 236.0,
    250.0, 265.0, 280.0, 300.0, 315.0, 335.0, 355.0, 375.0, 400.0, 425.0, 450.0, 475.0, 500.0, 530.0, 560.0, 600.0,
    630.0, 670.0, 710.0, 750.0, 800.0, 850.0, 900.0, 950.0,
];
const R80: &[f64] = &[
    103.0, 109.0, 115.0, 122.0, 128.0, 136.0, 145.0, 155.0, 165.0, 175.0, 185.0, 195.0, 206.0, 218.0, 230.0, 243.0,
    258.0, 272.0, 290.0, 307.0, 325.0, 345.0, 365.0, 387.0, 412.0, 437.0, 462.0, 487.0, 515.0, 545.0, 575.0, 615.0,
    650.0, 690.0, 730.0, 775.0, 825.0, 875.0, 925.0, 975.0,
];
const ONE_TWO_FIVE: &[f64] = &[10.0, 20.0, 50.0];
const E6: &[f64] = &[10.0, 15.0, 22.0, 33.0, 47.0, 68.0];
const E12: &[f64] = &[10.0, 12.0, 15.0, 18.0, 22.0, 27.0, 33.0, 39.0, 47.0, 56.0, 68.0, 82.0];
const E24: &[f64] = &[
    10.0, 11.0, 12.0, 13.0, 15.0, 16.0, 18.0, 20.0, 22.0, 24.0, 27.0, 30.0, 33.0, 36.0, 39.0, 43.0, 47.0, 51.0, 56.0,
    62.0, 68.0, 75.0, 82.0, 91.0,
];
const E48: &[f64] = &[
    100.0, 105.0, 110.0, 115.0, 121.0, 127.0, 133.0, 140.0, 147.0, 154.0, 162.0, 169.0, 178.0, 187.0, 196.0, 205.0,
    215.0, 226.0, 237.0, 249.0, 261.0, 274.0, 287.0, 301.0, 316.0, 332.0, 348.0, 365.0, 383.0, 402.0, 422.0, 442.0,
    464.0, 487.0, 511.0, 536.0, 562.0, 590.0, 619.0, 649.0, 681.0, 715.0, 750.0, 787.0, 825.0, 866.0, 909.0, 953.0,
];
const E96: &[f64] = &[
    100.0, 102.0, 105.0, 107.0, 110.0, 113.0, 115.0, 118.0, 121.0, 124.0, 127.0, 130.0, 133.0, 137.0, 140.0, 143.0,
    147.0, 150.0, 154.0, 158.0, 162.0, 165.0, 169.0, 174.0, 178.0, 182.0, 187.0, 191.0, 196.0, 200.0, 205.0, 210.0,
    215.0, 221.0, 226.0, 232.0, 237.0, 243.0, 249.0, 255.0, 261.0, 267.0, 274.0, 280.0, 287.0, 294.0, 301.0, 309.0,
    316.0, 324.0, 332.0, 340.0, 348.0, 357.0, 365.0, 374.0, 383.0, 392.0, 402.0, 412.0, 422.0, 432.0, 442.0, 453.0,
    464.0, 475.0, 487.0, 499.0, 511.0, 523.0, 536.0, 549.0, 562.0, 576.0, 590.0, 604.0, 619.0, 634.0, 649.0, 665.0,
    681.0, 698.0, 715.0, 732.0, 750.0, 768.0, 787.0, 806.0, 825.0, 845.0, 866.0, 887.0, 909.0, 931.0, 953.0, 976.0,
];
const E192: &[f64] = &[
    100.0, 101.0, 102.0, 104.0, 105.0, 106.0, 107.0, 109.0, 110.0, 111.0, 113.0, 114.0, 115.0, 117.0, 118.0, 120.0,
    121.0, 123.0, 124.0, 126.0, 127.0, 129.0, 130.0, 132.0, 133.0, 135.0, 137.0, 138.0, 140.0, 142.0, 143.0, 145.0,
    147.0, 149.0, 150.0, 152.0, 154.0, 156.0, 158.0, 160.0, 162.0, 164.0, 165.0, 167.0, 169.0, 172.0, 174.0, 176.0,
    178.0, 180.0, 182.0, 184.0, 187.0, 189.0, 191.0, 193.0, 196.0, 198.0, 200.0, 203.0, 205.0, 208.0, 210.0, 213.0,
    215.0, 218.0, 221.0, 223.0, 226.0, 229.0, 232.0, 234.0, 237.0, 240.0, 243.0, 246.0, 249.0, 252.0, 255.0, 258.0,
    261.0, 264.0, 267.0, 271.0, 274.0, 277.0, 280.0, 284.0, 287.0, 291.0, 294.0, 298.0, 301.0, 305.0, 309.0, 312.0,
    316.0, 320.0, 324.0, 328.0, 332.0, 336.0, 340.0, 344.0, 348.0, 352.0, 357.0, 361.0, 365.0, 370.0, 374.0, 379.0,
    383.0, 388.0, 392.0, 397.0, 402.0, 407.0, 412.0, 417.0, 422.0, 427.0, 432.0, 437.0, 442.0, 448.0, 453.0, 459.0,
    464.0, 470.0, 475.0, 481.0, 487.0, 493.0, 499.0, 505.0, 511.0, 517.0, 523.0, 530.0, 536.0, 542.0, 549.0, 556.0,
    562.0, 569.0, 576.0, 583.0, 590.0, 597.0, 604.0, 612.0, 619.0, 626.0, 634.0, 642.0, 649.0, 657.0, 665.0, 673.0,
    681.0, 690.0, 698.0, 706.0, 715.0, 723.0, 732.0, 741.0, 750.0, 759.0, 768.0, 777.0, 787.0, 796.0, 806.0, 816.0,
    825.0, 835.0, 845.0, 856.0, 866.0, 876.0, 887.0, 898.0, 909.0, 920.0, 931.0, 942.0, 953.0, 965.0, 976.0, 988.0,
];

impl Granularity {
    /// Returns the series of a name.
    ///
    /// # Errors
    /// 40257 if there is none.
    pub(super) fn parse(name: &str) -> Result<Granularity> {
        let series = match name {
            "POWERSOF2" => return Ok(Granularity::PowersOfTwo),
            "R5" => R5,
            "R10" => R10,
            "R20" => R20,
            "R40" => R40,
            "R80" => R80,
            "1-2-5" => ONE_TWO_FIVE,
            "E6" => E6,
            "E12" => E12,
            "E24" => E24,
            "E48" => E48,
            "E96" => E96,
            "E192" => E192,
            _ => return Err(Error::new(40257, format!("Unknown rounding granularity '{name}'"))),
        };
        Ok(Granularity::Decades(series))
    }

    /// Returns the smallest number of the series above a number.
    pub(super) fn round_up(self, number: Number) -> Number {
        self.round(number, true)
    }

    /// Returns the largest number of the series below a number.
    pub(super) fn round_down(self, number: Number) -> Number {
        self.round(number, false)
    }

    /// Rounds away from the number itself; zero, infinity and NaN stay. A decimal gives a decimal, the others doubles, whole ones of
    /// powers of two integers.
    fn round(self, number: Number, is_up: bool) -> Number {
        let value = number.to_f64();
        if value == 0.0 || !value.is_finite() {
            return number;
        }
        let rounded = match self {
            Granularity::PowersOfTwo => round_to_power(value, is_up),
            Granularity::Decades(series) => round_in_series(value, series, is_up),
        };
        match (self, number) {
            (_, Number::Decimal(_)) => Number::Decimal(Decimal::from_f64(rounded)),
            (Granularity::PowersOfTwo, Number::Int32(_) | Number::Int64(_)) => whole(rounded),
            _ => Number::Double(rounded),
        }
    }
}

/// Returns a whole double as an integer.
fn whole(value: f64) -> Number {
    match Number::Double(value).whole() {
        Some(whole) => i32::try_from(whole).map_or(Number::Int64(whole), Number::Int32),
        None => Number::Double(value),
    }
}

fn round_to_power(value: f64, is_up: bool) -> f64 {
    let mut power = value.log2().floor().exp2();
    // The logarithm may be off by one.
    while power > value {
        power /= 2.0;
    }
    while power * 2.0 <= value {
        power *= 2.0;
    }
    match is_up {
        true => power * 2.0,
        false if power == value => power / 2.0,
        false => power,
    }
}

fn round_in_series(value: f64, series: &[f64], is_up: bool) -> f64 {
    let (Some(first), Some(last)) = (series.first(), series.last()) else {
        return value;
    };
    // The factor brings the value between the first number of the series and ten times that.
    let mut exponent = (value / first).log10().floor();
    let scaled = |exponent: f64, number: f64| match exponent < 0.0 {
        true => number / 10f64.powf(-exponent),
        false => number * 10f64.powf(exponent),
    };
    if scaled(exponent, *first) > value {
        exponent -= 1.0;
    } else if scaled(exponent + 1.0, *first) <= value {
        exponent += 1.0;
    }
    if is_up {
        let above = series
            .iter()
            .map(|number| scaled(exponent, *number))
            .find(|number| *number > value);
        return above.unwrap_or_else(|| scaled(exponent + 1.0, *first));
    }
    let below = series
        .iter()
        .rev()
        .map(|number| scaled(exponent, *number))
        .find(|number| *number < value);
    below.unwrap_or_else(|| scaled(exponent - 1.0, *last))
}
