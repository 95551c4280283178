//! What the page is made of: sections, and the lines of their tables.

use crate::run::{Outcomes, Run};

/// A site, or a question, with a table of its own.
pub struct Section {
    /// It begins with the letter that the section is asked for by.
    pub title: &'static str,
    /// What its lines read.
    pub runs: &'static [Run],
    pub rows: Vec<Row>,
}

/// A line of the table.
pub struct Row {
    what: &'static str,
    unit: &'static str,
    /// As published; none where the rehearsal has to say it.
    given: Option<f64>,
    figure: fn(&Outcomes) -> Option<f64>,
    /// Why it differs, or what the figure is.
    note: &'static str,
}

/// A figure that is published.
pub const fn given(
    what: &'static str,
    unit: &'static str,
    given: f64,
    figure: fn(&Outcomes) -> Option<f64>,
    note: &'static str,
) -> Row {
    Row {
        what,
        unit,
        given: Some(given),
        figure,
        note,
    }
}

/// A figure that the rehearsal has to say.
pub const fn asked(
    what: &'static str,
    unit: &'static str,
    figure: fn(&Outcomes) -> Option<f64>,
    note: &'static str,
) -> Row {
    Row {
        what,
        unit,
        given: None,
        figure,
        note,
    }
}

impl Section {
    /// Its head and its table; lines whose runs gave nothing are left out.
    pub fn text(&self, outcomes: &Outcomes) -> String {
        let lines: String = self
            .rows
            .iter()
            .filter_map(|row| row.text(outcomes))
            .collect();
        match lines.is_empty() {
            true => String::new(),
            false => format!(
                "\n## {}\n\n| what | published | rehearsed | error | |\n|---|---|---|---|---|\n{lines}",
                self.title
            ),
        }
    }
}

impl Row {
    fn text(&self, outcomes: &Outcomes) -> Option<String> {
        let figure = (self.figure)(outcomes)?;
        let (published, error) = match self.given {
            Some(given) => (
                format!("{given} {}", self.unit),
                format!("{:+.0} %", (figure / given - 1.0) * 100.0),
            ),
            None => ("to predict".to_owned(), String::new()),
        };
        let digits = if figure.abs() >= 100.0 { 0 } else { 2 };
        Some(format!(
            "| {} | {published} | {figure:.digits$} {} | {error} | {} |\n",
            self.what, self.unit, self.note
        ))
    }
}
