//! The site as a drawing: hosts with their VMs on top, links, controllers, buses, drives, each
//! coloured by its utilisation, with the figure in it. A part that failed has a cross and a thick
//! border.
//!
//! Everything flows from the left and goes on in the next line, so it stays readable with
//! many hosts and drives. Figures stand on colours that are light in any scheme of the page.

use super::{percent, short};
use crate::report::schema::{
    BusLayout, ControllerLayout, FailedReport, HostLayout, LayoutReport, PoolLayout, ShareReport,
};
use crate::run::share::Part;
use std::collections::BTreeMap;
use workload::report::page::{escape, put};

/// Below this utilisation a part has this colour; the rest has the last.
const LEVELS: [(f64, &str); 5] = [
    (0.25, "#dcefe0"),
    (0.50, "#f4efbd"),
    (0.75, "#fbd694"),
    (0.90, "#f7ad84"),
    (f64::INFINITY, "#f0887b"),
];
/// Text on these.
const ON: &str = "#1c2430";

const WIDTH: f64 = 1120.0;
const GAP: f64 = 10.0;
const CELLS: usize = 4;
const CELL: f64 = (WIDTH - GAP * (CELLS as f64 - 1.0)) / CELLS as f64;
const LINE: f64 = 24.0;
/// Of 12 px letters, with some air.
const LETTER: f64 = 6.8;
/// VMs of a host that are shown by name.
const VMS_SHOWN: usize = 6;
/// Links of a part that are shown by name; more are shown by number.
const LINKS_NAMED: usize = 4;
/// In front of what failed.
const CROSS: char = '✕';

/// Classes of the colours.
pub fn colours() -> String {
    let mut css = format!("svg.site .on {{ fill: {ON}; }}\n");
    for (level, (_, colour)) in LEVELS.iter().enumerate() {
        put(
            &mut css,
            format_args!("svg.site .u{level} {{ fill: {colour}; }}\n"),
        );
    }
    css
}

/// The drawing, with its legend.
pub fn drawing(layout: &LayoutReport, shares: &[ShareReport], failed: &[FailedReport]) -> String {
    let mut sheet = Sheet::new(shares, failed);
    sheet.band("VMs on hosts, and the hosts' links");
    let vm_lines = layout
        .hosts
        .iter()
        .map(|host| shown_vms(host).len().div_ceil(2));
    let vm_lines = vm_lines.max().unwrap_or(0);
    sheet.cells(&layout.hosts, |sheet, host, x| {
        sheet.host(host, vm_lines, x);
    });
    sheet.wires(layout.hosts.len());
    for network in &layout.networks {
        let speed = network.bits_per_s as f64 / 1e9;
        let text = format!("network {}, {speed} Gb/s a link", network.name);
        sheet.plain((0.0, WIDTH), &text, &text);
        sheet.y += LINE + 4.0;
        sheet.links(&network.uplinks, (0.0, WIDTH));
    }
    sheet.wires(layout.controllers.len());
    sheet.band("Controllers, with their links");
    sheet.cells(&layout.controllers, Sheet::controller);
    sheet.wires(layout.buses.len());
    sheet.band("Buses to drives");
    sheet.cells(&layout.buses, Sheet::bus);
    for pool in &layout.pools {
        sheet.pool(pool);
    }
    format!(
        "<h3>The site</h3>\n<figure><div class=\"scroll\" role=\"region\" tabindex=\"0\" \
         aria-label=\"The site\">{}</div></figure>\n",
        sheet.svg()
    )
}

