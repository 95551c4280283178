//! Line charts as inline SVG.
//!
//! Colours come from CSS classes (`s0`, `s1`, …), so that light and dark follow
//! the page.

use std::fmt::Write;
use std::ops::RangeInclusive;

/// A line of a chart.
pub struct Series {
    /// For the legend.
    pub name: String,
    /// CSS class number.
    pub class: usize,
    /// x, y; a gap where there is no value.
    pub points: Vec<(f64, Option<f64>)>,
}

/// How values lie on an axis.
#[derive(Clone, Copy, PartialEq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// By powers of ten.
    Log,
}

/// An axis.
pub struct Axis {
    /// What and in which unit.
    pub label: String,
    /// Values and their texts.
    pub ticks: Vec<(f64, String)>,
    /// First and last value.
    pub range: (f64, f64),
    /// How values lie between them.
    pub scale: Scale,
}

/// Marks that are closer than this share a label: one takes so much.
const MARK_ROOM: f64 = 36.0;

/// A chart.
pub struct Chart {
    /// What it shows, for people who cannot see it.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// x range that is shaded, with its text.
    pub shaded: Option<(f64, f64, &'static str)>,
    /// Drawn as a dashed horizontal line, with its text.
    pub limit: Option<(f64, String)>,
    /// Drawn as vertical lines at x, numbered from 1 in their order, with their texts.
    pub marks: Vec<(f64, String)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 82.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 62.0;

/// Colour classes that the page defines.
pub const CLASSES: usize = 10;

impl Axis {
    /// An axis from zero to a round value that is at least `max`.
    pub fn linear(label: &str, max: f64) -> Axis {
        let max = if max > 0.0 { max } else { 1.0 };
        let step = round_step(max / 5.0);
        let last = (max / step).ceil();
        let ticks = (0..=last as u32)
            .map(|n| f64::from(n) * step)
            .map(|v| (v, number(v)));
        let (label, ticks) = (label.into(), ticks.collect());
        Axis {
            label,
            ticks,
            range: (0.0, last * step),
            scale: Scale::Linear,
        }
    }

    /// An axis from zero to `end`, with round ticks up to there.
    pub fn until(label: &str, end: f64) -> Axis {
        let mut axis = Axis::linear(label, end);
        if end > 0.0 {
            axis.range.1 = end;
            axis.ticks.retain(|(value, _)| *value <= end);
        }
        axis
    }

    /// An axis of whole powers of ten around `min` and `max`.
    pub fn log(label: &str, min: f64, max: f64) -> Axis {
        let first = min.max(1e-3).log10().floor() as i32;
        let last = (max.max(1e-3).log10().ceil() as i32).max(first + 1);
        // Where few powers fit, 2 and 5 times them help to read values.
        let times: &[f64] = if last - first <= 2 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let end = 10f64.powi(last);
        let ticks = (first..=last)
            .flat_map(|power| times.iter().map(move |times| times * 10f64.powi(power)))
            .filter(|&value| value <= end * 1.001)
            .map(|value| (value, number(value)));
        let (label, ticks) = (label.into(), ticks.collect());
        let range = (10f64.powi(first), 10f64.powi(last));
        Axis {
            label,
            ticks,
            range,
            scale: Scale::Log,
        }
    }

    /// Where `value` lies, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        let share = match self.scale {
            Scale::Linear => (value - low) / (high - low),
            Scale::Log => (value.max(low) / low).ln() / (high / low).ln(),
        };
        share.clamp(0.0, 1.0)
    }
}

/// 1, 2 or 5 times a power of ten, not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|times| times * power >= step * 0.999);
    times.unwrap_or(10.0) * power
}

