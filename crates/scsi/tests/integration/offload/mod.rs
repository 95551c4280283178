//! Copies that initiators have the target make, as far as they need no array: what is refused. What
//! they copy is tested where the array's copier is.

#[allow(dead_code, reason = "tests of the array's copier include it, too")]
mod lists;
mod refusing;
mod sense;
