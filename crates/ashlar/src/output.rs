//! Prints aligned tables for people, and JSON for programs, on standard output.

use crate::client::Client;
use crate::failure::Failure;
use serde::Serialize;
use serde::de::DeserializeOwned;
use server::calendar::{Moment, moment};
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The option `--json`: whether answers are for people or for programs.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Format {
    /// Print JSON, as the API gives it; errors are JSON, too
    #[arg(long)]
    json: bool,
}

/// A success without an answer of the API, as programs read it. Fields are only ever added.
#[derive(Debug, Serialize)]
struct Done<'a> {
    /// For people.
    done: &'a str,
}

/// Which way a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// At the left edge, for words.
    Left,
    /// At the right edge, for numbers.
    Right,
}

/// Rows under a heading.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Table {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// When it hasn't one cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "one cell for each column");
        self.rows.push(cells);
    }

    /// As text, a line for each row below the headings.
    pub fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let heading = self.columns.get(column).map_or(0, |(name, _)| name.len());
            cells
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
                .max(heading)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let heading = self
            .columns
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        let mut text = String::new();
        for row in std::iter::once(&heading).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, width), (_, align)) in row.iter().zip(&widths).zip(&self.columns) {
                match align {
                    Align::Left => line.push_str(&format!("{cell:<width$}  ")),
                    Align::Right => line.push_str(&format!("{cell:>width$}  ")),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

impl Format {
    /// Prints all that there is of a resource.
    ///
    /// # Errors
    /// As [`Client::get`] and [`Format::print`].
    pub fn list<T: Serialize + DeserializeOwned>(
        self,
        client: &Client,
        resource: &[&str],
        table: impl FnOnce(&[T]) -> Table,
    ) -> Result<(), Failure> {
        let all: Vec<T> = client.get(resource)?;
        self.print(&all, |all| table(all))
    }

    /// Prints one of a resource.
    ///
    /// # Errors
    /// As [`Client::get`] and [`Format::print_text`].
    pub fn show<T: Serialize + DeserializeOwned>(
        self,
        client: &Client,
        one: &[&str],
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        self.print_text(&client.get(one)?, text)
    }

    /// Prints `data` as JSON, or as the table that `table` makes of it.
    ///
    /// # Errors
    /// Standard output can't be written to.
    pub fn print<T: Serialize>(
        self,
        data: &T,
        table: impl FnOnce(&T) -> Table,
    ) -> Result<(), Failure> {
        self.print_text(data, |data| table(data).render())
    }

    /// As [`Format::print`], of one piece among many. Whether anybody reads more.
    ///
    /// # Errors
    /// Standard output can't be written to.
    pub fn print_more<T: Serialize>(
        self,
        data: &T,
        table: impl FnOnce(&T) -> Table,
    ) -> Result<bool, Failure> {
        say(&self.text(data, |data| table(data).render())?)
    }

    /// Prints `data` as JSON, or as the lines that `text` makes of it.
    ///
    /// # Errors
    /// Standard output can't be written to.
    pub fn print_text<T: Serialize>(
        self,
        data: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        print(&self.text(data, text)?)
    }

    fn text<T: Serialize>(
        self,
        data: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<String, Failure> {
        if !self.json {
            return Ok(text(data));
        }
        match serde_json::to_string_pretty(data) {
            Ok(json) => Ok(format!("{json}\n")),
            Err(error) => Err(Failure::Failed(format!("can't write JSON: {error}"))),
        }
    }

    /// Whether programs read it.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Prints a word of success where the API gives no answer. Programs get it as `done`.
    ///
    /// # Errors
    /// Standard output can't be written to.
    pub fn done(self, what: &str) -> Result<(), Failure> {
        self.print_text(&Done { done: what }, |done| format!("{}\n", done.done))
    }

    /// Prints `text` for people, before the answer. Programs get the answer alone.
    ///
    /// # Errors
    /// Standard output can't be written to.
    pub fn before_answer(self, text: &str) -> Result<(), Failure> {
        match self.json {
            true => Ok(()),
            false => print(text),
        }
    }
}

/// Writes `text` to standard output. A reader that has seen enough (`| head`) is
/// no failure.
///
/// # Errors
/// Standard output can't be written to.
pub fn print(text: &str) -> Result<(), Failure> {
    say(text).map(drop)
}

/// As [`print`]; whether anybody reads more.
fn say(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Failed(format!(
            "can't write to standard output: {error}"
        ))),
    }
}

/// Lines of names and values, aligned.
pub fn pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    pairs
        .iter()
        .map(|(name, value)| format!("{name:<width$}  {value}\n"))
        .collect()
}

/// A span of time for people: the two largest units.
pub fn span(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest} s"),
        (0, 0, _) => format!("{minutes} min {rest} s"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// Seconds since a time that is given in seconds since 1970.
pub fn age_s(since_unix_s: u64) -> u64 {
    let since = UNIX_EPOCH + Duration::from_secs(since_unix_s);
    // A clock that was set back since makes it new.
    SystemTime::now()
        .duration_since(since)
        .map_or(0, |age| age.as_secs())
}

/// A time for people, given in seconds since 1970: date and time of day, UTC.
pub fn utc(unix_s: u64) -> String {
    let Moment {
        date: [year, month, day],
        time: [hour, minute, second],
    } = moment(unix_s);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// A share in percent.
pub fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&[("NAME", Align::Left), ("SIZE", Align::Right)]);
        table.row(vec!["a".into(), "4 GiB".into()]);
        table.row(vec!["longer".into(), "50 MiB".into()]);
        assert_eq!(
            table.render(),
            "NAME      SIZE\na        4 GiB\nlonger  50 MiB\n"
        );
    }

    #[test]
    fn times_are_of_the_calendar() {
        for (unix_s, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_709_251_199, "2024-02-29 23:59:59"),
            (1_709_251_200, "2024-03-01 00:00:00"),
            (1_767_225_599, "2025-12-31 23:59:59"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(utc(unix_s), text);
        }
    }

    #[test]
    fn spans_and_shares_are_short() {
        assert_eq!(span(59), "59 s");
        assert_eq!(span(61), "1 min 1 s");
        assert_eq!(span(3600), "1 h 0 min");
        assert_eq!(span(200_000), "2 d 7 h");
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(0, 0), "-");
    }
}
