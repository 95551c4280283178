//! Charts as inline SVG.
//!
//! Colours come from CSS classes of the page, so that light and dark follow it. Text keeps its
//! place at two sizes: the page enlarges it to [`LETTER`] where a chart is shown small.
//! Invariant: no text leaves the drawing, and no label of an axis touches another one, at
//! either size.

mod axis;

pub use axis::{Axis, Scale};

use super::page::{escape, put};
use std::ops::RangeInclusive;

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// CSS class of its colour.
    pub class: &'static str,
    /// x, y; a gap where there is no value.
    pub points: Vec<(f64, Option<f64>)>,
    /// Whether each point has a dot.
    pub dotted: bool,
}

/// A point that is pointed out.
#[derive(Clone, Debug)]
pub struct Spot {
    /// Where; without y it is above the chart.
    pub at: (f64, Option<f64>),
    /// Beside it; what is above the chart shows it on demand only.
    pub text: String,
}

/// How large a chart is, in units of its drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Two side by side on a page.
    Full,
    /// Four side by side.
    Small,
}

impl Size {
    fn extent(self) -> (f64, f64) {
        match self {
            Size::Full => (560.0, 290.0),
            Size::Small => (280.0, 170.0),
        }
    }
}

/// A chart that is drawn as one inline SVG.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows, for people who cannot see it.
    pub title: String,
    /// How large it is.
    pub size: Size,
    /// Horizontal axis, from left to right.
    pub x: Axis,
    /// Vertical axis, from the bottom up.
    pub y: Axis,
    /// The lines, drawn in this order.
    pub series: Vec<Series>,
    /// x range that is shaded, with its name for the legend.
    pub shaded: Option<(f64, f64, &'static str)>,
    /// Drawn as a dashed horizontal line, with its text.
    pub limit: Option<(f64, String)>,
    /// Drawn as vertical lines at x, numbered from 1 in their order, with their texts.
    pub marks: Vec<(f64, String)>,
    /// Points that are pointed out.
    pub spots: Vec<Spot>,
}

/// The most that a letter is wide, where the page shows text at its largest (18 units).
pub const LETTER: f64 = 11.6;

/// Between two labels of an axis at least.
const AIR: f64 = 8.0;

/// From one line of text to the next.
const LINE: f64 = 22.0;

/// Marks that are closer than this share a label: one takes so much.
const MARK_ROOM: f64 = 40.0;

fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// Where the lines are drawn.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Chart {
    /// A chart without lines.
    pub fn new(title: &str, size: Size, (x, y): (Axis, Axis)) -> Chart {
        Chart {
            title: title.to_owned(),
            size,
            x,
            y,
            series: Vec::new(),
            shaded: None,
            limit: None,
            marks: Vec::new(),
            spots: Vec::new(),
        }
    }

    fn plot(&self) -> Plot {
        let (width, height) = self.size.extent();
        let longest = self.y.ticks.iter().map(|(_, text)| width_of(text));
        // The last label stands under its tick, at the end or before it.
        let beyond = |(value, text): &(f64, String)| {
            width_of(text) / 2.0 - (1.0 - self.x.share(*value)) * width / 2.0
        };
        let beyond = self.x.ticks.last().map_or(0.0, beyond);
        let line_if = |there: bool| if there { LINE } else { 0.0 };
        Plot {
            left: longest.fold(24.0, f64::max) + 8.0,
            right: width - beyond.max(8.0) - 2.0,
            top: 10.0 + line_if(!self.y.label.is_empty()) + line_if(!self.marks.is_empty()),
            bottom: height - LINE - 6.0 - line_if(!self.x.label.is_empty()),
        }
    }

    /// The chart as an `<svg>` element.
    pub fn svg(&self) -> String {
        let (width, height) = self.size.extent();
        let plot = self.plot();
        let mut svg = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
            escape(&self.title)
        );
        self.put_shade(&mut svg, &plot);
        self.put_axes(&mut svg, &plot);
        self.put_marks(&mut svg, &plot);
        for series in &self.series {
            self.put_series(&mut svg, &plot, series);
        }
        self.put_limit(&mut svg, &plot);
        for spot in &self.spots {
            self.put_spot(&mut svg, &plot, spot);
        }
        svg.push_str("</svg>");
        svg
    }

    /// The legend as HTML.
    pub fn legend(&self) -> String {
        let item = |series: &Series| {
            let (class, name) = (series.class, escape(&series.name));
            format!("<span class=\"key {class}\">{name}</span>")
        };
        let mut items: Vec<String> = self.series.iter().map(item).collect();
        let shaded = self.shaded.iter();
        items.extend(shaded.map(|(.., name)| format!("<span class=\"key shaded\">{name}</span>")));
        format!("<div class=\"legend\">{}</div>", items.join(" "))
    }

    fn x_of(&self, plot: &Plot, value: f64) -> f64 {
        plot.left + self.x.share(value) * (plot.right - plot.left)
    }

    fn y_of(&self, plot: &Plot, value: f64) -> f64 {
        plot.bottom - self.y.share(value) * (plot.bottom - plot.top)
    }

    fn put_shade(&self, svg: &mut String, plot: &Plot) {
        let Some((from, until, _)) = self.shaded else {
            return;
        };
        let (x1, x2) = (self.x_of(plot, from), self.x_of(plot, until));
        put(
            svg,
            format_args!(
                "<rect class=\"shade\" x=\"{x1:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                plot.top,
                x2 - x1,
                plot.bottom - plot.top
            ),
        );
    }

    fn put_axes(&self, svg: &mut String, plot: &Plot) {
        for (place, (value, text)) in self.y.ticks.iter().enumerate() {
            let y = self.y_of(plot, *value);
            let (left, right) = (plot.left, plot.right);
            put(
                svg,
                format_args!(
                    "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
                ),
            );
            // Every other one where all have no room.
            let room = (plot.bottom - plot.top) / self.y.ticks.len().max(2) as f64;
            if room >= LINE - 4.0 || place.is_multiple_of(2) {
                put_text(svg, "tick-text", (left - 7.0, y + 5.0), "end", text);
            }
        }
        self.put_ticks(svg, plot);
        put(
            svg,
            format_args!(
                "<line class=\"axis\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                plot.left,
                plot.right,
                y = plot.bottom
            ),
        );
        let (width, height) = self.size.extent();
        let below = (width / 2.0, height - 6.0);
        put_text(svg, "label", below, "middle", &self.x.label);
        put_text(svg, "label", (2.0, 16.0), "start", &self.y.label);
    }

    /// Ticks of the horizontal axis, from the last on: a label that would touch the one after it
    /// is left out.
    fn put_ticks(&self, svg: &mut String, plot: &Plot) {
        let mut free = f64::INFINITY;
        for (value, text) in self.x.ticks.iter().rev() {
            let (x, y) = (self.x_of(plot, *value), plot.bottom);
            put(
                svg,
                format_args!(
                    "<line class=\"tick\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y:.1}\" y2=\"{:.1}\"/>",
                    y + 5.0
                ),
            );
            let half = width_of(text) / 2.0;
            if x + half <= free {
                free = x - half - AIR;
                put_text(svg, "tick-text", (x, y + LINE), "middle", text);
            }
        }
    }

    fn put_series(&self, svg: &mut String, plot: &Plot, series: &Series) {
        let (mut path, mut dots) = (String::new(), String::new());
        let points = &series.points;
        let is_there = |place: Option<usize>| {
            let point = place.and_then(|place| points.get(place));
            point.is_some_and(|point| point.1.is_some())
        };
        for (place, &(x, y)) in points.iter().enumerate() {
            let Some(y) = y else { continue };
            let (x, y) = (self.x_of(plot, x), self.y_of(plot, y));
            let follows = is_there(place.checked_sub(1));
            let command = if follows { 'L' } else { 'M' };
            put(&mut path, format_args!("{command}{x:.1} {y:.1}"));
            // A point without neighbours would have no line.
            if series.dotted || !(follows || is_there(Some(place + 1))) {
                put(
                    &mut dots,
                    format_args!("<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"),
                );
            }
        }
        put(
            svg,
            format_args!(
                "<g class=\"{}\"><path class=\"line\" d=\"{path}\"/>{dots}</g>",
                series.class
            ),
        );
    }

    fn put_limit(&self, svg: &mut String, plot: &Plot) {
        let Some((value, text)) = &self.limit else {
            return;
        };
        let (y, left, right) = (self.y_of(plot, *value), plot.left, plot.right);
        put(
            svg,
            format_args!(
                "<line class=\"limit\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            ),
        );
        let above = y - 6.0;
        let y = if above < plot.top + 12.0 {
            y + 18.0
        } else {
            above
        };
        match self.is_busier_at_its_end(*value) {
            true => put_text(svg, "limit-text", (left + 4.0, y), "start", text),
            false => put_text(svg, "limit-text", (right - 4.0, y), "end", text),
        }
    }

    /// Whether the lines end nearer to `value` than they begin.
    fn is_busier_at_its_end(&self, value: f64) -> bool {
        let distance = |y: f64| (self.y.share(y) - self.y.share(value)).abs();
        let nearest = |of: fn(&Series) -> Option<f64>| {
            let ends = self.series.iter().filter_map(of);
            ends.map(distance).fold(1.0, f64::min)
        };
        nearest(|line| line.points.iter().rev().find_map(|point| point.1))
            < nearest(|line| line.points.iter().find_map(|point| point.1))
    }

    /// Lines of the marks, and their numbers: those that lie close share a label.
    fn put_marks(&self, svg: &mut String, plot: &Plot) {
        let mut from = 0;
        for (index, (at, text)) in self.marks.iter().enumerate() {
            let x = self.x_of(plot, *at);
            put(
                svg,
                format_args!(
                    "<g class=\"mark\"><title>{}</title><line x1=\"{x:.1}\" x2=\"{x:.1}\" \
                     y1=\"{:.1}\" y2=\"{:.1}\"/></g>",
                    escape(text),
                    plot.top,
                    plot.bottom
                ),
            );
            let next = self
                .marks
                .get(index + 1)
                .map(|(at, _)| self.x_of(plot, *at));
            if next.is_none_or(|next| next - x >= MARK_ROOM) {
                self.put_numbers(svg, plot, from..=index);
                from = index + 1;
            }
        }
    }

    /// One label for some marks in a row.
    fn put_numbers(&self, svg: &mut String, plot: &Plot, marks: RangeInclusive<usize>) {
        let (first, last) = (*marks.start(), *marks.end());
        let x_of = |mark: usize| self.x_of(plot, self.marks[mark].0);
        let numbers = match first == last {
            true => format!("{}", first + 1),
            false => format!("{}–{}", first + 1, last + 1),
        };
        let half = width_of(&numbers) / 2.0;
        let x = f64::midpoint(x_of(first), x_of(last)).min(self.size.extent().0 - half);
        put_text(svg, "mark-text", (x, plot.top - 6.0), "middle", &numbers);
    }

    fn put_spot(&self, svg: &mut String, plot: &Plot, spot: &Spot) {
        let x = self.x_of(plot, spot.at.0);
        let title = escape(&spot.text);
        let Some(y) = spot.at.1.map(|y| self.y_of(plot, y)) else {
            let y = plot.top + 8.0;
            put(
                svg,
                format_args!(
                    "<g class=\"over\"><title>{title}</title><path d=\"M{:.1} {:.1}l10 10m0 -10l-10 \
                     10\"/></g>",
                    x - 5.0,
                    y - 5.0
                ),
            );
            return;
        };
        put(
            svg,
            format_args!(
                "<g class=\"spot\"><title>{title}</title><circle cx=\"{x:.1}\" cy=\"{y:.1}\" \
                 r=\"7\"/></g>"
            ),
        );
        let below = y + 28.0 < plot.bottom;
        let y = if below { y + 26.0 } else { y - 14.0 };
        // Centred under its point, as far as the drawing goes.
        let half = width_of(&spot.text) / 2.0;
        let x = x.min(self.size.extent().0 - half - 2.0).max(half + 2.0);
        put_text(svg, "spot-text", (x, y), "middle", &spot.text);
    }
}

