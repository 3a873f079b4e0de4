//! Days and moments as text, without a time zone.

use std::io::{Result, Write};

const DAY: i64 = 86_400;

/// Writes a day, counted from 1970-01-01, as `2024-02-29`.
pub fn write_day(out: &mut Vec<u8>, day: i64) -> Result<()> {
    let (year, month, day) = civil(day);
    write!(out, "{year:04}-{month:02}-{day:02}")
}

/// Writes a moment, counted in seconds from 1970-01-01, as `2024-02-29 12:00:00`.
pub fn write_second(out: &mut Vec<u8>, second: i64) -> Result<()> {
    write_day(out, second.div_euclid(DAY))?;
    let of_day = second.rem_euclid(DAY);
    write!(out, " {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// Year, month and day, by counting eras of 400 years that begin in March.
fn civil(day: i64) -> (i64, i64, i64) {
    let from_march = day + 719_468;
    let (era, of_era) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_a_calendar_that_counts_on() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for number in 0..60_000 {
            assert_eq!(civil(number), (year, month, day), "{number}");
            let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            let length = match month {
                2 if leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
        let mut text = Vec::new();
        write_second(&mut text, -1).unwrap();
        assert_eq!(text, b"1969-12-31 23:59:59");
    }
}
