//! The parts of the page: sections, and the lines of their tables.

use super::run::{Outcomes, Run};

/// A site, or a question, with a table of its own.
pub struct Section {
    /// It begins with the letter that the section is asked for by.
    pub title: &'static str,
    /// What its lines read.
    pub runs: &'static [Run],
    pub rows: Vec<Row>,
}

/// Reads a figure; none where its run gave nothing.
type Figure = Box<dyn Fn(&Outcomes) -> Option<f64>>;

/// A line of the table.
pub struct Row {
    what: String,
    unit: &'static str,
    /// As published; none where the rehearsal has to say it.
    given: Option<f64>,
    figure: Figure,
    /// Why it differs, or what the figure is.
    note: &'static str,
}

/// A figure that is published.
pub fn given(
    what: impl Into<String>,
    unit: &'static str,
    given: f64,
    figure: impl Fn(&Outcomes) -> Option<f64> + 'static,
    note: &'static str,
) -> Row {
    Row {
        what: what.into(),
        unit,
        given: Some(given),
        figure: Box::new(figure),
        note,
    }
}

/// A figure that the rehearsal has to say.
pub fn asked(
    what: impl Into<String>,
    unit: &'static str,
    figure: impl Fn(&Outcomes) -> Option<f64> + 'static,
    note: &'static str,
) -> Row {
    Row {
        given: None,
        ..given(what, unit, 0.0, figure, note)
    }
}

impl Section {
    /// Its head and its table.
    pub fn text(&self, outcomes: &Outcomes) -> String {
        let lines: String = self.rows.iter().map(|row| row.text(outcomes)).collect();
        format!(
            "\n## {}\n\n| what | published | rehearsed | error | |\n|---|---|---|---|---|\n{lines}",
            self.title
        )
    }
}

/// A figure that is published and that nothing here says; the note tells why.
pub fn without_figure(
    what: impl Into<String>,
    unit: &'static str,
    given: f64,
    note: &'static str,
) -> Row {
    self::given(what, unit, given, |_| None, note)
}

impl Row {
    fn text(&self, outcomes: &Outcomes) -> String {
        let figure = (self.figure)(outcomes);
        let published = match self.given {
            Some(given) => format!("{given} {}", self.unit),
            None => "to predict".to_owned(),
        };
        let rehearsed = figure.map_or("–".to_owned(), |figure| {
            let digits = if figure.abs() >= 100.0 { 0 } else { 2 };
            format!("{figure:.digits$} {}", self.unit)
        });
        let error = self.given.zip(figure).map_or(String::new(), error);
        format!(
            "| {} | {} | {} | {error} | {} |\n",
            self.what,
            published.trim_end(),
            rehearsed.trim_end(),
            self.note
        )
    }
}

/// Of a figure against what is given; of nothing there is no percentage.
fn error((given, figure): (f64, f64)) -> String {
    match given == 0.0 {
        true if figure == 0.0 => "none".to_owned(),
        true => String::new(),
        false => format!("{:+.0} %", (figure / given - 1.0) * 100.0),
    }
}
