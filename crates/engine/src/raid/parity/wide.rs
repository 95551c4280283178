//! The inner loops of parity, for the processor at hand.
//!
//! One source for each loop; with AVX2 it is compiled for that, too, and chosen at
//! run time. Both give the same bytes (the tests compare them).
#![allow(
    unsafe_code,
    reason = "a function compiled for AVX2 may only be called where the processor has it"
)]

/// One loop, twice.
macro_rules! loops {
    ($name:ident, $avx2:ident, ($($arg:ident: $type:ty),*), $body:block) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $avx2($($arg: $type),*) $body

        pub fn $name($($arg: $type),*) {
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as was just asked.
                return unsafe { $avx2($($arg),*) };
            }
            $body
        }
    };
}

/// A byte times g.
#[inline(always)]
fn doubled(byte: u8) -> u8 {
    // The mask is all ones where the highest bit is set: no branch, so it goes wide.
    let mask = ((byte as i8) >> 7) as u8;
    (byte << 1) ^ (mask & 0x1d)
}

/// A byte times `factor`: the sum of its doubles where the factor has a bit. Masks,
/// not branches and not a table, so it goes wide.
#[inline(always)]
fn times(byte: u8, factor: u8) -> u8 {
    let (mut double, mut product) = (byte, 0);
    let mut bit = 0;
    while bit < 8 {
        product ^= double & 0u8.wrapping_sub(factor >> bit & 1);
        double = doubled(double);
        bit += 1;
    }
    product
}

loops!(multiply, multiply_avx2, (bytes: &mut [u8], factor: u8), {
    for byte in bytes {
        *byte = times(*byte, factor);
    }
});

loops!(add_product, add_product_avx2, (dst: &mut [u8], src: &[u8], factor: u8), {
    for (to, from) in dst.iter_mut().zip(src) {
        *to ^= times(*from, factor);
    }
});

loops!(xor, xor_avx2, (dst: &mut [u8], src: &[u8]), {
    for (to, from) in dst.iter_mut().zip(src) {
        *to ^= from;
    }
});

loops!(double, double_avx2, (q: &mut [u8]), {
    for byte in q {
        *byte = doubled(*byte);
    }
});

loops!(step, step_avx2, (p: &mut [u8], q: &mut [u8], column: &[u8]), {
    for ((p, q), byte) in p.iter_mut().zip(q).zip(column) {
        *p ^= byte;
        *q = doubled(*q) ^ byte;
    }
});

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    #[test]
    fn wide_products_are_those_of_the_tables() {
        for byte in 0..=255 {
            assert_eq!(doubled(byte), super::super::field::multiply(byte, 2));
            for factor in 0..=255 {
                let product = super::super::field::multiply(byte, factor);
                assert_eq!(times(byte, factor), product);
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn both_ways_give_the_same_bytes() {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        let mut prng = Prng::from_seed(1);
        for len in [0, 1, 31, 32, 33, 4096] {
            let mut random = || {
                let mut bytes = vec![0; len];
                prng.fill(&mut bytes);
                bytes
            };
            let (p, q, column) = (random(), random(), random());
            let mut added = p.clone();
            // SAFETY: the processor has AVX2, as was asked above.
            unsafe { add_product_avx2(&mut added, &column, 0x8e) };
            let by_byte = p.iter().zip(&column).map(|(p, c)| p ^ times(*c, 0x8e));
            assert!(added.into_iter().eq(by_byte));
            let (mut wide_p, mut wide_q) = (p.clone(), q.clone());
            // SAFETY: the processor has AVX2, as was asked above.
            unsafe { step_avx2(&mut wide_p, &mut wide_q, &column) };
            let narrow_p: Vec<u8> = p.iter().zip(&column).map(|(p, c)| p ^ c).collect();
            let narrow_q: Vec<u8> = q
                .iter()
                .zip(&column)
                .map(|(q, c)| doubled(*q) ^ c)
                .collect();
            assert_eq!((wide_p, wide_q), (narrow_p, narrow_q));
        }
    }
}
