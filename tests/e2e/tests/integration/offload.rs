//! Copies that hosts have the array make, between LUNs of one lane, of two lanes on two
//! shards, and of two pools: EXTENDED COPY (VAAI) and tokens (ODX), over kills, cancelled,
//! with LUNs that go, and in a pool that is full.

use base::Prng;
use e2e::array::Array;
use e2e::copies::{Told, extended_copy, naa, populate, told, write_using, zero_token};
use e2e::initiator::{Answer, Initiator, SECTOR};

const VOLUME_MIB: u64 = 32;
const BLOCKS: u64 = (VOLUME_MIB << 20) / SECTOR as u64;
const PAGE: u64 = (64 << 10) / SECTOR as u64;
const HOST: &str = "iqn.2026-11.test:host";

fn target(name: &str) -> String {
    format!("iqn.2026-11.dev.ashlar:{name}")
}

/// Target `one` has `a`, `b` and `t` (thick); `two` has `c`, `other` has `o` of another
/// pool; `private` has `s`, for another host. The pool `p` has two lanes, on two shards.
fn site() -> String {
    let mut text =
        "[site]\nname = \"copies\"\nshards = 2\ntrash = 0\n[api]\nlisten = \"127.0.0.1:0\"\n\
                    [[portal]]\naddress = \"127.0.0.1:0\"\n"
            .to_owned();
    for name in ["d0", "d1", "d2", "d3"] {
        text +=
            &format!("[[drive]]\nname = \"{name}\"\nfile = \"{name}.img\"\nsize = \"224 MiB\"\n");
    }
    text += "[[pool]]\nname = \"p\"\nlevel = \"10\"\nlanes = 2\npage = \"64 KiB\"\n\
             drives = [\"d0\", \"d1\"]\n\
             [[pool]]\nname = \"q\"\nlevel = \"10\"\npage = \"128 KiB\"\ndrives = [\"d2\", \"d3\"]\n";
    let volume = |name: &str, pool: &str, kind: &str| {
        format!(
            "[[volume]]\nname = \"{name}\"\npool = \"{pool}\"\nsize = \"{VOLUME_MIB} MiB\"\n\
             provisioning = \"{kind}\"\n"
        )
    };
    let export = |name: &str, volumes: &str, who: &str| {
        let target = target(name);
        format!("[[export]]\ntarget = \"{target}\"\nvolumes = [{volumes}]\ninitiators = {who}\n")
    };
    for name in ["a", "b", "c", "s"] {
        text += &volume(name, "p", "thin");
    }
    text += &volume("t", "p", "thick");
    text += &volume("o", "q", "thin");
    text += &export("one", "\"a\", \"b\", \"t\"", "\"any\"");
    text += &export("two", "\"c\"", "\"any\"");
    text += &export("other", "\"o\"", "\"any\"");
    text += &export("private", "\"s\"", "[\"iqn.2026-11.test:somebody\"]");
    text
}

fn login(array: &Array, to: &str) -> Initiator {
    Initiator::login(array.portal(), HOST, &target(to)).unwrap()
}

fn bytes(tag: u64, blocks: u64) -> Vec<u8> {
    let mut bytes = vec![0; blocks as usize * SECTOR];
    Prng::from_seed(tag).fill(&mut bytes);
    bytes
}

fn good(answer: Answer) -> Vec<u8> {
    match answer {
        Answer::Good(data) => data,
        answer => panic!("{answer:?}"),
    }
}

fn write(initiator: &mut Initiator, lba: u64, data: &[u8]) {
    for (nth, part) in data.chunks(1 << 20).enumerate() {
        let at = lba + nth as u64 * 2048;
        good(initiator.write(at, part.to_vec()).unwrap());
    }
}

fn read(initiator: &mut Initiator, lba: u64, blocks: u64) -> Vec<u8> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < blocks {
        let part = (blocks - at).min(2048);
        all.extend(good(initiator.read(lba + at, part as usize).unwrap()));
        at += part;
    }
    all
}

