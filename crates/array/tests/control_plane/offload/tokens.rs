//! POPULATE TOKEN, WRITE USING TOKEN and RECEIVE ROD TOKEN INFORMATION.

use super::bench::{BLOCKS, Bench, PAGE_BLOCKS, bytes, sense, spec, with_bench, with_bench_of};
use super::lists::{populate, receive, with_list, write_using};
use engine::{Provisioning, World};
use scsi::Nexus;
use scsi::offload::Limits;
use std::time::Duration;
use world_sim::SimWorld;

const POPULATE: u8 = 0x10;
const WRITE: u8 = 0x11;

async fn try_populate(
    bench: &Bench,
    nexus: &Nexus<SimWorld>,
    lun: u16,
    of: &[(u64, u32)],
) -> (u8, u8, u8) {
    let list = populate(of);
    sense(
        &bench
            .run(nexus, lun, &with_list(POPULATE, 7, &list), &list)
            .await,
    )
}

/// What is told of list identifier 7: operation status, blocks, and the token.
async fn information(bench: &Bench, nexus: &Nexus<SimWorld>) -> (u8, u64, Vec<u8>) {
    let said = bench.run(nexus, 0, &receive(7, 7, 1024), &[]).await;
    assert_eq!(sense(&said), (0, 0, 0));
    let data = said.data.to_vec();
    let blocks = u64::from_be_bytes(data[16..24].try_into().unwrap());
    let sense_bytes = usize::from(data[13]);
    let tokens = &data[32 + sense_bytes..];
    let token = tokens.get(6..).unwrap_or_default().to_vec();
    assert_eq!(
        token.len().max(510) - 510,
        if token.is_empty() { 0 } else { 2 }
    );
    (data[5], blocks, token)
}

/// A token for the ranges of LUN 0.
async fn token(bench: &Bench, nexus: &Nexus<SimWorld>, of: &[(u64, u32)]) -> Vec<u8> {
    assert_eq!(try_populate(bench, nexus, 0, of).await, (0, 0, 0));
    let asked: u64 = of.iter().map(|(_, blocks)| u64::from(*blocks)).sum();
    let (status, blocks, token) = information(bench, nexus).await;
    assert_eq!((status, blocks, token.len()), (1, asked, 512));
    token
}

async fn write(
    bench: &Bench,
    nexus: &Nexus<SimWorld>,
    lun: u16,
    (token, offset, deletes): (&[u8], u64, bool),
    to: &[(u64, u32)],
) -> (u8, u8, u8) {
    let list = write_using(token, offset, deletes, to);
    sense(
        &bench
            .run(nexus, lun, &with_list(WRITE, 7, &list), &list)
            .await,
    )
}

#[test]
fn a_token_stands_for_what_was_there_when_it_was_made() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        let all = bytes(1, BLOCKS);
        bench.write("a", 0, &all).await;
        let before = bench.mapped();
        let page = PAGE_BLOCKS as u32;
        let token = token(&bench, &nexus, &[(0, 4 * page), (8 * PAGE_BLOCKS, page)]).await;
        assert_eq!(bench.mapped(), before, "by reference");
        bench.write("a", 0, &bytes(2, BLOCKS)).await;
        let to = [(PAGE_BLOCKS, 5 * page)];
        assert_eq!(
            write(&bench, &nexus, 1, (&token, 0, false), &to).await,
            (0, 0, 0)
        );
        let (status, blocks, none) = information(&bench, &nexus).await;
        assert_eq!((status, blocks, none.len()), (1, u64::from(5 * page), 0));
        let (four, nine) = (
            4 * PAGE_BLOCKS as usize * 512,
            8 * PAGE_BLOCKS as usize * 512,
        );
        let expected = [&all[..four], &all[nine..nine + PAGE_BLOCKS as usize * 512]].concat();
        assert!(bench.read("b", PAGE_BLOCKS, 5 * PAGE_BLOCKS).await == expected);
        // Again, in parts that cross the ranges, and into the source itself.
        let to = [(3, 100), (200, 17)];
        let offset = 4 * PAGE_BLOCKS - 60;
        assert_eq!(
            write(&bench, &nexus, 0, (&token, offset, false), &to).await,
            (0, 0, 0)
        );
        let from = offset as usize * 512;
        let part = &expected[from..from + 117 * 512];
        assert!(bench.read("a", 3, 100).await == part[..100 * 512]);
        assert!(bench.read("a", 200, 17).await == part[100 * 512..]);
    });
}