fn put_text(svg: &mut String, class: &str, (x, y): (f64, f64), anchor: &str, text: &str) {
    if !text.is_empty() {
        let text = escape(text);
        put(
            svg,
            format_args!(
                "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(x: Axis, y: Axis) -> Chart {
        Chart::new("a < b", Size::Full, (x, y))
    }

    fn line(points: Vec<(f64, Option<f64>)>) -> Series {
        Series {
            name: "n".into(),
            class: "read",
            points,
            dotted: false,
        }
    }

    /// From and to of every text at its largest, its height, and what it says.
    fn texts(svg: &str) -> Vec<(f64, f64, f64, &str)> {
        let of = |tag: &str, key: &str| {
            let from = tag.split_once(&format!(" {key}=\"")).unwrap().1;
            from.split_once('"').unwrap().0.to_owned()
        };
        let text = |element: &'_ str| {
            let (tag, rest) = element.split_once('>').unwrap();
            let width = width_of(rest.split_once('<').unwrap().0);
            let x: f64 = of(tag, "x").parse().unwrap();
            let from = match of(tag, "text-anchor").as_str() {
                "start" => x,
                "middle" => x - width / 2.0,
                _ => x - width,
            };
            (from, from + width, of(tag, "y").parse().unwrap())
        };
        let said = |element: &'_ str| element.find('>').unwrap() + 1;
        let elements = svg.split("<text").skip(1);
        let all = elements.map(|element| {
            let (from, until, y) = text(element);
            let said = element[said(element)..].split_once('<').unwrap().0;
            (from, until, y, said)
        });
        all.collect()
    }

    #[test]
    fn no_text_leaves_the_drawing_or_touches_another_of_its_axis() {
        let percentiles = Axis {
            label: "percentile".into(),
            ticks: [
                (1.0, "0"),
                (2.0, "50"),
                (10.0, "90"),
                (20.0, "95"),
                (100.0, "99"),
            ]
            .into_iter()
            .chain([(1e3, "99.9"), (1e4, "99.99"), (1e5, "99.999")])
            .map(|(value, text)| (value, text.to_owned()))
            .collect(),
            range: (1.0, 1e5),
            scale: Scale::Log,
        };
        for size in [Size::Full, Size::Small] {
            for x in [percentiles.clone(), Axis::until("seconds", 3600.0)] {
                let mut chart = chart(x, Axis::linear("response time, ms", 12_345.0));
                chart.size = size;
                chart.limit = Some((11_000.0, "limit 11000 ms".into()));
                let at = chart.x.range.1;
                chart.marks = vec![(0.0, String::new()), (at, String::new())];
                chart.spots = vec![Spot {
                    at: (at, Some(9.0)),
                    text: "× 4.0".into(),
                }];
                let svg = chart.svg();
                let texts = texts(&svg);
                let (width, height) = size.extent();
                for (from, until, y, said) in &texts {
                    assert!(*from >= 0.0 && *until <= width, "{said}: {from} to {until}");
                    assert!(*y >= 14.0 && *y <= height, "{said}: {y}");
                }
                assert!(texts.len() > 6, "{texts:?}");
                for (place, (from, until, y, said)) in texts.iter().enumerate() {
                    for (also_from, also_until, also_y, other) in &texts[place + 1..] {
                        let apart = until < also_from || also_until < from;
                        assert!(y != also_y || apart, "{said} touches {other}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_last_label_stays_and_what_has_no_room_goes() {
        let mut chart = chart(Axis::until("s", 600.0), Axis::linear("ms", 1.0));
        chart.size = Size::Small;
        let svg = chart.svg();
        let said: Vec<&str> = texts(&svg).iter().map(|text| text.3).collect();
        assert!(said.contains(&"600") && said.contains(&"0"), "{said:?}");
        assert_eq!(svg.matches("class=\"tick\"").count(), chart.x.ticks.len());
    }

    #[test]
    fn a_gap_lifts_the_pen_and_a_lone_point_is_a_dot() {
        let mut chart = chart(Axis::linear("s", 4.0), Axis::linear("ms", 1.0));
        chart.series.push(line(vec![
            (0.0, Some(1.0)),
            (1.0, None),
            (2.0, Some(0.5)),
            (3.0, Some(0.2)),
        ]));
        chart.marks = vec![(1.5, "x > 1".into())];
        let svg = chart.svg();
        assert!(svg.contains("a &lt; b"));
        assert!(svg.contains("<title>x &gt; 1</title>"));
        let path = svg.split("<path").nth(1).unwrap();
        assert_eq!(
            (path.matches('M').count(), path.matches('L').count()),
            (2, 1)
        );
        assert_eq!(svg.matches("class=\"dot\"").count(), 1);
    }

    #[test]
    fn numbers_of_marks_that_lie_close_are_one() {
        let mut chart = chart(Axis::linear("s", 100.0), Axis::linear("ms", 1.0));
        chart.marks = [10.0, 50.0, 50.0, 50.1, 70.0, 70.0]
            .map(|at| (at, String::new()))
            .to_vec();
        let mut svg = String::new();
        chart.put_marks(&mut svg, &chart.plot());
        let numbers: Vec<&str> = texts(&svg).iter().map(|text| text.3).collect();
        assert_eq!(numbers, ["1", "2–4", "5–6"]);
        assert_eq!(svg.matches("<line").count(), 6);
    }
}
