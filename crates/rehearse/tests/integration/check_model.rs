//! The drive that `make check-model` builds: the model's figures are those that
//! `docs/internals/models.md` prints beside the measured figures, and those that can be told by
//! hand.

#[path = "../../examples/real_drive.rs"]
mod real_drive;

use real_drive::{DRIVE, Point, Rehearsed, grid, rehearse};

/// Cells of the rows between the marks.
fn rows() -> Vec<Vec<&'static str>> {
    let document = include_str!("../../../../docs/internals/models.md");
    let behind = document.split_once("<!-- check-model: begin -->");
    let table = behind.and_then(|(_, text)| text.split_once("<!-- check-model: end -->"));
    let Some((table, _)) = table else {
        panic!("there is no place for the table");
    };
    let lines = table.lines().filter(|line| line.starts_with('|')).skip(2);
    lines
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_document_has_what_the_model_says_and_the_errors_that_follow() {
    let (rows, points) = (rows(), grid());
    assert_eq!(rows.len(), points.len());
    for (row, point) in rows.iter().zip(points) {
        let Point {
            size_kib,
            read_percent,
            depth,
        } = point;
        let [size, reads, at, is_s, says_s, off_s, is_ms, says_ms, off_ms] = row[..] else {
            panic!("{row:?} has not nine cells");
        };
        let named = (size.into(), reads.into(), at.into());
        let point_named = (
            format!("{size_kib} KiB"),
            format!("{read_percent} %"),
            depth.to_string(),
        );
        assert_eq!(point_named, named);
        let Rehearsed { per_s, mean_ms } = rehearse(point);
        assert_eq!(format!("{per_s:.1}"), says_s, "{row:?}");
        assert_eq!(format!("{mean_ms:.1}"), says_ms, "{row:?}");
        for (says, is, off) in [(per_s, is_s, off_s), (mean_ms, is_ms, off_ms)] {
            let is: f64 = is.parse().expect("a measured figure");
            let off: f64 = off.trim_end_matches(" %").parse().expect("an error");
            let error = (says / is - 1.0) * 100.0;
            // What was measured is printed to a tenth.
            assert!((error - off).abs() < 0.06 + 5.0 / is, "{row:?}: {error}");
            assert!(error.abs() < 10.0, "{row:?}");
        }
    }
}

fn at(size_kib: u32, read_percent: u32, depth: usize) -> Rehearsed {
    rehearse(Point {
        size_kib,
        read_percent,
        depth,
    })
}

fn near(found: f64, expected: f64, within: f64) {
    let error = (found / expected - 1.0).abs();
    assert!(error < within, "{found}, not {expected}");
}

/// Reads of 40 ms, 16 at a time: 25 a second of each, and the rest waits.
#[test]
fn small_reads_take_their_delay_and_wait_for_a_slot() {
    for depth in [1, 4, 16] {
        let found = at(4, 100, depth);
        near(found.per_s, 25.0 * depth as f64, 0.001);
        near(found.mean_ms, 40.0, 0.001);
    }
    let found = at(4, 100, 64);
    near(found.per_s, 400.0, 0.001);
    near(found.mean_ms, 160.0, 0.001);
}

/// 64 KiB of 2,000,000 bytes a second: 30.52 a second of each kind, and by Little's law the
/// depth of them in the drive, but for those at the edges of the window: they overtake each
/// other.
#[test]
fn large_operations_take_what_the_bucket_gives() {
    let per_s = DRIVE.bytes_per_second as f64 / 65_536.0;
    for read_percent in [100, 0] {
        let found = at(64, read_percent, 16);
        near(found.per_s, per_s, 0.01);
        near(found.mean_ms, 16.0 / per_s * 1e3, 0.02);
    }
}
