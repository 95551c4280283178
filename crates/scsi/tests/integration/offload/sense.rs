//! Sense data in both formats: each kind of it, by D_SENSE of the logical unit that it is of.

use super::lists::{receive, with_list, write_using, xcopy};
use super::refusing::Refusing;
use crate::bench::{Bench, VOLUME_BLOCKS, port, thin, unit, with_bench};
use scsi::ports::{AccessState, FIRST_GROUP};
use scsi::{Identity, Nexus, Response};
use std::cell::Cell;
use std::rc::Rc;
use world_sim::SimWorld;

/// `v` and `w` at LUN 0 and 1, whose mode pages initiators may change.
struct Units {
    bench: Bench,
    next: Cell<u8>,
}

fn with_units(test: impl AsyncFnOnce(Units)) {
    with_bench(async |bench| {
        let size_bytes = u64::from(VOLUME_BLOCKS) * 512;
        let made = bench.pool.create_volume(thin("w", size_bytes)).await;
        assert!(bench.target.map(1, unit(made.unwrap())));
        for lun in [0, 1] {
            let unit = bench.target.unit(lun).unwrap();
            unit.set_may_affect_others(true);
        }
        let next = Cell::new(1);
        test(Units { bench, next }).await;
    });
}

impl std::ops::Deref for Units {
    type Target = Bench;

    fn deref(&self) -> &Bench {
        &self.bench
    }
}

impl Units {
    /// A nexus that has heard of power on, with a copier that refuses.
    async fn nexus(&self) -> Rc<Nexus<SimWorld>> {
        let nexus = self.connect(self.next.get());
        self.next.set(self.next.get() + 1);
        nexus.set_copier(Rc::new(Refusing::new(&self.world)));
        for lun in self.target.luns() {
            self.run_at(&nexus, lun, &[0; 6], &[]).await;
        }
        nexus
    }

    fn naa(&self, name: &str) -> Vec<u8> {
        let uuid = self.pool.volume(name).unwrap().info().uuid;
        Identity::of(uuid).naa.to_vec()
    }

    /// Shows the snapshot `w@s` at LUN 2.
    async fn show_snapshot(&self) {
        let nobody = async { true };
        let taken = self.pool.snapshot_together(&[("w", "w@s")], 0, nobody);
        taken.await.unwrap();
        let snapshot = self.pool.volume("w@s").unwrap();
        assert!(self.target.map(2, unit(snapshot)));
    }
}

/// What sense data says, whatever its format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Said {
    code: (u8, u8, u8),
    information: Option<u64>,
    /// Bytes 15 to 17 of fixed format; the key specific descriptor.
    pointer: Option<[u8; 3]>,
    /// Of copies: the segment.
    segment: u16,
    /// What source (1) or destination (2) said, and with which status.
    forwarded: Option<(u8, u8, Box<Said>)>,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

fn fixed(bytes: &[u8]) -> Said {
    assert_eq!(
        (bytes[0] & 0x7f, usize::from(bytes[7])),
        (0x70, bytes.len() - 8)
    );
    let begins = |at: usize| Some(usize::from(bytes[at])).filter(|at| *at > 0);
    let forwarded = |side: u8| {
        let at = begins(7 + usize::from(side))?;
        Some((side, bytes[at], Box::new(fixed(&bytes[at + 1..]))))
    };
    let pointer: [u8; 3] = bytes[15..18].try_into().unwrap();
    Said {
        code: (bytes[2], bytes[12], bytes[13]),
        information: (bytes[0] & 0x80 != 0).then(|| number(&bytes[3..7])),
        pointer: (pointer[0] & 0x80 != 0).then_some(pointer),
        segment: number(&bytes[10..12]) as u16,
        forwarded: forwarded(1).or(forwarded(2)),
    }
}

