//! Looking at a page as Chromium lays it out, in a window of a given width.

use crate::program;
use serde_json::Value;

/// What a page is like in a window of some width.
#[derive(Debug)]
pub struct SeenPage {
    /// Width that the page has, in CSS pixels.
    pub room: u64,
    /// Width that it needs. With more than `room` it is scrolled sideways.
    pub needed: u64,
    /// Texts of charts.
    pub texts: u64,
    /// Those that leave their drawing.
    pub clipped: Vec<String>,
    /// Height of the lowest of them, in CSS pixels.
    pub lowest_px: f64,
}

/// Runs in the page around the one that is looked at, and says in its title what it saw.
const LOOK: &str = "
  const page = document.getElementById('page').contentDocument;
  const texts = [...page.querySelectorAll('svg.chart text')];
  const box = (element) => element.getBoundingClientRect();
  const leaves = (text) => {
    const [inner, outer] = [box(text), box(text.ownerSVGElement)];
    return inner.left < outer.left - 1 || inner.right > outer.right + 1
      || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
  };
  document.title = JSON.stringify({
    room: page.documentElement.clientWidth,
    needed: page.documentElement.scrollWidth,
    texts: texts.length,
    clipped: texts.filter(leaves).map((text) => text.textContent),
    lowest: Math.min(...texts.map((text) => box(text).height), 1000),
  });";

/// Width of a sheet of A4 on its side, without the margins of 12 mm, in CSS pixels.
pub const SHEET_WIDTH: u32 = 1031;

/// Gives the page the style that it has on paper.
const PRINT: &str = "
  const sheets = [...document.getElementById('page').contentDocument.styleSheets];
  const rules = sheets.flatMap((sheet) => [...sheet.cssRules]);
  for (const rule of rules) {
    if (rule.media && rule.media.mediaText === 'print') rule.media.mediaText = 'all';
  }";

/// Looks at `page` in a window of `width` CSS pixels.
///
/// # Panics
/// When Chromium is not there, or fails.
#[track_caller]
pub fn look(page: &str, width: u32) -> SeenPage {
    look_as(page, width, "")
}

/// Looks at `page` as it is on paper, [`SHEET_WIDTH`] wide.
///
/// # Panics
/// When Chromium is not there, or fails.
#[track_caller]
pub fn look_in_print(page: &str) -> SeenPage {
    look_as(page, SHEET_WIDTH, PRINT)
}

/// Looks at `page` after a script has run.
#[track_caller]
fn look_as(page: &str, width: u32, first: &str) -> SeenPage {
    // A frame, since windows have a least width. Its page is part of the outer one: what is
    // read from files is another origin's.
    let around = format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><body><iframe id=\"page\" style=\"border: 0; \
         width: {width}px; height: 900px\" srcdoc=\"{}\"></iframe>\
         <script>onload = () => {{{first}{LOOK}}};</script>",
        page.replace('&', "&amp;").replace('"', "&quot;")
    );
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("around.html");
    std::fs::write(&file, around).unwrap();
    let said = program::run(
        "chromium",
        &[
            "--headless",
            // As root it runs no other way.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            &format!("--user-data-dir={}", home.path().join("profile").display()),
            "--dump-dom",
            &format!("file://{}", file.display()),
        ],
    )
    .ok();
    let title = said
        .split_once("<title>")
        .and_then(|(_, rest)| rest.split_once("</title>"));
    let (title, _) = title.unwrap_or_else(|| panic!("no title in {said:.2000}"));
    let plain = title
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    seen(&serde_json::from_str(&plain).unwrap())
}

fn seen(told: &Value) -> SeenPage {
    let number = |key: &str| told[key].as_u64().unwrap();
    let clipped = told["clipped"].as_array().unwrap().iter();
    SeenPage {
        room: number("room"),
        needed: number("needed"),
        texts: number("texts"),
        clipped: clipped
            .map(|text| text.as_str().unwrap().to_owned())
            .collect(),
        lowest_px: told["lowest"].as_f64().unwrap(),
    }
}
