//! Turns seconds since 1970 into dates and times of day, UTC.

/// A date and time of day, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Year, month from 1, day from 1.
    pub date: [u64; 3],
    /// Hour, minute, second, each from 0.
    pub time: [u64; 3],
}

/// The date and time of day `unix_s` seconds after 1970 began.
pub fn moment(unix_s: u64) -> Moment {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    // Counted from 1 March of year 0, years have their leap day at the end, and months a
    // pattern of 153 days in five (H. Hinnant, "chrono-compatible low-level date algorithms").
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_since_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months_since_march + 2) / 5 + 1;
    let month = (months_since_march + 2) % 12 + 1;
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    Moment {
        date: [year, month, day],
        time: [second / 3600, second / 60 % 60, second % 60],
    }
}
/// A date and time of day for people.
pub fn utc(unix_s: u64) -> String {
    let Moment {
        date: [year, month, day],
        time: [hour, minute, _],
    } = moment(unix_s);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}