fn described(bytes: &[u8]) -> Said {
    assert_eq!((bytes[0], usize::from(bytes[7])), (0x72, bytes.len() - 8));
    let mut said = Said {
        code: (bytes[1], bytes[2], bytes[3]),
        ..Said::default()
    };
    let mut rest = &bytes[8..];
    while let [kind, len, ..] = rest {
        let (one, others) = rest.split_at(usize::from(*len) + 2);
        match (kind, len) {
            (0x00, 10) => {
                assert_eq!(one[2], 0x80, "valid");
                said.information = Some(number(&one[4..]));
            }
            (0x01, 10) => said.segment = number(&one[6..8]) as u16,
            (0x02, 6) => said.pointer = Some(one[4..7].try_into().unwrap()),
            (0x0c, _) => said.forwarded = Some((one[2], one[3], Box::new(described(&one[4..])))),
            other => panic!("a descriptor {other:x?}"),
        }
        rest = others;
    }
    said
}

fn said(response: &Response, descriptors: bool) -> Said {
    assert_eq!(response.status, 2, "CHECK CONDITION");
    match descriptors {
        true => described(&response.sense),
        false => fixed(&response.sense),
    }
}

/// MODE SELECT(6) of the control page.
async fn set_d_sense(bench: &Units, nexus: &Nexus<SimWorld>, lun: u16, set: bool) {
    let flags = 2 | u8::from(set) << 2;
    let list = [
        0, 0, 0, 0, 0x0a, 10, flags, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0,
    ];
    let done = bench
        .run_at(nexus, lun, &[0x15, 0x10, 0, 0, 16, 0], &list)
        .await;
    assert_eq!(done.status, 0);
}

fn cdb(len: usize, fields: &[(usize, u8)]) -> Vec<u8> {
    let mut cdb = vec![0; len];
    for (at, byte) in fields {
        cdb[*at] = *byte;
    }
    cdb
}

/// Commands that fail, and what is said of each.
fn failing(bench: &Units) -> Vec<(Vec<u8>, Vec<u8>, Said)> {
    let code = |code| Said {
        code,
        ..Said::default()
    };
    let pointed = |of, pointer| Said {
        pointer: Some(pointer),
        ..code(of)
    };
    let (a, nobody) = (bench.naa("v"), vec![0x6a; 16]);
    let copies = |naas: &[Vec<u8>], segments: &[(u16, u16, u16, u64, u64)]| {
        let list = xcopy(naas, segments);
        (with_list(0, 0, &list), list)
    };
    let (unreachable, first) = copies(&[a.clone(), nobody], &[(0, 0, 1, 0, 9), (0, 1, 4, 0, 0)]);
    let (outside, second) = copies(
        std::slice::from_ref(&a),
        &[(0, 0, 1, 0, 9), (0, 0, 2, u64::from(VOLUME_BLOCKS) - 1, 0)],
    );
    let (protected, third) = copies(&[a, bench.naa("w@s")], &[(0, 1, 1, 0, 0)]);
    let mut unknown_type = first.clone();
    unknown_type[16] = 0xe0;
    let token = write_using(&[7; 512], 0, false, &[(0, 1)]);
    let miscompare = cdb(16, &[(0, 0x89), (13, 1)]);
    let beyond = cdb(10, &[(0, 0x28), (2, 0x7f), (8, 1)]);
    let segment = |of, segment, pointer| Said {
        segment,
        ..pointed(of, pointer)
    };
    vec![
        // Refused as CDBs: no such command, a field, what nobody has.
        (cdb(6, &[(0, 0xff)]), vec![], code((5, 0x20, 0))),
        (
            cdb(6, &[(0, 0x12), (2, 0x80), (4, 64)]),
            vec![],
            pointed((5, 0x24, 0), [0xc0, 0, 2]),
        ),
        (beyond, vec![], code((5, 0x21, 0))),
        // Parameter lists: their length, and a field.
        (
            cdb(10, &[(0, 0x42), (8, 4)]),
            vec![0; 4],
            code((5, 0x1a, 0)),
        ),
        (
            cdb(6, &[(0, 0x15), (1, 0x10), (4, 16)]),
            [&[0; 4][..], &[0x0b], &[0; 11]].concat(),
            pointed((5, 0x26, 0), [0x80, 0, 4]),
        ),
        (
            miscompare,
            [&[0; 77][..], &[1], &[0; 946]].concat(),
            Said {
                information: Some(77),
                ..code((0xe, 0x1d, 0))
            },
        ),
        // Copies: refused, and ended early.
        (
            with_list(0, 0, &unknown_type),
            unknown_type,
            pointed((5, 0x26, 7), [0x80, 0, 16]),
        ),
        (
            unreachable,
            first,
            segment((0xa, 0x0d, 2), 1, [0x80, 0, 48]),
        ),
        (outside, second, segment((0xa, 0, 0), 1, [0xa0, 0, 12])),
        (
            protected,
            third,
            Said {
                forwarded: Some((2, 2, Box::new(code((7, 0x27, 0))))),
                ..segment((0xa, 0x0d, 1), 0, [0x80, 0, 48])
            },
        ),
        (with_list(0x11, 5, &token), token, code((5, 0x23, 0x0a))),
    ]
}

