//! Big-endian fields of parameter lists.

/// The number in the `len` bytes from `at` on, eight at most; zero where there are none.
pub(super) fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let field = bytes.iter().skip(at).take(len);
    field.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Puts `value` into the bytes from `at` on.
pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    for (to, from) in bytes.iter_mut().skip(at).zip(value) {
        *to = *from;
    }
}
