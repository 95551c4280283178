//! The field of 256 elements, by tables that are made when the program is compiled.

const POLYNOMIAL: u16 = 0x11d;

const EXP: [u8; 256] = {
    let mut table = [0; 256];
    let mut value: u16 = 1;
    let mut index = 0;
    while index < 256 {
        table[index] = value as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= POLYNOMIAL;
        }
        index += 1;
    }
    table
};

const LOG: [u8; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 255 {
        table[EXP[index] as usize] = index as u8;
        index += 1;
    }
    table
};

/// g to the power of `index`.
pub fn exp(index: usize) -> u8 {
    EXP[index % 255]
}

/// The product, the slow way: what the wide loops are compared with.
#[cfg(test)]
pub fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    exp(usize::from(LOG[usize::from(a)]) + usize::from(LOG[usize::from(b)]))
}

/// The quotient; `b` is not zero.
pub fn divide(a: u8, b: u8) -> u8 {
    assert!(b != 0, "a division by zero");
    if a == 0 {
        return 0;
    }
    exp(usize::from(LOG[usize::from(a)]) + 255 - usize::from(LOG[usize::from(b)]))
}