/// A drawing that grows downwards.
struct Sheet<'a> {
    svg: String,
    /// Everything above is drawn.
    y: f64,
    shares: BTreeMap<(Part, &'a str), &'a ShareReport>,
    /// When it failed, in seconds of the run.
    failed: BTreeMap<(Part, &'a str), f64>,
}

impl<'a> Sheet<'a> {
    fn new(shares: &'a [ShareReport], failed: &'a [FailedReport]) -> Sheet<'a> {
        let when = |failed: &'a FailedReport| ((failed.part, failed.name.as_str()), failed.at_s);
        let named = |share: &'a ShareReport| ((share.part, share.name.as_str()), share);
        let mut sheet = Sheet {
            svg: String::new(),
            y: 0.0,
            shares: shares.iter().map(named).collect(),
            failed: failed.iter().map(when).collect(),
        };
        sheet.legend();
        sheet
    }

    fn svg(self) -> String {
        format!(
            "<svg class=\"site\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
             aria-label=\"The site, each part with how busy it was in percent\">{}</svg>",
            self.y + 4.0,
            self.svg
        )
    }

    fn legend(&mut self) {
        put(
            &mut self.svg,
            format_args!("<text class=\"band\" x=\"0\" y=\"16\">busy, of the time</text>"),
        );
        let (mut from, mut x) = (0.0, 130.0);
        for (level, (until, _)) in LEVELS.iter().enumerate() {
            let until = until.min(1.0);
            let text = format!("{:.0} to {:.0} %", from * 100.0, until * 100.0);
            self.coloured((x, 100.0), Some(level), "busy", (&text, &text));
            (from, x) = (until, x + 108.0);
        }
        if !self.failed.is_empty() {
            let text = format!("{CROSS} failed in the run");
            self.coloured((x, 160.0), None, "plain failed", (&text, &text));
        }
        self.y += LINE + 8.0;
    }

    /// How busy a part was.
    fn utilisation(&self, part: Part, name: &str) -> Option<f64> {
        let share = self.shares.get(&(part, name))?;
        Some(share.utilisation)
    }

    /// A box of a part that can fail: its name, and when it did. Where it did, the name begins
    /// with a cross.
    fn fallible(
        &mut self,
        across: (f64, f64),
        part: Part,
        (name, title): (&str, &str),
        (of, class): (&str, &str),
    ) {
        let utilisation = self.utilisation(part, of);
        match self.failed.get(&(part, of)) {
            None => self.busy(across, (name, title), utilisation, class),
            Some(at_s) => {
                let title = format!("{title}, failed at {at_s:.1} s");
                let class = format!("{class} failed");
                self.busy(across, (name, &title), utilisation, &class);
            }
        }
    }

    /// A heading, as far as there is room: bold letters take a tenth more.
    fn band(&mut self, text: &str) {
        let y = self.y + 14.0;
        let room = (WIDTH / (LETTER * 1.1)) as usize;
        put(
            &mut self.svg,
            format_args!(
                "<g><title>{}</title><text class=\"band\" x=\"0\" y=\"{y:.1}\">{}</text></g>",
                escape(text),
                escape(&short(text, room))
            ),
        );
        self.y += 22.0;
    }

    /// Draws cells side by side, each of which begins where the sheet is and leaves it where
    /// the cell ends.
    fn cells<T>(&mut self, all: &[T], mut draw: impl FnMut(&mut Self, &T, f64)) {
        for row in all.chunks(CELLS) {
            let (top, mut bottom) = (self.y, self.y);
            for (place, cell) in row.iter().enumerate() {
                self.y = top;
                draw(self, cell, place as f64 * (CELL + GAP));
                bottom = bottom.max(self.y);
            }
            self.y = bottom + GAP;
        }
    }

    /// Lines from cells to what is below.
    fn wires(&mut self, cells: usize) {
        let (top, bottom) = (self.y - GAP + 2.0, self.y + 6.0);
        for place in 0..cells.min(CELLS) {
            let x = place as f64 * (CELL + GAP) + CELL / 2.0;
            put(
                &mut self.svg,
                format_args!("<path class=\"wire\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/>"),
            );
        }
        self.y += 8.0;
    }

    /// A box without a figure: `title` in full, `text` as far as there is room.
    fn plain(&mut self, across: (f64, f64), text: &str, title: &str) {
        self.coloured(across, None, "plain", (text, title));
    }

    fn coloured(
        &mut self,
        (x, width): (f64, f64),
        level: Option<usize>,
        class: &str,
        (text, title): (&str, &str),
    ) {
        let y = self.y;
        let room = ((width - 2.0) / LETTER) as usize;
        let (colour, on) = match level {
            Some(level) => (format!(" u{level}"), " class=\"on\""),
            None => (String::new(), ""),
        };
        put(
            &mut self.svg,
            format_args!(
                "<g><title>{}</title><rect class=\"{class}{colour}\" x=\"{x:.1}\" y=\"{y:.1}\" \
                 width=\"{width:.1}\" height=\"{:.1}\" rx=\"3\"/><text{on} x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{}</text></g>",
                escape(title),
                LINE - 3.0,
                x + width / 2.0,
                y + 14.5,
                escape(&short(text, room))
            ),
        );
    }

    /// A box with a figure; the name is cut where there is too little room for both.
    fn busy(
        &mut self,
        across: (f64, f64),
        (name, title): (&str, &str),
        utilisation: Option<f64>,
        class: &str,
    ) {
        let room = ((across.1 - 8.0) / LETTER) as usize;
        let (figure, level) = match utilisation {
            Some(utilisation) => (percent(utilisation), Some(level(utilisation))),
            None => ("–".to_owned(), None),
        };
        let text = match room.checked_sub(figure.chars().count() + 2) {
            Some(rest) if rest >= 2 && !name.is_empty() => {
                format!("{}: {figure}", short(name, rest))
            }
            _ => figure.clone(),
        };
        let text = match class.contains("failed") {
            true => format!("{CROSS}{text}"),
            false => text,
        };
        let class = format!("busy{class}");
        let title = format!("{title}: {figure}");
        self.coloured(across, level, &class, (&text, &title));
    }

    /// Links, each by the busier of its directions.
    fn links(&mut self, links: &[String], (left, width): (f64, f64)) {
        let columns = match links.len() {
            0 => return,
            few if few <= LINKS_NAMED => 2.0,
            _ => 4.0,
        };
        let columns = if width > CELL { columns * 3.0 } else { columns };
        let each = (width - (columns - 1.0) * 4.0) / columns;
        for row in links.chunks(columns as usize) {
            for (place, link) in row.iter().enumerate() {
                let of = |direction| {
                    self.utilisation(Part::Link, &format!("{link}, {direction} storage"))
                };
                let busier = [of("to"), of("from")].into_iter().flatten();
                let busier = busier.reduce(f64::max);
                let name = match links.len() <= LINKS_NAMED {
                    // Its owner is what it is drawn at.
                    true => link.split_once(' ').map_or(link.as_str(), |(_, rest)| rest),
                    false => link.rsplit(' ').next().unwrap_or(link),
                };
                let title = format!("link {link}, the busier direction");
                let x = left + place as f64 * (each + 4.0);
                self.busy((x, each), (name, &title), busier, "");
            }
            self.y += LINE;
        }
    }

    fn host(&mut self, host: &HostLayout, vm_lines: usize, x: f64) {
        let bottom = self.y + vm_lines as f64 * LINE;
        let shown = shown_vms(host);
        // VMs stand on their host.
        self.y = bottom - shown.len().div_ceil(2) as f64 * LINE;
        for row in shown.chunks(2) {
            for (place, vm) in row.iter().enumerate() {
                let half = (CELL - 4.0) / 2.0;
                self.plain((x + place as f64 * (half + 4.0), half), vm, vm);
            }
            self.y += LINE;
        }
        let title = format!("host {}, its processor", host.name);
        let name = (host.name.as_str(), title.as_str());
        self.fallible((x, CELL), Part::Host, name, (&host.name, " bold"));
        self.y += LINE;
        self.links(&host.ports, (x, CELL));
    }

    fn controller(&mut self, controller: &ControllerLayout, x: f64) {
        self.links(&controller.ports, (x, CELL));
        let title = format!("controller {}, its processor", controller.name);
        let name = (controller.name.as_str(), title.as_str());
        self.fallible(
            (x, CELL),
            Part::Controller,
            name,
            (&controller.name, " bold"),
        );
        self.y += LINE;
        if let Some(partner) = &controller.partner {
            let utilisation = self.utilisation(Part::Interconnect, &controller.name);
            let name = format!("interconnect to {partner}");
            self.busy((x, CELL), (&name, &name), utilisation, "");
            self.y += LINE;
        }
    }

    fn bus(&mut self, bus: &BusLayout, x: f64) {
        for lane in &bus.lanes {
            let title = format!("bus {lane}");
            self.busy(
                (x, CELL),
                (lane, &title),
                self.utilisation(Part::Bus, lane),
                "",
            );
            self.y += LINE;
        }
    }

    fn pool(&mut self, pool: &PoolLayout) {
        self.band(&format!(
            "Pool {}, of controller {}: {} drives{}",
            pool.name,
            pool.controller,
            pool.drives.len(),
            match pool.spares.len() {
                0 => String::new(),
                spares => format!(", and {spares} that may stand in"),
            }
        ));
        self.cells(&pool.kinds, |sheet, kind, x| {
            let title = format!("drives of pool {kind}");
            let utilisation = sheet.utilisation(Part::Drives, kind);
            sheet.busy((x, CELL), (kind, &title), utilisation, " bold");
            sheet.y += LINE - GAP / 2.0;
        });
        const ROW: usize = 24;
        let each = (WIDTH - (ROW as f64 - 1.0) * 3.0) / ROW as f64;
        let drives = pool.drives.iter().map(|drive| (drive, ""));
        let spares = pool.spares.iter().map(|drive| (drive, " spare"));
        let all: Vec<(&String, &str)> = drives.chain(spares).collect();
        for row in all.chunks(ROW) {
            for (place, (drive, class)) in row.iter().enumerate() {
                let title = format!(
                    "{}drive {drive}",
                    class.trim_start().replace("spare", "spare ")
                );
                let x = place as f64 * (each + 3.0);
                self.fallible((x, each), Part::Drive, ("", &title), (drive, class));
            }
            self.y += LINE;
        }
        self.y += GAP / 2.0;
    }
}