#[test]
fn nobody_is_shown_what_keeps_the_data_and_it_goes_with_the_last_token() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        bench.write("a", 0, &bytes(1, BLOCKS)).await;
        let before = (bench.mapped(), bench.pool.info().provisioned_bytes);
        let names = |bench: &Bench| -> Vec<String> {
            let said = bench.pool.volumes_with_properties().into_iter();
            let mut names: Vec<_> = said.map(|(info, _)| info.name).collect();
            names.sort();
            names
        };
        let first = token(&bench, &nexus, &[(0, BLOCKS as u32)]).await;
        bench.world.sleep(Duration::from_secs(20)).await;
        let second = token(&bench, &nexus, &[(5, 70)]).await;
        bench.write("a", 0, &bytes(2, BLOCKS)).await;
        assert!(bench.mapped() >= before.0 + BLOCKS * 512, "both are there");
        assert_eq!(names(&bench), ["a", "b", "c", "d"]);
        assert_eq!(bench.pool.info().provisioned_bytes, before.1);
        assert_eq!(bench.pool.hidden().len(), 1);
        assert!(bench.pool.volume(&bench.pool.hidden()[0].name).is_none());
        bench.world.sleep(Duration::from_secs(15)).await;
        bench.offload.expire(bench.world.now()).await;
        assert_eq!(bench.pool.hidden().len(), 1, "the second lives");
        let to = [(0, 70)];
        assert_eq!(
            write(&bench, &nexus, 1, (&first, 0, false), &to).await,
            (5, 0x23, 0x07)
        );
        assert_eq!(
            write(&bench, &nexus, 1, (&second, 0, true), &to).await,
            (0, 0, 0)
        );
        bench.rest().await;
        assert!(bench.pool.hidden().is_empty(), "it was deleted after use");
        assert_eq!(
            write(&bench, &nexus, 1, (&second, 0, true), &to).await,
            (5, 0x23, 0x09)
        );
    });
}

#[test]
fn tokens_that_are_not_ours_or_no_more_are_told_apart() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        bench.write("a", 0, &bytes(1, 64)).await;
        let made = token(&bench, &nexus, &[(0, 64)]).await;
        let to = [(0, 8)];
        let with = |at: usize, bits: u8| {
            let mut other = made.clone();
            other[at] ^= bits;
            other
        };
        for (other, code) in [
            (with(3, 1), 0x01),
            (with(7, 1), 0x0a),
            (with(472, 1), 0x04),
            (with(8, 1), 0x05),
            (with(50, 1), 0x05),
            (with(200, 0x80), 0x05),
        ] {
            let said = write(&bench, &nexus, 1, (&other, 0, false), &to).await;
            assert_eq!(said, (5, 0x23, code));
        }
        for bit in 0..256 {
            let forged = with(480 + bit / 8, 1 << (bit % 8));
            let said = write(&bench, &nexus, 1, (&forged, 0, false), &to).await;
            assert_eq!(said, (5, 0x23, 0x05), "bit {bit} of the MAC");
        }
        assert!(bench.read("b", 0, 8).await.iter().all(|byte| *byte == 0));
        // Another initiator that has it may use it, where it may write.
        let other = bench.nexus_of(&bench.open, "iqn.other").await;
        assert_eq!(
            write(&bench, &other, 0, (&made, 0, false), &to).await,
            (0, 0, 0)
        );
        assert!(bench.read("c", 0, 8).await == bytes(1, 64)[..8 * 512]);
        // The volume that it was made of is gone, or not shown any more.
        let revoked = bench.offload.revoke_volume(bench.volume("a").info().uuid);
        revoked.await;
        assert_eq!(
            write(&bench, &nexus, 1, (&made, 0, false), &to).await,
            (5, 0x23, 0x06)
        );
        assert!(bench.pool.hidden().is_empty());
    });
}