#[test]
fn every_kind_of_sense_data_has_the_format_of_its_unit_and_says_the_same_in_both() {
    with_units(async |bench| {
        let nexus = bench.nexus().await;
        bench.show_snapshot().await;
        for lun in [0, 1, 2] {
            while bench.run_at(&nexus, lun, &[0; 6], &[]).await.status != 0 {}
        }
        let other = bench.nexus().await;
        for descriptors in [false, true, false] {
            set_d_sense(&bench, &nexus, 0, descriptors).await;
            for (cdb, list, expected) in failing(&bench) {
                let failed = bench.run_at(&nexus, 0, &cdb, &list).await;
                assert_eq!(said(&failed, descriptors), expected, "{cdb:x?}");
                assert_eq!(failed.descriptor_sense, descriptors);
                // Another unit is set to something else.
                let elsewhere = bench.run_at(&nexus, 1, &[0xff; 6], &[]).await;
                assert_eq!(said(&elsewhere, false).code, (5, 0x20, 0));
            }
            // Unit attentions, before a command that is right and one that is not.
            for cdb in [[0; 6], [0xff; 6]] {
                bench
                    .target
                    .resized(bench.pool.volume("v").unwrap().info().uuid);
                for at in [&nexus, &other] {
                    while bench.run_at(at, 0, &[0; 6], &[]).await.status != 0 {}
                }
                bench
                    .target
                    .resized(bench.pool.volume("v").unwrap().info().uuid);
                let told = bench.run_at(&other, 0, &cdb, &[]).await;
                assert_eq!(said(&told, descriptors).code, (6, 0x2a, 9));
                while bench.run_at(&nexus, 0, &[0; 6], &[]).await.status != 0 {}
            }
            // Not ready.
            let access = |state| bench.target.set_access(FIRST_GROUP, state, None);
            access(AccessState::Unavailable);
            for (lun, descriptors) in [(0, descriptors), (1, false)] {
                let told = bench.run_at(&nexus, lun, &[0; 6], &[]).await;
                assert_eq!(said(&told, descriptors).code, (6, 0x2a, 6));
                let told = bench.run_at(&nexus, lun, &[0; 6], &[]).await;
                assert_eq!(said(&told, descriptors).code, (2, 4, 0x0c));
            }
            access(AccessState::Optimized);
            for at in [&nexus, &other] {
                for lun in [0, 1, 2] {
                    while bench.run_at(at, lun, &[0; 6], &[]).await.status != 0 {}
                }
            }
        }
    });
}