/// Names of a host's VMs, or of some with how many more there are.
fn shown_vms(host: &HostLayout) -> Vec<String> {
    if host.vms.len() <= VMS_SHOWN {
        return host.vms.clone();
    }
    let mut shown = host.vms[..VMS_SHOWN - 1].to_vec();
    shown.push(format!("+ {} more VMs", host.vms.len() - shown.len()));
    shown
}

fn level(utilisation: f64) -> usize {
    let found = LEVELS.iter().position(|(until, _)| utilisation < *until);
    found.unwrap_or(LEVELS.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, by WCAG 2.1.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
            let value = f64::from(value) / 255.0;
            match value <= 0.039_28 {
                true => value / 12.92,
                false => ((value + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    #[test]
    fn figures_stand_out_from_their_colours() {
        for (_, colour) in LEVELS {
            let ratio = (luminance(colour) + 0.05) / (luminance(ON) + 0.05);
            // WCAG 2.1, 1.4.3, level AA.
            assert!(ratio >= 4.5, "{colour}: {ratio}");
        }
        assert_eq!([0.0, 0.25, 0.8999, 0.9, 1.0].map(level), [0, 1, 3, 4, 4]);
    }

    fn share(part: Part, name: &str, utilisation: f64) -> ShareReport {
        ShareReport {
            part,
            name: name.to_owned(),
            utilisation,
            per_s: None,
            service_ms: None,
            waiting_ms: None,
            stroke: None,
        }
    }

    /// Width and height of the view, and the figures in it.
    fn drawn(hosts: usize, drives: usize) -> (String, f64) {
        let host = |number: usize| HostLayout {
            name: format!("esx{number}"),
            ports: vec![format!("esx{number} san 1"), format!("esx{number} san 2")],
            vms: (0..9).map(|vm| format!("vm{vm}")).collect(),
        };
        let names: Vec<String> = (0..drives)
            .map(|number| format!("sas-{number:02}"))
            .collect();
        let shares: Vec<ShareReport> = names
            .iter()
            .map(|name| share(Part::Drive, name, 0.83))
            .chain([share(Part::Link, "esx0 san 1, from storage", 0.42)])
            .collect();
        let layout = LayoutReport {
            hosts: (0..hosts).map(host).collect(),
            pools: vec![PoolLayout {
                name: "data".into(),
                controller: "ctl".into(),
                kinds: Vec::new(),
                drives: names,
                spares: Vec::new(),
            }],
            ..LayoutReport::default()
        };
        let svg = drawing(&layout, &shares, &[]);
        let height = svg.split_once("viewBox=\"0 0 1120 ").unwrap().1;
        let height = height.split_once('"').unwrap().0.parse().unwrap();
        (svg, height)
    }

    #[test]
    fn a_large_site_wraps_and_stays_within_the_width() {
        let (small, small_height) = drawn(2, 48);
        let (large, large_height) = drawn(16, 120);
        assert_eq!(small.matches(">83 %<").count(), 48);
        assert_eq!(large.matches(">83 %<").count(), 120);
        assert!(
            small.contains("san 1: 42 %"),
            "the busier direction of a link"
        );
        assert!(large.contains("+ 4 more VMs"));
        // Three lines of hosts and three of drives more.
        assert!(large_height > small_height + 6.0 * LINE);
        for rect in large.split("<rect ").skip(1) {
            let of = |key: &str| {
                let from = rect.split_once(&format!(" {key}=\"")).unwrap().1;
                from.split_once('"').unwrap().0.parse::<f64>().unwrap()
            };
            assert!(of("x") >= 0.0 && of("x") + of("width") <= WIDTH + 0.1);
            assert!(of("y") + of("height") <= large_height);
        }
    }
}
