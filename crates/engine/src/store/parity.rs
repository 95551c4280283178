//! Parity of runs of rows, over buffers. In a length-only world there are no bytes
//! to reckon with, only lengths.

use super::Store;
use crate::raid::{Code, parity};
use crate::world::World;
use base::Slice;

impl<W: World> Store<W> {
    /// P and Q over the columns of a run of rows, `len` bytes each; a column that is
    /// not there counts as zeroes. Only P is meant where the code has no Q.
    pub(super) fn parity_of(
        &self,
        columns: &[Option<Slice>],
        len: usize,
        code: Code,
    ) -> [Slice; 2] {
        let buffers = self.world.buffers();
        let (mut p, mut q) = (buffers.data(len), buffers.data(len));
        let bytes: Vec<Option<&[u8]>> = columns
            .iter()
            .map(|column| column.as_ref().and_then(Slice::bytes))
            .collect();
        match (p.bytes_mut(), q.bytes_mut()) {
            (Some(p), Some(q)) if code == Code::PQ => parity::pq_of(p, q, &bytes),
            (Some(p), _) => parity::p_of(p, &bytes),
            (None, _) => {}
        }
        [p.freeze(), q.freeze()]
    }

    /// P or Q after the columns of `changes` went from the first to the second.
    pub(super) fn parity_after(
        &self,
        old: &Slice,
        is_q: bool,
        changes: &[(usize, Option<Slice>, Option<Slice>)],
    ) -> Slice {
        let mut new = self.world.buffers().data(old.len());
        new.put(0, old);
        let Some(bytes) = new.bytes_mut() else {
            return new.freeze();
        };
        let mut delta = vec![0; bytes.len()];
        for (column, before, after) in changes {
            delta.fill(0);
            for side in [before, after].into_iter().flatten() {
                if let Some(side) = side.bytes() {
                    parity::xor_into(&mut delta, side);
                }
            }
            match is_q {
                true => parity::q_update(bytes, *column, &delta),
                false => parity::xor_into(bytes, &delta),
            }
        }
        new.freeze()
    }
}
