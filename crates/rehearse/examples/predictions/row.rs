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

/// What is published of a figure, and so what a rehearsal of it is worth.
#[derive(Clone, Copy, PartialEq)]
enum Published {
    /// The figure: its error counts.
    Figure(f64),
    /// The figure, which a rehearsal gives back because it, or what it follows from, was put in: a rule, an
    /// identity, a datasheet.
    Restated(f64),
    /// That it lies between two figures.
    Between(f64, f64),
    /// Nothing.
    ToPredict,
}

/// A line of the table.
pub struct Row {
    what: String,
    unit: &'static str,
    published: Published,
    figure: Figure,
    /// The figure at both ends of what is assumed, where nothing is published.
    ends: Option<(Figure, Figure)>,
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
        published: Published::Figure(given),
        figure: Box::new(figure),
        ends: None,
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
        published: Published::ToPredict,
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

    /// The errors of its predictions, by their size, with the lines that they are of.
    pub fn errors(&self, outcomes: &Outcomes) -> Vec<(f64, &str)> {
        let mut errors: Vec<(f64, &str)> = self
            .rows
            .iter()
            .filter_map(|row| Some((row.error(outcomes)?, row.what.as_str())))
            .collect();
        errors.sort_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
        errors
    }

    /// How many of its inequalities are met, and how many there are.
    pub fn met(&self, outcomes: &Outcomes) -> (usize, usize) {
        let met: Vec<bool> = self
            .rows
            .iter()
            .filter_map(|row| row.is_met(outcomes))
            .collect();
        (met.iter().filter(|is_met| **is_met).count(), met.len())
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
    /// A rehearsal gives it back because it was put in: it is no prediction.
    pub fn restated(mut self) -> Row {
        if let Published::Figure(given) = self.published {
            self.published = Published::Restated(given);
        }
        self
    }

    /// Given is that it lies between two figures.
    pub fn between(self, low: f64, high: f64) -> Row {
        Row {
            published: Published::Between(low, high),
            ..self
        }
    }

    /// What it is at both ends of something that is assumed.
    pub fn over(
        mut self,
        low: impl Fn(&Outcomes) -> Option<f64> + 'static,
        high: impl Fn(&Outcomes) -> Option<f64> + 'static,
    ) -> Row {
        self.ends = Some((Box::new(low), Box::new(high)));
        self
    }

    /// By how much of what is published it is off; none of a line that is no prediction.
    fn error(&self, outcomes: &Outcomes) -> Option<f64> {
        match self.published {
            Published::Figure(given) if given != 0.0 => {
                Some((self.figure)(outcomes)? / given - 1.0)
            }
            _ => None,
        }
    }

    /// Whether it lies where it should; none where no bounds are given.
    fn is_met(&self, outcomes: &Outcomes) -> Option<bool> {
        match self.published {
            Published::Between(low, high) => {
                Some((self.figure)(outcomes).is_some_and(|figure| (low..=high).contains(&figure)))
            }
            _ => None,
        }
    }

    fn verdict(&self, outcomes: &Outcomes) -> String {
        let percent = |error: f64| format!("{:+.0} %", error * 100.0);
        match self.published {
            Published::Figure(0.0) if (self.figure)(outcomes) == Some(0.0) => "none".to_owned(),
            Published::Figure(_) => self.error(outcomes).map_or(String::new(), percent),
            Published::Restated(_) => "restated".to_owned(),
            Published::Between(..) => match self.is_met(outcomes) {
                Some(true) => "met".to_owned(),
                _ => "**not met**".to_owned(),
            },
            Published::ToPredict => String::new(),
        }
    }

    fn text(&self, outcomes: &Outcomes) -> String {
        let published = match self.published {
            Published::Figure(given) | Published::Restated(given) => {
                format!("{given} {}", self.unit)
            }
            Published::Between(low, f64::INFINITY) => format!("{low} {} at least", self.unit),
            Published::Between(f64::NEG_INFINITY, high) => format!("{high} {} at most", self.unit),
            Published::Between(low, high) => format!("{low} to {high} {}", self.unit),
            Published::ToPredict => "to predict".to_owned(),
        };
        let rehearsed = (self.figure)(outcomes).map_or("–".to_owned(), |figure| {
            format!("{} {}", short(figure), self.unit)
        });
        let ends = self.ends.as_ref().and_then(|(low, high)| {
            let (one, other) = (low(outcomes)?, high(outcomes)?);
            Some(format!(
                ", {} to {}",
                short(one.min(other)),
                short(one.max(other))
            ))
        });
        format!(
            "| {} | {} | {}{} | {} | {} |\n",
            self.what,
            published.trim_end(),
            rehearsed.trim_end(),
            ends.unwrap_or_default(),
            self.verdict(outcomes),
            self.note
        )
    }
}

fn short(figure: f64) -> String {
    let digits = if figure.abs() >= 100.0 { 0 } else { 2 };
    format!("{figure:.digits$}")
}

/// The table on top of the page: how far off the predictions of each section are.
pub fn summary(sections: &[Section], outcomes: &Outcomes) -> String {
    let mut text = String::from(
        "\n## How far off\n\n| section | predictions | median error | worst error | of | bounds met |\n\
         |---|---|---|---|---|---|\n",
    );
    for section in sections {
        let errors = section.errors(outcomes);
        let (met, bounds) = section.met(outcomes);
        let bounds = match bounds {
            0 => String::new(),
            _ => format!("{met} of {bounds}"),
        };
        let (median, worst, of) = match (errors.get(errors.len() / 2), errors.last()) {
            (Some((median, _)), Some((worst, of))) => {
                let percent = |error: f64| format!("{:.0} %", error * 100.0);
                (
                    percent(median.abs()),
                    format!("{:+.0} %", worst * 100.0),
                    *of,
                )
            }
            _ => ("–".to_owned(), "–".to_owned(), ""),
        };
        let count = errors.len();
        text += &format!(
            "| {} | {count} | {median} | {worst} | {of} | {bounds} |\n",
            section.title
        );
    }
    text
}