#[test]
fn the_token_of_zeroes_clears() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        bench.write("b", 0, &bytes(1, BLOCKS)).await;
        let before = bench.mapped();
        let mut zero = vec![0xff, 0xff, 0, 1, 0, 0, 1, 0xf8];
        zero.resize(512, 0);
        let to = [(PAGE_BLOCKS, 2 * PAGE_BLOCKS as u32), (3, 5)];
        assert_eq!(
            write(&bench, &nexus, 1, (&zero, 1 << 40, true), &to).await,
            (0, 0, 0)
        );
        assert_eq!(bench.mapped(), before - 2 * PAGE_BLOCKS * 512, "given back");
        let mut expected = bytes(1, BLOCKS);
        for (lba, blocks) in to {
            expected[lba as usize * 512..][..blocks as usize * 512].fill(0);
        }
        assert!(bench.read("b", 0, BLOCKS).await == expected);
        let (status, blocks, _) = information(&bench, &nexus).await;
        assert_eq!((status, blocks), (1, 2 * PAGE_BLOCKS + 5));
    });
}

#[test]
fn what_can_not_be_written_or_read_is_said_and_remembered() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        bench.snapshot_of_b().await;
        let snapshot = bench.volume("b@s");
        bench.show_at_2(&nexus, snapshot).await;
        let made = token(&bench, &nexus, &[(0, 64)]).await;
        let used = (&made[..], 0, false);
        assert_eq!(
            write(&bench, &nexus, 2, used, &[(0, 8)]).await,
            (7, 0x27, 0)
        );
        let (status, blocks, _) = information(&bench, &nexus).await;
        assert_eq!((status, blocks), (2, 0));
        assert_eq!(
            write(&bench, &nexus, 1, used, &[(0, 65)]).await,
            (5, 0x26, 0)
        );
        let outside = [(BLOCKS - 1, 2)];
        assert_eq!(write(&bench, &nexus, 1, used, &outside).await, (5, 0x21, 0));
        assert_eq!(
            try_populate(&bench, &nexus, 0, &outside).await,
            (5, 0x21, 0)
        );
        assert_eq!(try_populate(&bench, &nexus, 0, &[(0, 0)]).await, (0, 0, 0));
        assert_eq!(
            information(&bench, &nexus).await,
            (1, 0, vec![]),
            "of nothing"
        );
        let unknown = bench.run(&nexus, 0, &receive(7, 8, 1024), &[]).await;
        assert_eq!(sense(&unknown), (5, 0x24, 0));
        // A snapshot can be read.
        assert_eq!(try_populate(&bench, &nexus, 2, &[(0, 8)]).await, (0, 0, 0));
    });
}

#[test]
fn tokens_keep_nothing_when_the_pool_has_no_room_for_them() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        bench.write("a", 0, &bytes(1, BLOCKS)).await;
        // What is not whole pages takes pages of its own.
        let mut fillers = 0;
        loop {
            let name = format!("f{fillers}");
            let made = bench
                .pool
                .create_volume(spec(&name, Provisioning::Thin))
                .await;
            let volume = made.unwrap();
            fillers += 1;
            let data = bench.data(&bytes(fillers, BLOCKS));
            if volume.write(base::VolumeOffset(0), data).await.is_err() {
                break;
            }
        }
        let none = try_populate(&bench, &nexus, 0, &[(1, 20), (100, 20), (300, 20)]).await;
        assert_eq!(none, (5, 0x55, 0x0d));
        assert!(bench.pool.hidden().is_empty(), "nothing is left");
        let whole = [(0, PAGE_BLOCKS as u32)];
        assert_eq!(try_populate(&bench, &nexus, 0, &whole).await, (0, 0, 0));
    });
}

