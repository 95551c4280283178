//! Reservations, persistent and of the old kind, as several initiators meet them.

use crate::bench::{Bench, PAGE_BYTES, TARGET, port, sense, thin, unit, with_bench};
use scsi::{InitiatorPort, Nexus, Target};
use std::rc::Rc;
use world_sim::SimWorld;

const GOOD: u8 = 0;
const CONFLICT: u8 = 0x18;

const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const RELEASE: u8 = 2;
const CLEAR: u8 = 3;
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;
const REGISTER_AND_IGNORE: u8 = 6;
const MOVE: u8 = 7;

const APTPL: u8 = 1;
const ALL_TG_PT: u8 = 4;
const SPEC_I_PT: u8 = 8;

/// Types (SPC-4 table 213).
const TYPES: [u8; 6] = [1, 3, 5, 6, 7, 8];

type Host = Rc<Nexus<SimWorld>>;

fn list(key: u64, action_key: u64, flags: u8) -> Vec<u8> {
    let mut list = [key.to_be_bytes(), action_key.to_be_bytes()].concat();
    list.extend([0, 0, 0, 0, flags, 0, 0, 0]);
    list
}

/// PERSISTENT RESERVE OUT with this list; its status, and sense if it has any.
async fn out_with(bench: &Bench, host: &Host, action: u8, kind: u8, list: &[u8]) -> (u8, u8, u8) {
    let [a, b, c, d] = (list.len() as u32).to_be_bytes();
    let cdb = [0x5f, action, kind, 0, 0, a, b, c, d, 0];
    let response = bench.run(host, &cdb, list).await;
    match response.sense.is_empty() {
        true => (response.status, 0, 0),
        false => (response.status, response.sense[12], response.sense[13]),
    }
}

async fn out(bench: &Bench, host: &Host, action: u8, kind: u8, keys: (u64, u64)) -> u8 {
    let list = list(keys.0, keys.1, 0);
    out_with(bench, host, action, kind, &list).await.0
}

async fn read_in(bench: &Bench, host: &Host, action: u8) -> Vec<u8> {
    bench
        .good(host, &[0x5e, action, 0, 0, 0, 0, 0, 0xff, 0xff, 0], &[])
        .await
}

async fn keys(bench: &Bench, host: &Host) -> Vec<u64> {
    let data = read_in(bench, host, 0).await;
    let keys = data[8..].as_chunks::<8>().0;
    keys.iter().map(|key| u64::from_be_bytes(*key)).collect()
}

/// Generation, and key and type of what is held.
async fn held(bench: &Bench, host: &Host) -> Option<(u64, u8)> {
    let data = read_in(bench, host, 1).await;
    let held = data.get(8..24)?;
    Some((u64::from_be_bytes(*held.first_chunk()?), held[13]))
}

async fn status(bench: &Bench, host: &Host, cdb: &[u8], data: &[u8]) -> u8 {
    bench.run(host, cdb, data).await.status
}

async fn reads(bench: &Bench, host: &Host) -> u8 {
    status(bench, host, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0], &[]).await
}