#[test]
fn the_one_who_changes_the_format_gets_it_at_once_and_others_with_the_attention_for_it() {
    with_units(async |bench| {
        let nexus = bench.nexus().await;
        let other = bench.nexus().await;
        for descriptors in [true, false] {
            set_d_sense(&bench, &nexus, 0, descriptors).await;
            let failed = bench.run_at(&nexus, 0, &[0xff; 6], &[]).await;
            assert_eq!(said(&failed, descriptors).code, (5, 0x20, 0));
            let told = bench.run_at(&other, 0, &[0; 6], &[]).await;
            assert_eq!(said(&told, descriptors).code, (6, 0x2a, 1));
        }
        set_d_sense(&bench, &nexus, 0, true).await;
        bench.target.unit_reset(0);
        let told = bench.run_at(&nexus, 0, &[0; 6], &[]).await;
        assert_eq!(
            said(&told, false).code,
            (6, 0x29, 3),
            "a reset takes it back"
        );
    });
}

#[test]
fn request_sense_goes_by_its_own_bit() {
    with_units(async |bench| {
        let nexus = bench.nexus().await;
        for set in [false, true] {
            set_d_sense(&bench, &nexus, 0, set).await;
            for desc in [false, true] {
                bench
                    .target
                    .resized(bench.pool.volume("v").unwrap().info().uuid);
                let cdb = [3, u8::from(desc), 0, 0, 252, 0];
                // Of the unit, with an attention and without; of none at all.
                for (lun, code) in [(0, (6, 0x2a, 9)), (0, (0, 0, 0)), (9, (5, 0x25, 0))] {
                    let data = bench.run_at(&nexus, lun, &cdb, &[]).await.data.to_vec();
                    let told = if desc { described(&data) } else { fixed(&data) };
                    assert_eq!(told.code, code);
                }
            }
        }
    });
}

#[test]
fn where_there_is_no_unit_it_is_fixed() {
    with_units(async |bench| {
        let nexus = bench.target.connect(port(50), 1);
        for lun in [0, 1] {
            bench.run_at(&nexus, lun, &[0; 6], &[]).await;
            set_d_sense(&bench, &nexus, lun, true).await;
        }
        let lun = scsi::lun::encode(9);
        // One that is not mapped, one that can't be, and a well-known one.
        for lun in [lun, [0x80; 8], [0xc1, 1, 0, 0, 0, 0, 0, 0]] {
            for first in [0, 0xff] {
                let mut cdb = [0; 16];
                cdb[0] = first;
                let failed = nexus.execute(lun, cdb, bench.data(&[])).await;
                assert_eq!(said(&failed, false).code, (5, 0x25, 0));
                assert!(!failed.descriptor_sense);
            }
        }
    });
}

#[test]
fn what_is_asked_of_a_copy_afterwards_has_the_same_bytes() {
    with_units(async |bench| {
        let nexus = bench.nexus().await;
        for set in [false, true] {
            set_d_sense(&bench, &nexus, 0, set).await;
            let list = xcopy(&[bench.naa("v"), vec![6; 16]], &[(0, 1, 1, 0, 0)]);
            let failed = bench
                .run_at(&nexus, 0, &with_list(0, 0, &list), &list)
                .await;
            assert_eq!(said(&failed, set).code, (0xa, 0x0d, 2));
            let details = bench.run_at(&nexus, 0, &receive(4, 1, 500), &[]).await;
            assert_eq!(details.data.to_vec()[60..], failed.sense);
            let list = write_using(&[7; 512], 0, false, &[(0, 1)]);
            let failed = bench
                .run_at(&nexus, 0, &with_list(0x11, 5, &list), &list)
                .await;
            let told = bench.run_at(&nexus, 0, &receive(7, 5, 500), &[]).await;
            let (data, len) = (told.data.to_vec(), failed.sense.len());
            assert_eq!(data[32..32 + len], failed.sense);
            assert_eq!(data[14], len as u8);
        }
    });
}