#[test]
fn a_crash_leaves_nothing_behind_after_the_next_start() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        bench.write("a", 0, &bytes(1, 64)).await;
        token(&bench, &nexus, &[(0, 64)]).await;
        assert_eq!(bench.pool.hidden().len(), 1);
        bench.start_again().await;
        assert!(bench.pool.hidden().is_empty());
        // Nobody deletes a volume in this way that is shown.
        let shown = bench.volume("a").info().uuid;
        assert!(bench.pool.delete_hidden(shown).await.is_err());
    });
}

#[test]
fn a_thick_volume_has_its_room_back_when_a_token_of_it_gives_way() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        bench.show_thick_volume(&nexus).await;
        bench.write("t", 0, &bytes(1, BLOCKS)).await;
        let mut fillers = 0;
        loop {
            let name = format!("f{fillers}");
            let made = bench
                .pool
                .create_volume(spec(&name, Provisioning::Thin))
                .await;
            fillers += 1;
            let data = bench.data(&bytes(fillers, BLOCKS));
            let written = made.unwrap().write(base::VolumeOffset(0), data).await;
            if written.is_err() {
                break;
            }
        }
        // Its pages are shared: what is written to them now takes others, until the token gives
        // way, as it does for whoever asks for room.
        let said = try_populate(&bench, &nexus, 2, &[(0, BLOCKS as u32)]).await;
        assert_eq!(said, (0, 0, 0));
        let data = || bench.data(&bytes(2, BLOCKS));
        let volume = bench.volume("t");
        let refused = volume.write(base::VolumeOffset(0), data()).await;
        assert_eq!(refused.unwrap_err().kind, engine::IoErrorKind::PoolFull);
        bench.offload.revoke_volume(volume.info().uuid).await;
        volume.write(base::VolumeOffset(0), data()).await.unwrap();
        assert!(bench.read("t", 0, BLOCKS).await == bytes(2, BLOCKS));
    });
}

#[test]
fn each_initiator_has_so_many_tokens_and_no_more() {
    let limits = Limits {
        total: 3,
        per_initiator: 2,
    };
    with_bench_of(limits, async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        let first = token(&bench, &nexus, &[(0, 8)]).await;
        token(&bench, &nexus, &[(8, 8)]).await;
        let more = try_populate(&bench, &nexus, 0, &[(16, 8)]).await;
        assert_eq!(more, (5, 0x55, 0x0d), "none of them was used");
        let (status, blocks, _) = information(&bench, &nexus).await;
        assert_eq!((status, blocks), (2, 0));
        let to = [(0, 8)];
        assert_eq!(
            write(&bench, &nexus, 1, (&first, 0, false), &to).await,
            (0, 0, 0)
        );
        token(&bench, &nexus, &[(16, 8)]).await;
        assert_eq!(
            write(&bench, &nexus, 1, (&first, 0, false), &to).await,
            (5, 0x23, 0x06)
        );
    });
}

#[test]
fn a_command_that_takes_too_long_does_less_and_says_how_much() {
    with_bench(async |bench| {
        let nexus = bench.nexus(&bench.own).await;
        bench.write("a", 0, &bytes(1, BLOCKS)).await;
        let cancel = scsi::offload::CancelToken::default();
        cancel.stop();
        let list = populate(&[(1, 20), (100, 20)]);
        let mut cdb = [0; 16];
        cdb[..14].copy_from_slice(&with_list(POPULATE, 7, &list));
        let data = bench.data(&list);
        let lun = scsi::lun::encode(0);
        let said = nexus
            .execute_until(lun, cdb.into(), data, Some(cancel))
            .await;
        assert_eq!(sense(&said), (0, 0, 0));
        let (status, blocks, token) = information(&bench, &nexus).await;
        assert_eq!((status, blocks), (4, 0), "residual data");
        // What it does not have can't be written.
        let to = [(0, 1)];
        assert_eq!(
            write(&bench, &nexus, 1, (&token, 0, false), &to).await,
            (5, 0x26, 0)
        );
    });
}
