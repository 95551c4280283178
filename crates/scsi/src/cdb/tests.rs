//! CDBs byte by byte.

use super::*;

fn decoded(bytes: &[u8]) -> Result<Command, Sense> {
    let mut cdb = [0; 16];
    cdb[..bytes.len()].copy_from_slice(bytes);
    decode(&cdb)
}

#[test]
fn extents_are_read_from_every_length_of_cdb() {
    let extent = |lba, blocks| {
        Ok(Command::Read(Extent {
            lba: Lba(lba),
            blocks,
        }))
    };
    assert_eq!(decoded(&[0x08, 0x1f, 2, 3, 4, 0]), extent(0x1f_0203, 4));
    assert_eq!(
        decoded(&[0x28, 0, 1, 2, 3, 4, 0, 5, 6, 0]),
        extent(0x0102_0304, 0x0506)
    );
    let cdb = [0xa8, 0, 1, 2, 3, 4, 0, 0, 5, 6, 0, 0];
    assert_eq!(decoded(&cdb), extent(0x0102_0304, 0x0506));
    let cdb = [0x88, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x7f, 9, 0, 0];
    assert_eq!(decoded(&cdb), extent(0x0102_0304_0506_0708, 0x7f09));
}

#[test]
fn every_command_of_the_table_is_decoded_and_no_other() {
    for opcode in 0..=255 {
        let known = COMMANDS
            .iter()
            .find(|definition| definition.opcode == opcode);
        if known.is_none() {
            assert_eq!(decoded(&[opcode]), Err(Sense::INVALID_OPCODE));
        }
    }
    for definition in COMMANDS {
        let (opcode, action) = (definition.opcode, definition.action.unwrap_or(0));
        let cdb = [opcode, action as u8];
        assert!(decoded(&cdb).is_ok(), "{opcode:#x} {action:#x}");
    }
}

#[test]
fn write_same_in_both_lengths() {
    let command = |unmap, has_data, blocks, length_byte| {
        let lba = Lba(0x0102_0304);
        Ok(Command::WriteSame(WriteSame {
            extent: Extent { lba, blocks },
            unmap,
            has_data,
            length_byte,
        }))
    };
    let ten = |flags| [0x41, flags, 1, 2, 3, 4, 0, 5, 6, 0];
    assert_eq!(decoded(&ten(0)), command(false, true, 0x0506, 7));
    assert_eq!(decoded(&ten(8)), command(true, true, 0x0506, 7));
    let wrong = Err(Sense::invalid_field(1, Some(0)));
    assert_eq!(decoded(&ten(1)), wrong, "only the long one has NDOB");
    let wrong = Err(Sense::invalid_field(1, Some(4)));
    assert_eq!(decoded(&ten(0x18)), wrong, "ANCHOR");
    let sixteen = |flags, blocks: u32| {
        let [a, b, c, d] = blocks.to_be_bytes();
        [0x93, flags, 0, 0, 0, 0, 1, 2, 3, 4, a, b, c, d, 0, 0]
    };
    assert_eq!(decoded(&sixteen(0, 7)), command(false, true, 7, 10));
    assert_eq!(decoded(&sixteen(9, 0)), command(true, false, 0, 10));
    let most = MAX_WRITE_SAME_BLOCKS;
    assert_eq!(decoded(&sixteen(1, most)), command(false, false, most, 10));
    let wrong = Err(Sense::invalid_field(10, None));
    assert_eq!(decoded(&sixteen(1, most + 1)), wrong);
}

#[test]
fn unmap_and_get_lba_status() {
    let unmap = Ok(Command::Unmap { list_bytes: 0x0102 });
    assert_eq!(decoded(&[0x42, 0, 0, 0, 0, 0, 3, 1, 2, 0]), unmap);
    let wrong = Err(Sense::invalid_field(1, Some(0)));
    assert_eq!(
        decoded(&[0x42, 1, 0, 0, 0, 0, 0, 0, 24, 0]),
        wrong,
        "ANCHOR"
    );
    let status = Ok(Command::GetLbaStatus {
        lba: Lba(0x0102_0304_0506_0708),
        allocation: 0x090a,
    });
    let cdb = [0x9e, 0x12, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 9, 10, 0, 0];
    assert_eq!(decoded(&cdb), status);
}

#[test]
fn data_out_is_wanted_by_commands_that_take_data_alone() {
    let wanted = |bytes: &[u8]| {
        let mut cdb = [0; 16];
        cdb[..bytes.len()].copy_from_slice(bytes);
        {
            let cdb = Cdb::from(cdb);
            (cdb.data_out_bytes(), cdb.data_bytes())
        }
    };
    assert_eq!(wanted(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 3, 0]), (1536, 1536));
    assert_eq!(wanted(&[0x28, 0, 0, 0, 0, 0, 0, 0, 3, 0]), (0, 1536));
    assert_eq!(wanted(&[0x2f, 2, 0, 0, 0, 0, 0, 0, 3, 0]), (1536, 1536));
    assert_eq!(wanted(&[0x2f, 0, 0, 0, 0, 0, 0, 0, 3, 0]), (0, 1536));
    assert_eq!(
        wanted(&[0x2a, 0x20, 0, 0, 0, 0, 0, 0, 3, 0]),
        (0, 0),
        "to be refused"
    );
    assert_eq!(wanted(&[0x12, 0, 0, 0, 96, 0]), (0, 0));
    assert_eq!(wanted(&[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0]), (24, 24));
    let same = |flags, blocks| {
        let cdb = [0x93, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, blocks, 1, 0, 0];
        wanted(&cdb)
    };
    assert_eq!(same(0, 0), (1024, 512));
    assert_eq!(same(8, 9), (1024, 1 << 20), "more than a piece");
    assert_eq!(same(1, 9), (0, 1 << 20), "no data");
}

#[test]
fn three_commands_are_answered_without_a_unit_be_they_wrong_or_not() {
    for opcode in 0..=255 {
        let is_one = [0x03, 0x12, 0xa0].contains(&opcode);
        for rest in [0, 0xff] {
            let mut cdb = [rest; 16];
            cdb[0] = opcode;
            let cdb = Cdb::from(cdb);
            assert_eq!(cdb.is_answered_anywhere(), is_one, "{opcode:#x}");
        }
    }
}