fn number(value: f64) -> String {
    match value {
        v if v >= 1000.0 && v % 100.0 == 0.0 => format!("{}k", v / 1000.0),
        v => {
            let text = format!("{v:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
    }
}

impl Chart {
    /// The chart as an `<svg>` element.
    pub fn svg(&self) -> String {
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escape(&self.title)
        );
        self.put_shade(&mut svg);
        self.put_axes(&mut svg);
        for series in &self.series {
            self.put_series(&mut svg, series);
        }
        if let Some((value, text)) = &self.limit {
            let y = self.y_of(*value);
            put(
                &mut svg,
                format_args!(
                    "<line class=\"limit\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"limit-text\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                    WIDTH - RIGHT,
                    WIDTH - RIGHT - 4.0,
                    y - 5.0,
                    escape(text)
                ),
            );
        }
        self.put_marks(&mut svg);
        svg.push_str("</svg>");
        svg
    }

    /// Lines of the marks, and their numbers: those that lie close share a label.
    fn put_marks(&self, svg: &mut String) {
        let mut from = 0;
        for (index, (at, text)) in self.marks.iter().enumerate() {
            let x = self.x_of(*at);
            put(
                svg,
                format_args!(
                    "<g class=\"mark\"><title>{}</title><line x1=\"{x:.1}\" x2=\"{x:.1}\" \
                     y1=\"{TOP}\" y2=\"{:.1}\"/></g>",
                    escape(text),
                    HEIGHT - BOTTOM
                ),
            );
            let next = self.marks.get(index + 1).map(|(at, _)| self.x_of(*at));
            if next.is_none_or(|next| next - x >= MARK_ROOM) {
                self.put_numbers(svg, from..=index);
                from = index + 1;
            }
        }
    }

    /// One label for some marks in a row.
    fn put_numbers(&self, svg: &mut String, marks: RangeInclusive<usize>) {
        let (first, last) = (*marks.start(), *marks.end());
        let x = (self.x_of(self.marks[first].0) + self.x_of(self.marks[last].0)) / 2.0;
        let numbers = match first == last {
            true => format!("{}", first + 1),
            false => format!("{}–{}", first + 1, last + 1),
        };
        put(
            svg,
            format_args!(
                "<g class=\"mark\"><text x=\"{x:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{numbers}</text></g>",
                TOP - 8.0
            ),
        );
    }

    /// The legend as HTML.
    pub fn legend(&self) -> String {
        let item = |series: &Series| {
            format!(
                "<span class=\"key s{}\">{}</span>",
                series.class,
                escape(&series.name)
            )
        };
        let items: Vec<String> = self.series.iter().map(item).collect();
        format!("<div class=\"legend\">{}</div>", items.join(" "))
    }

    fn x_of(&self, value: f64) -> f64 {
        LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y_of(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.share(value) * (HEIGHT - TOP - BOTTOM)
    }

    fn put_shade(&self, svg: &mut String) {
        let Some((from, until, text)) = self.shaded else {
            return;
        };
        let (x1, x2) = (self.x_of(from), self.x_of(until));
        if x2 - x1 < 1.0 {
            return;
        }
        put(
            svg,
            format_args!(
                "<rect class=\"shade\" x=\"{x1:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                x2 - x1,
                HEIGHT - TOP - BOTTOM
            ),
        );
        if x2 - x1 > 80.0 {
            put(
                svg,
                format_args!(
                    "<text class=\"note\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
                    x1 + 2.0,
                    TOP - 8.0
                ),
            );
        }
    }

    fn put_axes(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, text) in &self.y.ticks {
            let y = self.y_of(*value);
            put(
                svg,
                format_args!(
                    "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                    LEFT - 7.0,
                    y + 5.0
                ),
            );
        }
        for (value, text) in &self.x.ticks {
            let x = self.x_of(*value);
            put(
                svg,
                format_args!(
                    "<line class=\"tick\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{:.1}\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                    bottom + 5.0,
                    bottom + 23.0
                ),
            );
        }
        let middle = TOP + (bottom - TOP) / 2.0;
        put(
            svg,
            format_args!(
                "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
             <text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text class=\"label\" transform=\"translate(18 {middle:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
                LEFT + (right - LEFT) / 2.0,
                HEIGHT - 8.0,
                escape(&self.x.label),
                escape(&self.y.label)
            ),
        );
    }

    fn put_series(&self, svg: &mut String, series: &Series) {
        let mut path = String::new();
        let mut pen_down = false;
        for &(x, y) in &series.points {
            let Some(y) = y else {
                pen_down = false;
                continue;
            };
            let command = if pen_down { 'L' } else { 'M' };
            put(
                &mut path,
                format_args!("{command}{:.1} {:.1}", self.x_of(x), self.y_of(y)),
            );
            pen_down = true;
        }
        put(
            svg,
            format_args!("<path class=\"line s{}\" d=\"{path}\"/>", series.class),
        );
    }
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(what);
}

/// `text` with what HTML reserves replaced.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_round_and_hold_their_values() {
        let axis = Axis::linear("x", 437.0);
        assert_eq!(axis.range, (0.0, 500.0));
        assert_eq!(axis.ticks.len(), 6);
        assert_eq!(axis.share(500.0), 1.0);
        let axis = Axis::log("y", 0.3, 12.0);
        assert_eq!(axis.range, (0.1, 100.0));
        assert!((axis.share(1.0) - 1.0 / 3.0).abs() < 1e-9);
        let texts: Vec<&str> = axis.ticks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["0.1", "1", "10", "100"]);
        assert_eq!(Axis::linear("none", 0.0).range.0, 0.0);
    }

    #[test]
    fn a_gap_lifts_the_pen() {
        let chart = Chart {
            title: "a < b".into(),
            x: Axis::linear("s", 3.0),
            y: Axis::linear("ms", 1.0),
            series: vec![Series {
                name: "n".into(),
                class: 0,
                points: vec![
                    (0.0, Some(1.0)),
                    (1.0, None),
                    (2.0, Some(0.5)),
                    (3.0, Some(0.2)),
                ],
            }],
            shaded: None,
            limit: None,
            marks: vec![(1.5, "x > 1".into())],
        };
        let svg = chart.svg();
        assert!(svg.contains("a &lt; b"));
        assert!(svg.contains("<title>x &gt; 1</title>"));
        let path = svg.split("<path").nth(1).unwrap();
        assert_eq!(
            (path.matches('M').count(), path.matches('L').count()),
            (2, 1)
        );
    }

    #[test]
    fn numbers_of_marks_that_lie_close_are_one() {
        let marks = [10.0, 50.0, 50.0, 50.1, 70.0, 70.0].map(|at| (at, String::new()));
        let chart = Chart {
            title: String::new(),
            x: Axis::linear("s", 100.0),
            y: Axis::linear("ms", 1.0),
            series: Vec::new(),
            shaded: None,
            limit: None,
            marks: marks.to_vec(),
        };
        let mut svg = String::new();
        chart.put_marks(&mut svg);
        let texts = svg.split("middle\">").skip(1);
        let numbers: Vec<&str> = texts.filter_map(|text| text.split('<').next()).collect();
        assert_eq!(numbers, ["1", "2–4", "5–6"]);
        assert_eq!(svg.matches("<line").count(), 6);
    }
}
