//! REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS (SPC-4 clause 6.36).

/// ABORT TASK, ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET.
const FUNCTIONS: u8 = 0x80 | 0x40 | 0x10 | 0x08;
/// TARGET WARM RESET has the bit that SCSI-2's TARGET RESET had (TRS). It is there where one
/// initiator may affect the others.
const TARGET_RESET: u8 = 0x02;

/// Parameter data; extended with timeouts, of which there are none.
pub(crate) fn task_functions(extended: bool, may_reset: bool) -> Vec<u8> {
    let reset = if may_reset { TARGET_RESET } else { 0 };
    let mut data = vec![FUNCTIONS | reset, 0, 0, 0];
    if extended {
        // REPORTED DATA LENGTH counts what follows the first four bytes.
        data[3] = 12;
        data.resize(16, 0);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_byte_by_byte() {
        assert_eq!(task_functions(false, true), [0xda, 0, 0, 0]);
        assert_eq!(task_functions(false, false), [0xd8, 0, 0, 0]);
        let long = [0xda, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(task_functions(true, true), long);
    }
}