async fn writes(bench: &Bench, host: &Host) -> u8 {
    let cdb = [0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    status(bench, host, &cdb, &[1; 512]).await
}

async fn told(bench: &Bench, host: &Host) -> (u8, u8, u8) {
    let response = bench.run(host, &[0; 6], &[]).await;
    match response.sense.is_empty() {
        true => (0, 0, 0),
        false => sense(&response),
    }
}

#[test]
fn each_type_admits_whom_it_says() {
    with_bench(async |bench| {
        let holder = bench.settled_as(1).await;
        let registered = bench.settled_as(2).await;
        let stranger = bench.settled_as(3).await;
        for (host, key) in [(&holder, 1), (&registered, 2)] {
            assert_eq!(out(&bench, host, REGISTER, 0, (0, key)).await, GOOD);
        }
        for kind in TYPES {
            assert_eq!(out(&bench, &holder, RESERVE, kind, (1, 0)).await, GOOD);
            let of_all = kind >= 7;
            let key = if of_all { 0 } else { 1 };
            assert_eq!(held(&bench, &stranger).await, Some((key, kind)));
            let (reads_in, of_registrants) = (kind % 2 == 1 && kind != 3, kind >= 5);
            let may = |is: bool| if is { GOOD } else { CONFLICT };
            assert_eq!(
                (reads(&bench, &holder).await, writes(&bench, &holder).await),
                (GOOD, GOOD)
            );
            let access = (
                reads(&bench, &registered).await,
                writes(&bench, &registered).await,
            );
            let expected = (may(reads_in || of_registrants), may(of_registrants));
            assert_eq!(access, expected, "registered, type {kind}");
            let access = (
                reads(&bench, &stranger).await,
                writes(&bench, &stranger).await,
            );
            assert_eq!(access, (may(reads_in), CONFLICT), "stranger, type {kind}");
            // What tells of the unit is for all.
            for cdb in [
                &[0u8; 6][..],
                &[0x12, 0, 0, 0, 96, 0],
                &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            ] {
                assert_eq!(status(&bench, &stranger, cdb, &[]).await, GOOD);
            }
            // Of a kind for all registrants each may release it.
            let by = if of_all { &registered } else { &holder };
            let own = if of_all { 2 } else { 1 };
            assert_eq!(out(&bench, by, RELEASE, kind, (own, 0)).await, GOOD);
            let other = if of_all { &holder } else { &registered };
            let released = if of_registrants {
                (6, 0x2a, 4)
            } else {
                (0, 0, 0)
            };
            assert_eq!(told(&bench, other).await, released, "type {kind}");
        }
    });
}

#[test]
fn registering_takes_the_right_key_and_counts() {
    with_bench(async |bench| {
        let host = bench.settled_as(1).await;
        assert_eq!(out(&bench, &host, REGISTER, 0, (7, 8)).await, CONFLICT);
        assert_eq!(out(&bench, &host, REGISTER, 0, (0, 8)).await, GOOD);
        assert_eq!(out(&bench, &host, REGISTER, 0, (7, 9)).await, CONFLICT);
        assert_eq!(out(&bench, &host, REGISTER, 0, (8, 9)).await, GOOD);
        let ignoring = out(&bench, &host, REGISTER_AND_IGNORE, 0, (77, 10)).await;
        assert_eq!((ignoring, keys(&bench, &host).await), (GOOD, vec![10]));
        assert_eq!(out(&bench, &host, RESERVE, 3, (9, 0)).await, CONFLICT);
        assert_eq!(out(&bench, &host, RESERVE, 3, (10, 0)).await, GOOD);
        assert_eq!(out(&bench, &host, RESERVE, 3, (10, 0)).await, GOOD, "again");
        let generation = read_in(&bench, &host, 0).await[..4].to_vec();
        assert_eq!(generation, [0, 0, 0, 3], "registrations alone count");
        let refused = |kind| {
            let (bench, host) = (&bench, &host);
            async move { out_with(bench, host, RESERVE, kind, &list(10, 0, 0)).await }
        };
        assert_eq!(refused(1).await, (CONFLICT, 0, 0), "another type");
        assert_eq!(refused(2).await, (2, 0x24, 0), "no such type");
        assert_eq!(refused(0x13).await, (2, 0x24, 0), "no such scope");
        let wrong = out_with(&bench, &host, RELEASE, 1, &list(10, 0, 0)).await;
        assert_eq!(wrong, (2, 0x26, 4), "invalid release");
        assert_eq!(out(&bench, &host, REGISTER, 0, (10, 0)).await, GOOD);
        assert_eq!(held(&bench, &host).await, None, "it ends with its holder");
        assert_eq!(out(&bench, &host, CLEAR, 0, (10, 0)).await, CONFLICT);
    });
}

#[test]
fn a_list_that_is_wrong_changes_nothing() {
    with_bench(async |bench| {
        let host = bench.settled_as(1).await;
        let refused = |list: Vec<u8>, action| {
            let (bench, host) = (&bench, &host);
            async move { out_with(bench, host, action, 0, &list).await }
        };
        for len in [0, 8, 23] {
            let short = list(0, 1, 0)[..len].to_vec();
            assert_eq!(refused(short, REGISTER).await, (2, 0x1a, 0), "{len} bytes");
        }
        let long = [&list(0, 1, 0)[..], &[0]].concat();
        assert_eq!(refused(long.clone(), REGISTER).await, (2, 0x1a, 0));
        let named =
            |ids: &[u8], len: u32| [&list(0, 1, SPEC_I_PT)[..], &len.to_be_bytes(), ids].concat();
        assert_eq!(refused(named(&[], 1), REGISTER).await, (2, 0x1a, 0));
        assert_eq!(refused(named(&[5; 24], 24), REGISTER).await, (2, 0x26, 0));
        let ignoring = list(0, 1, SPEC_I_PT);
        assert_eq!(refused(ignoring, REGISTER_AND_IGNORE).await, (2, 0x26, 0));
        // The CDB says more than comes.
        let cdb = [0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0];
        let cut = bench.run(&host, &cdb, &list(0, 1, 0)[..20]).await;
        assert_eq!(sense(&cut), (5, 0x1a, 0));
        let huge = [0x5f, 0, 0, 0, 0, 0, 2, 0, 0, 0];
        let huge = bench.run(&host, &huge, &vec![0; 0x1_0001]).await;
        assert_eq!(sense(&huge), (5, 0x1a, 0));
        assert_eq!(keys(&bench, &host).await, Vec::<u64>::new());
    });
}

#[test]
fn preempting_takes_registrations_and_reservations() {
    with_bench(async |bench| {
        let [one, two, three] = [
            bench.settled_as(1).await,
            bench.settled_as(2).await,
            bench.settled_as(3).await,
        ];
        for (host, key) in [(&one, 1), (&two, 2), (&three, 3)] {
            assert_eq!(out(&bench, host, REGISTER, 0, (0, key)).await, GOOD);
        }
        // Without a reservation only the registration goes.
        assert_eq!(out(&bench, &one, PREEMPT, 0, (1, 3)).await, GOOD);
        assert_eq!(keys(&bench, &one).await, [1, 2]);
        assert_eq!(told(&bench, &three).await, (6, 0x2a, 5));
        assert_eq!(out(&bench, &one, PREEMPT, 0, (1, 3)).await, CONFLICT);
        assert_eq!(out(&bench, &three, PREEMPT, 0, (3, 1)).await, CONFLICT);
        let nobody = out_with(&bench, &one, PREEMPT, 0, &list(1, 0, 0)).await;
        assert_eq!(nobody, (2, 0x26, 0));
        // What is held is taken over, with another type.
        assert_eq!(out(&bench, &two, RESERVE, 5, (2, 0)).await, GOOD);
        assert_eq!(out(&bench, &one, PREEMPT, 3, (1, 2)).await, GOOD);
        assert_eq!(held(&bench, &one).await, Some((1, 3)));
        assert_eq!(told(&bench, &two).await, (6, 0x2a, 5));
        assert_eq!(reads(&bench, &two).await, CONFLICT);
        // Its own: another type, and nobody goes.
        assert_eq!(out(&bench, &one, PREEMPT, 1, (1, 1)).await, GOOD);
        assert_eq!(held(&bench, &one).await, Some((1, 1)));
        assert_eq!(keys(&bench, &one).await, [1]);
        // Of one for all registrants, zero means all others.
        assert_eq!(out(&bench, &one, RELEASE, 1, (1, 0)).await, GOOD);
        assert_eq!(out(&bench, &two, REGISTER, 0, (0, 2)).await, GOOD);
        assert_eq!(out(&bench, &two, RESERVE, 7, (2, 0)).await, GOOD);
        assert_eq!(out(&bench, &one, PREEMPT, 5, (1, 0)).await, GOOD);
        assert_eq!(held(&bench, &one).await, Some((1, 5)));
        assert_eq!(keys(&bench, &one).await, [1]);
        assert_eq!(out(&bench, &one, CLEAR, 0, (1, 0)).await, GOOD);
        assert_eq!(
            (held(&bench, &one).await, keys(&bench, &one).await),
            (None, vec![])
        );
    });
}

#[test]
fn preempting_with_an_abort_ends_what_the_other_has_running() {
    with_bench(async |bench| {
        let [one, two] = [bench.settled_as(1).await, bench.settled_as(2).await];
        let aborted = Rc::new(std::cell::RefCell::new(Vec::new()));
        for (host, name) in [(&one, "one"), (&two, "two")] {
            let aborted = Rc::clone(&aborted);
            host.set_aborter(Box::new(move |lun| {
                aborted.borrow_mut().push((name, lun));
                Box::pin(async { 0 })
            }));
        }
        for (host, key) in [(&one, 1), (&two, 2)] {
            assert_eq!(out(&bench, host, REGISTER, 0, (0, key)).await, GOOD);
        }
        assert_eq!(out(&bench, &one, PREEMPT, 0, (1, 2)).await, GOOD);
        assert_eq!(aborted.take(), []);
        assert_eq!(told(&bench, &two).await, (6, 0x2a, 5));
        assert_eq!(out(&bench, &two, REGISTER, 0, (0, 2)).await, GOOD);
        assert_eq!(out(&bench, &two, RESERVE, 3, (2, 0)).await, GOOD);
        assert_eq!(out(&bench, &one, PREEMPT_AND_ABORT, 3, (1, 2)).await, GOOD);
        assert_eq!(aborted.take(), [("two", 0)]);
        assert_eq!(held(&bench, &one).await, Some((1, 3)));
    });
}

#[test]
fn clearing_and_releasing_is_told_to_those_who_are_registered() {
    with_bench(async |bench| {
        let [one, two, three] = [
            bench.settled_as(1).await,
            bench.settled_as(2).await,
            bench.settled_as(3).await,
        ];
        for (host, key) in [(&one, 1), (&two, 2)] {
            assert_eq!(out(&bench, host, REGISTER, 0, (0, key)).await, GOOD);
        }
        assert_eq!(out(&bench, &one, RESERVE, 6, (1, 0)).await, GOOD);
        // The holder goes, and with him what he held.
        assert_eq!(out(&bench, &one, REGISTER, 0, (1, 0)).await, GOOD);
        assert_eq!(told(&bench, &two).await, (6, 0x2a, 4));
        assert_eq!(out(&bench, &two, CLEAR, 0, (2, 0)).await, GOOD);
        assert_eq!(told(&bench, &two).await, (0, 0, 0), "he did it himself");
        assert_eq!(out(&bench, &one, REGISTER, 0, (0, 1)).await, GOOD);
        assert_eq!(out(&bench, &two, REGISTER, 0, (0, 2)).await, GOOD);
        assert_eq!(out(&bench, &two, CLEAR, 0, (2, 0)).await, GOOD);
        assert_eq!(told(&bench, &one).await, (6, 0x2a, 3));
        assert_eq!(told(&bench, &three).await, (0, 0, 0));
    });
}

#[test]
fn a_list_names_each_port_once_and_no_more_than_there_is_room_for() {
    with_bench(async |bench| {
        let host = bench.settled_as(1).await;
        let name = "iqn.2026-11.dev.ashlar:many";
        let of_many = |isid: u8| InitiatorPort::new(name, [0x80, 0, 0, 0, 0, isid]);
        let _many: Vec<_> = (0..20)
            .map(|isid| bench.target.connect(of_many(isid), 1))
            .collect();
        let mut device = vec![5, 0, 0, 28];
        device.extend(name.bytes());
        device.resize(32, 0);
        let naming = |ids: Vec<u8>| {
            let len = (ids.len() as u32).to_be_bytes();
            [&list(0, 5, SPEC_I_PT)[..], &len, &ids].concat()
        };
        // Byte for byte within what a list can be.
        let often = out_with(&bench, &host, REGISTER, 0, &naming(device.repeat(2000))).await;
        assert_eq!(often, (GOOD, 0, 0));
        assert_eq!(keys(&bench, &host).await, [5; 21]);
        assert_eq!(out(&bench, &host, CLEAR, 0, (5, 0)).await, GOOD);
        let id = |isid: u32| {
            let mut id = vec![0x45, 0, 0, 48];
            id.extend(format!("{name},i,0x8000{isid:08x}").bytes());
            id.resize(52, 0);
            id
        };
        let crowd = naming((0..300).flat_map(id).collect());
        let refused = out_with(&bench, &host, REGISTER, 0, &crowd).await;
        assert_eq!(refused, (2, 0x55, 4), "insufficient registration resources");
        assert_eq!(keys(&bench, &host).await, Vec::<u64>::new());
    });
}

#[test]
fn others_are_registered_by_name_and_by_all_ports() {
    with_bench(async |bench| {
        let host = bench.settled_as(1).await;
        let far = bench.target.connect(port(2), 2);
        let id = |number: u8| {
            let mut id = vec![0x45, 0, 0, 48];
            id.extend(
                format!("iqn.2026-11.dev.ashlar:host{number},i,0x80000000000{number}").bytes(),
            );
            id.resize(52, 0);
            id
        };
        let ids = [id(2), id(3)].concat();
        let mut list = list(0, 5, SPEC_I_PT | ALL_TG_PT);
        list.extend((ids.len() as u32).to_be_bytes());
        list.extend(ids);
        assert_eq!(
            out_with(&bench, &host, REGISTER, 0, &list).await,
            (GOOD, 0, 0)
        );
        assert_eq!(
            keys(&bench, &host).await,
            [5; 6],
            "three, by two ports each"
        );
        let full = read_in(&bench, &host, 3).await;
        assert_eq!(full.len(), 8 + 6 * (24 + 52));
        // The first: key, no reservation, port 1, and the name.
        assert_eq!(full[8..16], 5u64.to_be_bytes());
        assert_eq!(full[20..22], [0, 0]);
        assert_eq!(full[26..28], [0, 1]);
        assert_eq!(full[28..32], [0, 0, 0, 52]);
        assert_eq!(full[32..84], id(1));
        assert_eq!(bench.run(&far, &[0; 6], &[]).await.status, 2, "power on");
        assert_eq!(out(&bench, &far, RESERVE, 1, (5, 0)).await, GOOD);
        let full = read_in(&bench, &host, 3).await;
        let holders: Vec<_> = full[8..].chunks(76).map(|one| (one[12], one[13])).collect();
        let held = holders.iter().filter(|one| **one == (1, 1)).count();
        assert_eq!((held, holders[3]), (1, (1, 1)));
        assert_eq!(writes(&bench, &host).await, CONFLICT);
    });
}

#[test]
fn what_is_held_moves_to_another_nexus() {
    with_bench(async |bench| {
        let [one, two] = [bench.settled_as(1).await, bench.settled_as(2).await];
        assert_eq!(out(&bench, &one, REGISTER, 0, (0, 1)).await, GOOD);
        let to = |number: u8, key: u64, target_port: u8, unreg: u8| {
            let mut list = [1u64.to_be_bytes(), key.to_be_bytes()].concat();
            list.extend([0, unreg, 0, target_port, 0, 0, 0, 52, 0x45, 0, 0, 48]);
            list.extend(
                format!("iqn.2026-11.dev.ashlar:host{number},i,0x80000000000{number}").bytes(),
            );
            list.resize(24 + 52, 0);
            list
        };
        let moved = async |list: Vec<u8>| out_with(&bench, &one, MOVE, 0, &list).await;
        assert_eq!(
            moved(to(2, 2, 1, 0)).await,
            (CONFLICT, 0, 0),
            "nothing is held"
        );
        assert_eq!(out(&bench, &one, RESERVE, 3, (1, 0)).await, GOOD);
        assert_eq!(moved(to(2, 0, 1, 0)).await, (2, 0x26, 0), "no key");
        assert_eq!(moved(to(2, 2, 9, 0)).await, (2, 0x26, 0), "no such port");
        assert_eq!(moved(to(1, 2, 1, 0)).await, (2, 0x26, 0), "to itself");
        assert_eq!(moved(to(2, 2, 1, 0)[..70].to_vec()).await, (2, 0x1a, 0));
        assert_eq!(moved(to(2, 2, 1, 2)).await, (GOOD, 0, 0));
        assert_eq!(keys(&bench, &two).await, [2], "the old one is gone");
        assert_eq!(held(&bench, &two).await, Some((2, 3)));
        assert_eq!(
            (writes(&bench, &one).await, writes(&bench, &two).await),
            (CONFLICT, GOOD)
        );
    });
}

#[test]
fn capabilities_byte_by_byte() {
    with_bench(async |bench| {
        let host = bench.settled_as(1).await;
        let data = read_in(&bench, &host, 2).await;
        assert_eq!(data, [0, 8, 0x1d, 0x90, 0xea, 1, 0, 0]);
        let keep = list(0, 1, APTPL);
        assert_eq!(out_with(&bench, &host, REGISTER, 0, &keep).await.0, GOOD);
        assert_eq!(read_in(&bench, &host, 2).await[3], 0x91);
    });
}

#[test]
fn what_is_kept_is_there_again_and_the_rest_is_not() {
    with_bench(async |bench| {
        let [one, two] = [bench.settled_as(1).await, bench.settled_as(2).await];
        let keep = |key| list(0, key, APTPL);
        for (host, key) in [(&one, 1), (&two, 2)] {
            assert_eq!(
                out_with(&bench, host, REGISTER, 0, &keep(key)).await.0,
                GOOD
            );
        }
        assert_eq!(out(&bench, &two, RESERVE, 5, (2, 0)).await, GOOD);
        // As after a restart: another target shows the volume.
        let again = async || {
            let target = Target::new(TARGET, bench.world.clone());
            let volume = bench.pool.volume("v").unwrap();
            assert!(target.map(0, unit(volume)));
            let host = target.connect(port(1), 1);
            assert_eq!(sense(&bench.run(&host, &[0; 6], &[]).await), (6, 0x29, 0));
            host
        };
        let host = again().await;
        assert_eq!(keys(&bench, &host).await, [1, 2]);
        assert_eq!(held(&bench, &host).await, Some((2, 5)));
        assert_eq!(writes(&bench, &host).await, GOOD, "registered");
        let generation = read_in(&bench, &host, 0).await[..4].to_vec();
        assert_eq!(generation, [0; 4], "it begins anew");
        // Without APTPL nothing is kept any more.
        let forget = list(1, 1, 0);
        assert_eq!(out_with(&bench, &one, REGISTER, 0, &forget).await.0, GOOD);
        let host = again().await;
        assert_eq!(keys(&bench, &host).await, Vec::<u64>::new());
        assert_eq!(writes(&bench, &host).await, GOOD);
    });
}

#[test]
fn a_clone_and_a_snapshot_are_not_reserved() {
    with_bench(async |bench| {
        let host = bench.settled_as(1).await;
        assert_eq!(
            out_with(&bench, &host, REGISTER, 0, &list(0, 1, APTPL))
                .await
                .0,
            GOOD
        );
        assert_eq!(out(&bench, &host, RESERVE, 3, (1, 0)).await, GOOD);
        let snapshot = bench.pool.clone_volume("v", "v@s", true, 1).await.unwrap();
        assert_eq!(snapshot.memo(), Vec::<u8>::new());
        assert!(!bench.pool.volume("v").unwrap().memo().is_empty());
    });
}

#[test]
fn more_than_can_be_kept_is_refused_and_what_was_there_stays() {
    with_bench(async |bench| {
        let host = bench.settled_as(1).await;
        assert_eq!(
            out_with(&bench, &host, REGISTER, 0, &list(0, 1, APTPL))
                .await
                .0,
            GOOD
        );
        // Many initiators at once, until the metadata of a tiny pool has no room.
        let mut refused = 0;
        for batch in 0..40u8 {
            let ids: Vec<u8> = (0..8u8)
                .flat_map(|number| {
                    let mut id = vec![0x45, 0, 0, 220];
                    let name = "x".repeat(150);
                    id.extend(format!("iqn.{name}{batch}.{number},i,0x000000000001").bytes());
                    id.resize(224, 0);
                    id
                })
                .collect();
            let other = bench.settled_as(10 + batch).await;
            let mut list = list(0, 7, SPEC_I_PT | APTPL);
            list.extend((ids.len() as u32).to_be_bytes());
            list.extend(ids);
            let before = keys(&bench, &host).await.len();
            match out_with(&bench, &other, REGISTER, 0, &list).await {
                (GOOD, ..) => assert_eq!(keys(&bench, &host).await.len(), before + 9),
                said => {
                    assert_eq!(said, (2, 0x55, 4));
                    assert_eq!(keys(&bench, &host).await.len(), before);
                    refused += 1;
                }
            }
        }
        assert!(refused > 0 && refused < 40, "{refused} refused");
        assert_eq!(
            bench.pool.volume("v").unwrap().info().size_bytes,
            8 * PAGE_BYTES as u64
        );
    });
}

#[test]
fn old_reservations_shut_others_out_until_they_end() {
    with_bench(async |bench| {
        let [one, two] = [bench.settled_as(1).await, bench.settled_as(2).await];
        let (reserve, release) = ([0x16, 0, 0, 0, 0, 0], [0x17, 0, 0, 0, 0, 0]);
        let simply = async |host: &Host, cdb: &[u8]| status(&bench, host, cdb, &[]).await;
        assert_eq!(simply(&one, &reserve).await, GOOD);
        assert_eq!(simply(&one, &reserve).await, GOOD, "again");
        assert_eq!(simply(&two, &reserve).await, CONFLICT);
        assert_eq!(
            (writes(&bench, &one).await, reads(&bench, &two).await),
            (GOOD, CONFLICT)
        );
        assert_eq!(simply(&two, &[0; 6]).await, CONFLICT);
        assert_eq!(simply(&two, &[0x12, 0, 0, 0, 96, 0]).await, GOOD);
        assert_eq!(out(&bench, &two, REGISTER, 0, (0, 2)).await, CONFLICT);
        assert_eq!(simply(&two, &release).await, GOOD, "to no effect");
        assert_eq!(reads(&bench, &two).await, CONFLICT);
        assert_eq!(simply(&one, &release).await, GOOD);
        assert_eq!(reads(&bench, &two).await, GOOD);
        // It ends with its nexus, and with a reset.
        assert_eq!(simply(&one, &[0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await, GOOD);
        one.lost();
        assert_eq!(simply(&two, &reserve).await, GOOD);
        bench.target.unit_reset(0);
        for host in [&one, &two] {
            assert_eq!(told(&bench, host).await, (6, 0x29, 3));
        }
        assert_eq!(reads(&bench, &one).await, GOOD);
        // A third party's is refused, and so is one of a part.
        for byte in [0x10, 0x02, 0x01] {
            let wrong = bench.run(&two, &[0x16, byte, 0, 0, 0, 0], &[]).await;
            assert_eq!(sense(&wrong), (5, 0x24, 0));
        }
    });
}

#[test]
fn with_registrations_the_old_kind_is_for_those_who_have_access() {
    with_bench(async |bench| {
        let [one, two] = [bench.settled_as(1).await, bench.settled_as(2).await];
        let reserve = [0x16, 0, 0, 0, 0, 0];
        assert_eq!(out(&bench, &one, REGISTER, 0, (0, 1)).await, GOOD);
        assert_eq!(
            status(&bench, &one, &reserve, &[]).await,
            CONFLICT,
            "nothing is held"
        );
        assert_eq!(out(&bench, &one, RESERVE, 1, (1, 0)).await, GOOD);
        assert_eq!(status(&bench, &one, &reserve, &[]).await, GOOD);
        assert_eq!(status(&bench, &two, &reserve, &[]).await, CONFLICT);
        assert_eq!(out(&bench, &one, RELEASE, 1, (1, 0)).await, GOOD);
        assert_eq!(writes(&bench, &two).await, GOOD, "it was to no effect");
    });
}

#[test]
fn each_unit_has_its_own() {
    with_bench(async |bench| {
        let volume = bench.pool.create_volume(thin("w", 4096)).await.unwrap();
        assert!(bench.target.map(1, unit(volume)));
        let [one, two] = [bench.connect(1), bench.connect(2)];
        for host in [&one, &two] {
            for lun in [0, 1] {
                bench.run_at(host, lun, &[0; 6], &[]).await;
            }
        }
        assert_eq!(out(&bench, &one, REGISTER, 0, (0, 1)).await, GOOD);
        assert_eq!(out(&bench, &one, RESERVE, 3, (1, 0)).await, GOOD);
        let cdb = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
        assert_eq!(bench.run_at(&two, 0, &cdb, &[]).await.status, CONFLICT);
        assert_eq!(bench.run_at(&two, 1, &cdb, &[]).await.status, GOOD);
    });
}
