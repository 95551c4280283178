//! Parity: P and Q over the columns of a stripe, and columns out of parity.
//!
//! P is the exclusive or of all columns. Q is the sum of g^i × column i in the field
//! of 256 elements with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d) and g = 2, as
//! in Linux's RAID 6 (H. Peter Anvin, "The mathematics of RAID-6"). A column that is
//! not there counts as zeroes.
//!
//! The loops are written so that the compiler makes vector code of them; on x86-64
//! they are there twice, and the wider one is taken where the processor has it
//! ([`wide`]).

mod field;
mod wide;

use field::{divide, exp};

/// Parity is reckoned so many bytes at a time: they stay in the nearest cache while
/// column after column comes by.
const AT_ONCE_BYTES: usize = 4 << 10;

/// P of `columns`, each as long as `p`.
pub fn p_of(p: &mut [u8], columns: &[Option<&[u8]>]) {
    assert!(
        columns
            .iter()
            .flatten()
            .all(|column| column.len() == p.len())
    );
    for (number, p) in p.chunks_mut(AT_ONCE_BYTES).enumerate() {
        let start = number * AT_ONCE_BYTES;
        p.fill(0);
        for column in columns.iter().flatten() {
            wide::xor(p, &column[start..start + p.len()]);
        }
    }
}

/// P and Q of `columns`, each as long as `p` and `q`.
pub fn pq_of(p: &mut [u8], q: &mut [u8], columns: &[Option<&[u8]>]) {
    assert_eq!(p.len(), q.len());
    assert!(
        columns
            .iter()
            .flatten()
            .all(|column| column.len() == p.len())
    );
    let parts = p.chunks_mut(AT_ONCE_BYTES).zip(q.chunks_mut(AT_ONCE_BYTES));
    for (number, (p, q)) in parts.enumerate() {
        let start = number * AT_ONCE_BYTES;
        p.fill(0);
        q.fill(0);
        // Horner's rule, from the highest column down: q = q × g + column.
        for column in columns.iter().rev() {
            match column {
                Some(column) => wide::step(p, q, &column[start..start + p.len()]),
                None => wide::double(q),
            }
        }
    }
}

/// Adds `src` to `dst`.
pub fn xor_into(dst: &mut [u8], src: &[u8]) {
    assert_eq!(dst.len(), src.len());
    wide::xor(dst, src);
}

/// Q after column `column` changed by `delta` (old exclusive-or new).
pub fn q_update(q: &mut [u8], column: usize, delta: &[u8]) {
    assert_eq!(q.len(), delta.len());
    wide::add_product(q, delta, exp(column));
}

/// The one or two columns `missing` out of the `known` ones (none: zeroes, or
/// missing) and as many parities; of both, P is taken for one column. `None` when the
/// parities given don't suffice.
///
/// # Panics
/// When three or more are missing: no caller asks for that.
pub fn solve(
    known: &[Option<&[u8]>],
    missing: &[usize],
    p: Option<&[u8]>,
    q: Option<&[u8]>,
) -> Option<Vec<Vec<u8>>> {
    match (missing, p, q) {
        ([], ..) => Some(Vec::new()),
        ([_], Some(p), _) => {
            let mut column = p.to_vec();
            for other in known.iter().flatten() {
                xor_into(&mut column, other);
            }
            Some(vec![column])
        }
        ([index], None, Some(q)) => {
            let (_, mut column) = sums(known, q.len());
            xor_into(&mut column, q);
            wide::multiply(&mut column, divide(1, exp(*index)));
            Some(vec![column])
        }
        ([first, second], Some(p), Some(q)) => Some(solve_two(known, (*first, *second), p, q)),
        ([_] | [_, _], ..) => None,
        _ => panic!("{} columns are missing", missing.len()),
    }
}

/// P and Q of what is known.
fn sums(known: &[Option<&[u8]>], len: usize) -> (Vec<u8>, Vec<u8>) {
    let (mut p, mut q) = (vec![0; len], vec![0; len]);
    pq_of(&mut p, &mut q, known);
    (p, q)
}