fn xcopy(initiator: &mut Initiator, units: [&[u8]; 2], segments: &[(u64, u64, u16)]) -> Answer {
    let (cdb, list) = extended_copy(units, segments);
    initiator.execute(&cdb, 0, list).unwrap()
}

fn token_of(initiator: &mut Initiator, ranges: &[(u64, u32)]) -> Vec<u8> {
    let (cdb, list) = populate(ranges, 60);
    good(initiator.execute(&cdb, 0, list).unwrap());
    let Told {
        status,
        blocks,
        token,
    } = told(initiator).unwrap();
    let asked = ranges.iter().map(|(_, blocks)| u64::from(*blocks)).sum();
    assert_eq!((status, blocks, token.len()), (1, asked, 512));
    token
}

fn use_token(
    initiator: &mut Initiator,
    token: &[u8],
    offset: u64,
    ranges: &[(u64, u32)],
) -> Answer {
    let (cdb, list) = write_using(token, offset, ranges);
    initiator.execute(&cdb, 0, list).unwrap()
}

fn mapped(array: &Array, pool: &str) -> u64 {
    let pool = array.json(&["pool", "show", pool]);
    pool["mapped_bytes"].as_u64().unwrap()
}

#[test]
fn copies_between_lanes_shards_and_pools_are_what_the_source_had() {
    let mut array = Array::start_with(&site());
    let (mut one, mut two) = (login(&array, "one"), login(&array, "two"));
    let mut other = login(&array, "other");
    let a = naa(&mut one).unwrap();
    one.choose(2).unwrap();
    let t = naa(&mut one).unwrap();
    one.choose(0).unwrap();
    let (c, o) = (naa(&mut two).unwrap(), naa(&mut other).unwrap());
    // The second half stays a hole.
    let data = bytes(1, BLOCKS / 2);
    write(&mut one, 0, &data);
    let part = (BLOCKS / 4) as u16;
    let all: Vec<_> = (0..4).map(|nth| u64::from(part) * nth).collect();
    let all: Vec<_> = all.into_iter().map(|at| (at, at, part)).collect();
    let expected = read(&mut one, 0, BLOCKS);
    for (name, unit) in [("c", &c), ("o", &o), ("t", &t)] {
        assert_eq!(
            xcopy(&mut one, [&a, unit], &all),
            Answer::Good(vec![]),
            "{name}"
        );
    }
    assert!(read(&mut two, 0, BLOCKS) == expected);
    assert!(read(&mut other, 0, BLOCKS) == expected);
    one.choose(2).unwrap();
    assert!(read(&mut one, 0, BLOCKS) == expected);
    one.choose(0).unwrap();
    // Crossing pages and segments, from another pool back.
    assert_eq!(
        xcopy(&mut one, [&o, &a], &[(7, 1000, 3001), (9, 0, 5)]),
        Answer::Good(vec![])
    );
    let mut crossed = expected.clone();
    crossed[1000 * 512..4001 * 512].copy_from_slice(&expected[7 * 512..3008 * 512]);
    crossed[..5 * 512].copy_from_slice(&expected[9 * 512..14 * 512]);
    assert!(read(&mut one, 0, BLOCKS) == crossed);

    // A token of one shard's LUN is used on others; the source changes meanwhile.
    let token = token_of(&mut two, &[(5, 3000), (10_000, 7)]);
    write(&mut two, 0, &bytes(2, 12_000));
    for initiator in [&mut one, &mut two, &mut other] {
        let to = [(20_003, 1000), (30_000, 2007)];
        assert_eq!(use_token(initiator, &token, 0, &to), Answer::Good(vec![]));
        let told = told(initiator).unwrap();
        assert_eq!((told.status, told.blocks), (1, 3007));
        let first = read(initiator, 20_003, 1000);
        let second = read(initiator, 30_000, 2007);
        let source = [
            &expected[5 * 512..3005 * 512],
            &expected[10_000 * 512..10_007 * 512],
        ];
        assert!([first, second].concat() == source.concat());
    }
    // After a crash nobody knows the token, and what it kept is gone.
    array.kill();
    array.start_again();
    let mut two = login(&array, "two");
    let unknown = use_token(&mut two, &token, 0, &[(0, 8)]);
    assert_eq!(unknown.sense(), Some((5, (0x23, 0x04))));
    let mut volumes = array.json(&["volume", "list"]).as_array().unwrap().len();
    assert_eq!(volumes, 6);
    let sum: u64 = ["p", "q"].iter().map(|pool| mapped(&array, pool)).sum();
    for name in ["one", "two", "other", "private"] {
        array
            .command(&["export", "delete", "--yes", &target(name)])
            .ok();
    }
    for name in ["a", "b", "c", "s", "t", "o"] {
        array.command(&["volume", "delete", "--yes", name]).ok();
        volumes -= 1;
    }
    assert!(sum > 0 && volumes == 0);
    assert_eq!(
        mapped(&array, "p") + mapped(&array, "q"),
        0,
        "no page is left"
    );
    array.stop();
    let (code, said) = array.fsck();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn cve_2020_28374_a_host_copies_only_what_it_could_read_and_write_itself() {
    let array = Array::start_with(&site());
    let mut somebody = Initiator::login(
        array.portal(),
        "iqn.2026-11.test:somebody",
        &target("private"),
    )
    .unwrap();
    let secret = bytes(3, 64);
    write(&mut somebody, 0, &secret);
    let s = naa(&mut somebody).unwrap();
    let mut one = login(&array, "one");
    let a = naa(&mut one).unwrap();
    let nobody = [0x6a; 16];
    for other in [&s[..], &nobody] {
        for units in [[other, &a[..]], [&a[..], other]] {
            let refused = xcopy(&mut one, units, &[(0, 0, 64)]);
            assert_eq!(refused.sense(), Some((0x0a, (0x0d, 0x02))));
        }
    }
    assert!(read(&mut one, 0, 64).iter().all(|byte| *byte == 0));
    assert!(read(&mut somebody, 0, 64) == secret);
    // Its owner gives the token away: then whoever has it may read that, and no more.
    let token = token_of(&mut somebody, &[(0, 8)]);
    assert_eq!(
        use_token(&mut one, &token, 0, &[(0, 8)]),
        Answer::Good(vec![])
    );
    assert!(read(&mut one, 0, 8) == secret[..8 * 512]);
    let more = use_token(&mut one, &token, 0, &[(0, 9)]);
    assert_eq!(more.sense(), Some((5, (0x26, 0))));
    // Others may log in from now on: the token was made for those of before.
    let narrow = ["--initiator", "iqn.2026-11.test:somebody"];
    array
        .command(&[&["export", "change", &target("private")], &narrow[..]].concat())
        .ok();
    let revoked = use_token(&mut one, &token, 0, &[(0, 8)]);
    assert_eq!(revoked.sense(), Some((5, (0x23, 0x06))));
    let token = token_of(&mut somebody, &[(0, 8)]);
    assert_eq!(
        use_token(&mut one, &token, 0, &[(0, 8)]),
        Answer::Good(vec![])
    );
    // The LUN is taken away: so is the token.
    array
        .command(&["export", "delete", "--yes", &target("private")])
        .ok();
    let revoked = use_token(&mut one, &token, 0, &[(0, 8)]);
    assert_eq!(revoked.sense(), Some((5, (0x23, 0x06))));
}

#[test]
fn a_token_gives_way_to_a_write_that_needs_the_room() {
    let array = Array::start_with(&site());
    let mut other = login(&array, "other").heeding_warnings();
    let blocks = BLOCKS as u32;
    write(&mut other, 0, &bytes(4, BLOCKS));
    let token = token_of(&mut other, &[(0, blocks)]);
    // All that it has is written again: the token holds as much once more.
    write(&mut other, 0, &bytes(5, BLOCKS));
    assert!(mapped(&array, "q") >= 2 * (VOLUME_MIB << 20));
    let free = array.json(&["pool", "show", "q"])["free_bytes"]
        .as_u64()
        .unwrap();
    // A thick volume takes the rest, but for what one write of all needs.
    let size = (free >> 20).saturating_sub(4);
    let size = format!("{size} MiB");
    let thick = [
        "volume", "create", "f", "--pool", "q", "--size", &size, "--thick",
    ];
    array.command(&thick).ok();
    let snapshot = ["snapshot", "create", "o@before"];
    array.command(&snapshot).ok();
    write(&mut other, 0, &bytes(6, BLOCKS));
    let revoked = use_token(&mut other, &token, 0, &[(0, 8)]);
    assert_eq!(revoked.sense(), Some((5, (0x23, 0x06))));
    assert!(read(&mut other, 0, BLOCKS) == bytes(6, BLOCKS));
}

#[test]
fn zeroes_by_token_give_pages_back_and_overlapping_copies_are_right() {
    let array = Array::start_with(&site());
    let mut one = login(&array, "one");
    let a = naa(&mut one).unwrap();
    let data = bytes(7, 8192);
    write(&mut one, 0, &data);
    let before = mapped(&array, "p");
    let to = [(PAGE, 4 * PAGE as u32), (10 * PAGE + 1, 5)];
    assert_eq!(
        use_token(&mut one, &zero_token(), 0, &to),
        Answer::Good(vec![])
    );
    assert_eq!(mapped(&array, "p"), before - 4 * PAGE * 512);
    let mut expected = data;
    for (lba, blocks) in to {
        expected[lba as usize * 512..][..blocks as usize * 512].fill(0);
    }
    assert!(read(&mut one, 0, 8192) == expected);
    for (from, to, blocks) in [(0, 100, 5000), (100, 3, 5000), (PAGE, 2 * PAGE, 4096)] {
        assert_eq!(
            xcopy(&mut one, [&a, &a], &[(from, to, blocks)]),
            Answer::Good(vec![])
        );
        let (from, to, len) = (
            from as usize * 512,
            to as usize * 512,
            usize::from(blocks) * 512,
        );
        expected.copy_within(from..from + len, to);
        assert!(read(&mut one, 0, 8192) == expected, "{from} to {to}");
    }
}

#[test]
fn a_copy_that_is_aborted_ends_early_and_the_session_goes_on() {
    let array = Array::start_with(&site());
    let (mut one, mut other) = (login(&array, "one"), login(&array, "other"));
    let (a, o) = (naa(&mut one).unwrap(), naa(&mut other).unwrap());
    let data = bytes(8, BLOCKS);
    write(&mut one, 0, &data);
    // Between two pools, again and again: it is read and written, and takes its time.
    let segments = vec![(0, 0, (BLOCKS - 1) as u16); 64];
    let (cdb, list) = extended_copy([&a, &o], &segments);
    let mut status = [0; 16];
    (status[0], status[2], status[13]) = (0x84, 1, 12);
    let tag = one.start(&cdb, 0, list).unwrap();
    loop {
        let asked = one.start(&status, 12, Vec::new()).unwrap();
        let (ended, answer) = one.next_end().unwrap();
        assert_eq!(ended, asked, "the copy has ended too soon: {answer:?}");
        // It may not have begun.
        if matches!(answer, Answer::Good(status) if status[4] == 0) {
            break;
        }
    }
    let answers = one.abort(tag).unwrap();
    assert_eq!(answers, [], "it was aborted, and not answered");
    let status = good(one.execute(&status, 12, Vec::new()).unwrap());
    let segments = u16::from_be_bytes([status[5], status[6]]);
    assert!(status[4] == 2 && segments < 64, "{status:?}");
    // What was said to have ended writes no more.
    write(&mut other, 0, &bytes(9, BLOCKS));
    assert!(read(&mut one, 0, 64) == data[..64 * 512]);
    assert!(read(&mut other, 0, BLOCKS) == bytes(9, BLOCKS));
}
