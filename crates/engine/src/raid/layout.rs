//! Where a group's bytes lie on its drives.
//!
//! The group's address space is cut into stripe units. Unit `u` lies in column
//! `u % columns`, as that column's unit number `u / columns`; each column is
//! `copies` drives with the same content. Drive `place` belongs to column
//! `place / copies`.

use base::GroupOffset;

/// The shape of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Sets of drives that data is striped over.
    pub columns: usize,
    /// Drives with the same content in each.
    pub copies: usize,
    /// Bytes in a row on one drive.
    pub unit_bytes: u64,
}

/// A run of bytes on one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which column.
    pub column: usize,
    /// Offset in the column's data (not on the drive: labels and metadata come
    /// before).
    pub at: u64,
    /// Offset in the run that was asked for.
    pub start: usize,
    /// Length in bytes.
    pub len: usize,
}

impl Layout {
    /// The pieces of `len` bytes at `at`, in order.
    pub fn pieces(self, at: GroupOffset, len: usize) -> impl Iterator<Item = Piece> {
        let mut start = 0;
        std::iter::from_fn(move || {
            if start == len {
                return None;
            }
            let address = at.0 + start as u64;
            // One column is a straight run: nothing to cut.
            let (column, in_column, left_in_unit) = if self.columns == 1 {
                (0, address, u64::MAX)
            } else {
                let (unit, inside) = (address / self.unit_bytes, address % self.unit_bytes);
                let columns = self.columns as u64;
                let in_column = unit / columns * self.unit_bytes + inside;
                (
                    (unit % columns) as usize,
                    in_column,
                    self.unit_bytes - inside,
                )
            };
            let taken = left_in_unit.min((len - start) as u64) as usize;
            let piece = Piece {
                column,
                at: in_column,
                start,
                len: taken,
            };
            start += taken;
            Some(piece)
        })
    }

    /// The places of the drives of `column`.
    pub fn places(self, column: usize) -> std::ops::Range<usize> {
        column * self.copies..(column + 1) * self.copies
    }

    /// The column that the drive at `place` belongs to.
    pub fn column_of(self, place: usize) -> usize {
        place / self.copies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_go_round_the_columns() {
        let layout = Layout {
            columns: 3,
            copies: 2,
            unit_bytes: 100,
        };
        let pieces: Vec<_> = layout.pieces(GroupOffset(250), 200).collect();
        let expected = [
            Piece {
                column: 2,
                at: 50,
                start: 0,
                len: 50,
            },
            Piece {
                column: 0,
                at: 100,
                start: 50,
                len: 100,
            },
            Piece {
                column: 1,
                at: 100,
                start: 150,
                len: 50,
            },
        ];
        assert_eq!(pieces, expected);
        assert_eq!(layout.places(2), 4..6);
        assert_eq!(layout.column_of(5), 2);
    }

    #[test]
    fn every_byte_has_one_home() {
        let layout = Layout {
            columns: 3,
            copies: 1,
            unit_bytes: 4,
        };
        let homes: std::collections::BTreeSet<_> = (0..48)
            .flat_map(|at| layout.pieces(GroupOffset(at), 1))
            .map(|p| (p.column, p.at))
            .collect();
        let all = (0..3).flat_map(|column| (0..16).map(move |at| (column, at)));
        assert_eq!(homes, all.collect());
    }

    #[test]
    fn one_column_is_a_straight_run() {
        let layout = Layout {
            columns: 1,
            copies: 2,
            unit_bytes: 4,
        };
        let pieces: Vec<_> = layout.pieces(GroupOffset(3), 1000).collect();
        assert_eq!(
            pieces,
            [Piece {
                column: 0,
                at: 3,
                start: 0,
                len: 1000
            }]
        );
    }
}