/// With P' and Q' over the two missing columns x and y alone:
/// Dx = (g^y × P' + Q') / (g^x + g^y), Dy = P' + Dx.
fn solve_two(known: &[Option<&[u8]>], (x, y): (usize, usize), p: &[u8], q: &[u8]) -> Vec<Vec<u8>> {
    let (mut left_p, mut left_q) = sums(known, p.len());
    xor_into(&mut left_p, p);
    xor_into(&mut left_q, q);
    let mut dx = left_p.clone();
    wide::multiply(&mut dx, exp(y));
    xor_into(&mut dx, &left_q);
    wide::multiply(&mut dx, divide(1, exp(x) ^ exp(y)));
    let mut dy = left_p;
    xor_into(&mut dy, &dx);
    vec![dx, dy]
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    /// The field, bit by bit.
    fn slow_multiply(mut a: u8, mut b: u8) -> u8 {
        let mut product = 0;
        while b != 0 {
            if b & 1 == 1 {
                product ^= a;
            }
            let carry = a & 0x80 != 0;
            a <<= 1;
            if carry {
                a ^= 0x1d;
            }
            b >>= 1;
        }
        product
    }

    fn slow_q(columns: &[Vec<u8>]) -> Vec<u8> {
        let power = |index: usize| (0..index).fold(1, |power, _| slow_multiply(power, 2));
        let byte = |at: usize| {
            columns.iter().enumerate().fold(0, |sum, (index, column)| {
                sum ^ slow_multiply(power(index), column[at])
            })
        };
        (0..columns[0].len()).map(byte).collect()
    }

    fn columns(prng: &mut Prng, count: usize, len: usize) -> Vec<Vec<u8>> {
        let mut column = || {
            let mut bytes = vec![0; len];
            prng.fill(&mut bytes);
            bytes
        };
        (0..count).map(|_| column()).collect()
    }

    fn borrowed(columns: &[Vec<u8>]) -> Vec<Option<&[u8]>> {
        columns.iter().map(|column| Some(&column[..])).collect()
    }

    #[test]
    fn known_vectors() {
        // Powers of g in this field: g^8 = 0x1d, g^25 = 3 (Anvin, table of logarithms).
        assert_eq!(
            (exp(0), exp(1), exp(8), exp(25), exp(255)),
            (1, 2, 0x1d, 3, 1)
        );
        let data = [vec![0x01; 8], vec![0x01; 8], vec![0x80; 8]];
        let (mut p, mut q) = ([0; 8], [0; 8]);
        pq_of(&mut p, &mut q, &borrowed(&data));
        // 1 + 2×1 + 4×0x80 = 1 ^ 2 ^ 0x3a
        assert_eq!((p, q), ([0x80; 8], [0x39; 8]));
    }

    #[test]
    fn both_parities_match_the_slow_reference() {
        let mut prng = Prng::from_seed(1);
        for len in [1, 7, 31, 32, 33, 64, 512, 4096, 4099] {
            for count in [1, 2, 3, 8, 30] {
                let data = columns(&mut prng, count, len);
                let (mut p, mut q) = (vec![9; len], vec![9; len]);
                pq_of(&mut p, &mut q, &borrowed(&data));
                let mut alone = vec![7; len];
                p_of(&mut alone, &borrowed(&data));
                assert_eq!(p, alone);
                assert_eq!(q, slow_q(&data), "{count} columns of {len}");
            }
        }
    }

    #[test]
    fn a_changed_column_changes_q_by_its_power() {
        let mut prng = Prng::from_seed(2);
        for column in 0..30 {
            let mut data = columns(&mut prng, 30, 100);
            let (mut p, mut q) = (vec![0; 100], vec![0; 100]);
            pq_of(&mut p, &mut q, &borrowed(&data));
            let new = columns(&mut prng, 1, 100).remove(0);
            let mut delta = data[column].clone();
            xor_into(&mut delta, &new);
            data[column] = new;
            q_update(&mut q, column, &delta);
            assert_eq!(q, slow_q(&data));
        }
    }

    #[test]
    fn any_one_or_two_columns_come_back() {
        let mut prng = Prng::from_seed(3);
        for count in [2, 3, 6, 12] {
            let data = columns(&mut prng, count, 96);
            let (mut p, mut q) = (vec![0; 96], vec![0; 96]);
            pq_of(&mut p, &mut q, &borrowed(&data));
            for x in 0..count {
                let mut known = borrowed(&data);
                known[x] = None;
                for (p, q) in [
                    (Some(&p[..]), None),
                    (None, Some(&q[..])),
                    (Some(&p[..]), Some(&q[..])),
                ] {
                    assert_eq!(solve(&known, &[x], p, q).unwrap(), [data[x].clone()]);
                }
                assert!(solve(&known, &[x], None, None).is_none());
                for y in (0..count).filter(|y| *y != x) {
                    let mut known = known.clone();
                    known[y] = None;
                    let found = solve(&known, &[x, y], Some(&p), Some(&q)).unwrap();
                    assert_eq!(found, [data[x].clone(), data[y].clone()]);
                    assert!(solve(&known, &[x, y], Some(&p), None).is_none());
                }
            }
        }
    }

    #[test]
    fn an_absent_column_counts_as_zeroes() {
        let mut prng = Prng::from_seed(4);
        let mut data = columns(&mut prng, 4, 64);
        data[1].fill(0);
        data[3].fill(0);
        let mut absent = borrowed(&data);
        absent[1] = None;
        absent[3] = None;
        let (mut p, mut q) = (vec![0; 64], vec![0; 64]);
        pq_of(&mut p, &mut q, &absent);
        assert_eq!(q, slow_q(&data));
    }
}
