//! The versions of the format, and what each says of how a label is written: [`Format`].

use super::{Label, PoolIdentity, Spacing};
use crate::codec::{Reader, Writer};
use crate::layout::{Layout, SumOrder};

/// The newest format that this version reads: that of pools that have, or had, a group with
/// distributed spares, whose checksums are by span. A program that knows no such group would look
/// for them on the wrong drives.
pub const FORMAT_VERSION: u32 = 9;

/// The format of pools that have, or had, a group with distributed spares of an older program: its
/// checksums are in the order of the data blocks' numbers.
pub(super) const WITH_SPREAD_GROUP: u32 = 8;

/// The format of other new pools. Its labels say how twins lie, how many lanes there are, and which
/// page numbers each group has.
pub(super) const WITH_PAGE_NUMBERS: u32 = 7;

/// The format of older pools that have a log group. Its labels say how twins lie, and how many
/// lanes there are. A program that knows no log groups would take their drives for those of data.
pub(super) const WITH_LOG_GROUP: u32 = 6;

/// The formats of other pools: how twins lie, and whether the label says how many lanes there are.
pub(super) const FORMATS: [(u32, Layout, bool); 4] = [
    (2, Layout::Adjacent, false),
    (3, Layout::Adjacent, true),
    (4, Layout::Apart, false),
    (5, Layout::Apart, true),
];

/// What people can do about a label of another format version.
pub fn other_version(version: u32) -> String {
    let advice = match version < FORMAT_VERSION {
        true => {
            "it was written before any release; copy what is on it with the program that wrote it, or wipe the drive if that can go"
        }
        false => "use the program that wrote it, or a newer one",
    };
    format!(
        "a label of format version {version}, and this program knows those up to {FORMAT_VERSION}: {advice}"
    )
}

/// How a label is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// By its version: how twins lie, and whether it says how many lanes there are.
    ByVersion(Layout, bool),
    /// It says both itself. By its version: how page numbers are spaced.
    SaysAll(Spacing),
    /// As of [`Spacing::Own`], and some group has distributed spares, checksums in this order.
    Spread(SumOrder),
}

impl Format {
    pub(super) fn of_version(version: u32) -> Option<Format> {
        match version {
            FORMAT_VERSION => return Some(Format::Spread(SumOrder::BySpan)),
            WITH_SPREAD_GROUP => return Some(Format::Spread(SumOrder::Numbered)),
            WITH_PAGE_NUMBERS => return Some(Format::SaysAll(Spacing::Own)),
            WITH_LOG_GROUP => return Some(Format::SaysAll(Spacing::Widest)),
            _ => {}
        }
        let known = FORMATS.iter().find(|(format, ..)| *format == version);
        known.map(|(_, layout, lanes)| Format::ByVersion(*layout, *lanes))
    }

    /// The format that a label is written in.
    pub(super) fn of(label: &Label) -> Format {
        let pool = &label.pool;
        match pool.spacing {
            Spacing::Own if label.has_sums_by_span() => Format::Spread(SumOrder::BySpan),
            Spacing::Own if label.has_spread_group() => Format::Spread(SumOrder::Numbered),
            Spacing::Own => Format::SaysAll(Spacing::Own),
            Spacing::Widest if label.has_log_group() => Format::SaysAll(Spacing::Widest),
            Spacing::Widest => Format::ByVersion(pool.layout, pool.lanes > 1),
        }
    }

    /// Its number on drives.
    pub(super) fn version(self) -> u32 {
        match self {
            Format::Spread(SumOrder::BySpan) => FORMAT_VERSION,
            Format::Spread(SumOrder::Numbered) => WITH_SPREAD_GROUP,
            Format::SaysAll(Spacing::Own) => WITH_PAGE_NUMBERS,
            Format::SaysAll(Spacing::Widest) => WITH_LOG_GROUP,
            Format::ByVersion(layout, lanes) => {
                let of_it = |format: &&(u32, Layout, bool)| (format.1, format.2) == (layout, lanes);
                let found = FORMATS.iter().find(of_it);
                found.map_or_else(|| unreachable!(), |(version, ..)| *version)
            }
        }
    }

    /// Writes how many lanes there are, which one this is, and how twins lie.
    pub(super) fn write_lanes(self, w: &mut Writer, pool: &PoolIdentity) {
        if !matches!(self, Format::ByVersion(_, false)) {
            w.u16(pool.lanes);
            w.u16(pool.lane);
        }
        if !matches!(self, Format::ByVersion(..)) {
            w.u8(match pool.layout {
                Layout::Adjacent => 0,
                Layout::Apart => 1,
            });
        }
    }

    /// Reads what [`Format::write_lanes`] writes, and how page numbers are spaced.
    pub(super) fn read_lanes(self, r: &mut Reader<'_>, pool: &mut PoolIdentity) -> Option<()> {
        if !matches!(self, Format::ByVersion(_, false)) {
            (pool.lanes, pool.lane) = (r.u16()?, r.u16()?);
        }
        (pool.layout, pool.spacing) = match self {
            Format::ByVersion(layout, _) => (layout, Spacing::Widest),
            Format::SaysAll(spacing) => (layout_of(r.u8()?)?, spacing),
            Format::Spread(_) => (layout_of(r.u8()?)?, Spacing::Own),
        };
        Some(())
    }
}

/// How twins lie, by its code.
fn layout_of(code: u8) -> Option<Layout> {
    match code {
        0 => Some(Layout::Adjacent),
        1 => Some(Layout::Apart),
        _ => None,
    }
}
