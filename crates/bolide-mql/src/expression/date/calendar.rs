//! The calendar: civil dates and times, days, weeks.
//!
//! It is computed here and not by the crate for time zones, because instants of BSON reach beyond the years that the crate knows.

/// Milliseconds of a day.
pub(super) const DAY: i64 = 86_400_000;
/// Milliseconds of an hour.
pub(super) const HOUR: i64 = 3_600_000;
/// Milliseconds of a minute.
pub(super) const MINUTE: i64 = 60_000;

/// A date and a time of day, in some time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::expression) struct Civil {
    pub(in crate::expression) year: i64,
    /// From 1.
    pub(in crate::expression) month: i64,
    /// From 1.
    pub(in crate::expression) day: i64,
    pub(in crate::expression) hour: i64,
    pub(in crate::expression) minute: i64,
    pub(in crate::expression) second: i64,
    pub(in crate::expression) millisecond: i64,
}

impl Civil {
    /// Returns the civil time at a number of milliseconds after the beginning of 1970, both in the same zone.
    pub(in crate::expression) fn at(local: i64) -> Civil {
        let (days, rest) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let (year, month, day) = date_of(days);
        Civil {
            year,
            month,
            day,
            hour: rest / HOUR,
            minute: rest / MINUTE % 60,
            second: rest / 1000 % 60,
            millisecond: rest % 1000,
        }
    }

    /// Days since 1970.
    pub(in crate::expression) fn days(&self) -> i64 {
        days_of(self.year, self.month, self.day)
    }

    /// The day of the week; Sunday is 0.
    pub(in crate::expression) fn weekday(&self) -> i64 {
        weekday(self.days())
    }

    /// The day of the week of ISO 8601, from Monday, 1, to Sunday, 7.
    pub(in crate::expression) fn iso_weekday(&self) -> i64 {
        (self.weekday() + 6) % 7 + 1
    }

    /// The day of the year, from 1.
    pub(in crate::expression) fn day_of_year(&self) -> i64 {
        self.days() - days_of(self.year, 1, 1) + 1
    }

    /// The week of the year: weeks begin on Sunday, days before the first Sunday are in week 0.
    pub(in crate::expression) fn week(&self) -> i64 {
        (self.day_of_year() + 6 - self.weekday()) / 7
    }

    /// Year and week of ISO 8601: weeks begin on Monday, and belong to the year of their Thursday.
    pub(in crate::expression) fn iso_week(&self) -> (i64, i64) {
        let thursday = self.days() + 4 - self.iso_weekday();
        let (year, _, _) = date_of(thursday);
        (year, (thursday - days_of(year, 1, 1)) / 7 + 1)
    }
}

/// The day of the week of a day since 1970, which began on a Thursday; Sunday is 0.
pub(super) fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// The day on which an ISO year begins: the Monday of the week of the 4th of January.
pub(super) fn iso_year_start(year: i64) -> i64 {
    let fourth = days_of(year, 1, 4);
    fourth - (weekday(fourth) + 6) % 7
}

/// Number of days of a month, which counts from 1.
pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970 to a date. Months and days outside of their range count on into other years and months.
pub(super) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // A year that begins in March has the leap day at its end.
    let months = month - 3;
    let year = year + months.div_euclid(12);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * months.rem_euclid(12) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_OF_ERA + day_of_era - DAYS_BEFORE_1970 + day - 1
}

/// Days of 400 years, after which the calendar repeats.
const DAYS_OF_ERA: i64 = 146_097;
/// Days from the 1st of March of the year 0 to 1970.
const DAYS_BEFORE_1970: i64 = 719_468;

/// Year, month and day of a day since 1970.
pub(super) fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days.div_euclid(DAYS_OF_ERA), days.rem_euclid(DAYS_OF_ERA));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}
