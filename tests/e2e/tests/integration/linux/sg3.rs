//! Every command that sg3-utils can send, to a thin LUN, as administrators and scripts do.

use super::site;
use e2e::guest::{Cable, Guest, in_own_network};

/// Exit codes of sg3-utils.
const GOOD: i32 = 0;
const ILLEGAL_REQUEST: i32 = 5;
const UNKNOWN_COMMAND: i32 = 9;
const MISCOMPARE: i32 = 14;
const OUT_OF_RANGE: i32 = 22;

/// A command line, its exit code, and what has to be in its output.
type Row = (&'static str, i32, &'static [&'static str]);

/// What the LUN says of itself.
const DESCRIPTIONS: &[Row] = &[
    ("sg_turs $d", GOOD, &[]),
    (
        "sg_inq $d",
        GOOD,
        &[
            "[SPC-4]",
            "TPGS=1",
            "CmdQue=1",
            "ASHLAR",
            "VIRTUAL DISK",
            "Unit serial number:",
        ],
    ),
    (
        "sg_vpd $d",
        GOOD,
        &[
            "[sv]", "[sn]", "[di]", "[ei]", "[mpp]", "[bl]", "[bdc]", "[lbpv]",
        ],
    ),
    (
        "sg_vpd --all $d",
        GOOD,
        &["Logical block provisioning VPD page"],
    ),
    (
        "sg_vpd -p di $d",
        GOOD,
        &[
            "designator type: NAA,  code set: Binary",
            "vendor id: ASHLAR",
            "Relative target port: 0x1",
            "Target port group: 0x1",
            ",t,0x0001",
        ],
    ),
    (
        "sg_vpd -p bl $d",
        GOOD,
        &[
            "Write same non-zero (WSNZ): 1",
            "Maximum compare and write length: 255 blocks",
            "Optimal unmap granularity: 512 blocks",
            "Unmap granularity alignment valid: true",
            "Maximum atomic transfer length: 512 blocks",
        ],
    ),
    (
        "sg_vpd -p lbpv $d",
        GOOD,
        &[
            "(LBPU): 1",
            "(LBPWS): 1",
            "(LBPWS10): 1",
            "(LBPRZ): 1",
            "thin provisioned",
        ],
    ),
    ("sg_vpd -p bdc $d", GOOD, &["Non-rotating medium"]),
    ("sg_readcap $d", GOOD, &["Number of logical blocks=131072"]),
    (
        "sg_readcap -16 $d",
        GOOD,
        &[
            "lbpme=1, lbprz=1",
            "Number of logical blocks=131072",
            "length=4096 bytes",
        ],
    ),
    (
        "sg_luns $d",
        GOOD,
        &["2 lun entries", "0000000000000000", "0001000000000000"],
    ),
    ("sg_requests $d", GOOD, &["Sense key: No Sense"]),
    (
        "sg_requests -d $d",
        GOOD,
        &["Descriptor format", "Sense key: No Sense"],
    ),
    (
        "sg_rtpg -d $d",
        GOOD,
        &[
            "(active/optimized)",
            "target port count : 01",
            "Relative target port ids",
        ],
    ),
    (
        "sg_rtpg -d -e $d",
        GOOD,
        &["Implicit transition time", "(active/optimized)"],
    ),
    (
        "sg_opcodes $d",
        GOOD,
        &[
            "Compare and write",
            "Persistent reserve out, preempt and abort",
            "Write atomic(16)",
        ],
    ),
    (
        "sg_opcodes -R $d",
        GOOD,
        &["Recommended", "Get LBA status(16)"],
    ),
    (
        "sg_opcodes -R -o 0x2a $d",
        GOOD,
        &["Command is supported", "Usage data: 2a"],
    ),
    (
        "sg_opcodes -o 0xa3,0x0a $d",
        GOOD,
        &["Command is supported"],
    ),
    ("sg_opcodes -o 0x7f $d", GOOD, &["Command is NOT supported"]),
    (
        "sg_opcodes -t $d",
        GOOD,
        &[
            "Abort task\n",
            "Abort task set",
            "Clear task set",
            "Logical unit reset",
        ],
    ),
    (
        "sg_modes -a $d",
        GOOD,
        &["DpoFua=1", ">> Caching", ">> Control", ">> Informational"],
    ),
    ("sg_modes -6 $d", GOOD, &["DpoFua=1", ">> Caching"]),
    ("sg_modes -p 0x0a,1 $d", GOOD, &[">> Control extension"]),
    (
        "sg_logs -a $d",
        GOOD,
        &["[lbp]", "Available LBA mapping threshold"],
    ),
    (
        "sg_senddiag -t $d",
        GOOD,
        &["Default self-test returned GOOD status"],
    ),
    ("sg_persist -n -c $d", GOOD, &["(PTPL_C): 1"]),
];

/// What it is told to do, in this order; `/one` is a block of random bytes, `/zero` one of
/// zeroes, `/eight` eight of random bytes.
const DEEDS: &[Row] = &[
    ("sg_get_lba_status -l 0 $d", GOOD, &["131072  deallocated"]),
    ("sg_write_same --lba=0 --num=1024 --in=/one $d", GOOD, &[]),
    ("sg_get_lba_status -l 0 $d", GOOD, &["1024  mapped"]),
    (
        "sg_verify --lba=1023 --count=1 --bpc=1 -n 512 -i /one $d",
        GOOD,
        &[],
    ),
    (
        "sg_verify --lba=1024 --count=1 --bpc=1 -n 512 -i /zero $d",
        GOOD,
        &[],
    ),
    (
        "sg_verify --lba=0 --count=1 --bpc=1 -n 512 -i /zero $d",
        MISCOMPARE,
        &[],
    ),
    ("sg_verify --lba=0 --count=1024 $d", GOOD, &[]),
    ("sg_unmap --force --lba=0 --num=512 $d", GOOD, &[]),
    ("sg_get_lba_status -l 0 $d", GOOD, &["512  deallocated"]),
    (
        "sg_verify --lba=511 --count=1 --bpc=1 -n 512 -i /zero $d",
        GOOD,
        &[],
    ),
    (
        "sg_verify --lba=512 --count=1 --bpc=1 -n 512 -i /one $d",
        GOOD,
        &[],
    ),
    (
        "sg_write_same -U --lba=512 --num=512 --in=/zero $d",
        GOOD,
        &[],
    ),
    ("sg_get_lba_status -l 0 $d", GOOD, &["131072  deallocated"]),
    ("sg_write_same -S -N --lba=0 --num=512 $d", GOOD, &[]),
    (
        "sg_write_same --lba=0 --num=8 --in=/eight $d",
        ILLEGAL_REQUEST,
        &[],
    ),
    // Compare and write: what is there, and what is to be.
    (
        "sg_compare_and_write -i /zero-one --lba=8 -n 1 $d",
        GOOD,
        &[],
    ),
    (
        "sg_verify --lba=8 --count=1 --bpc=1 -n 512 -i /one $d",
        GOOD,
        &[],
    ),
    (
        "sg_compare_and_write -i /zero-one --lba=8 -n 1 $d",
        MISCOMPARE,
        &["Miscompare at byte offset: 0"],
    ),
    (
        "sg_compare_and_write -i /one-zero --lba=8 -n 1 $d",
        GOOD,
        &[],
    ),
    // Other ways to write.
    ("sg_write_verify --lba=16 --num=8 --in=/eight $d", GOOD, &[]),
    (
        "sg_write_verify -S --lba=24 --num=8 --in=/eight $d",
        GOOD,
        &[],
    ),
    (
        "sg_write_x --atomic=0 --lba=32 --num=8 --in=/eight $d",
        GOOD,
        &[],
    ),
    (
        "sg_write_x --atomic=8 --lba=32 --num=8 --in=/eight $d",
        ILLEGAL_REQUEST,
        &[],
    ),
    ("sg_write_x --or --lba=40 --num=8 --in=/eight $d", GOOD, &[]),
    (
        "sg_write_x --normal --fua --lba=48 --num=8 --in=/eight $d",
        GOOD,
        &[],
    ),
    ("sg_sync $d", GOOD, &[]),
    ("sg_seek --pre-fetch --10 --num-blocks=8 $d", GOOD, &[]),
    ("sg_seek --pre-fetch --num-blocks=8 $d", GOOD, &[]),
    (
        "sg_dd if=$d of=/five bs=512 skip=16 count=40 iflag=sgio",
        GOOD,
        &[],
    ),
    (
        "cat /eight /eight /eight /eight /eight | cmp - /five",
        GOOD,
        &[],
    ),
    (
        "for c in 6 10 12 16; do sg_dd if=$d of=/back bs=512 skip=16 count=8 iflag=sgio cdbsz=$c &&\
       cmp /back /eight || exit 1; done",
        GOOD,
        &[],
    ),
    (
        "for c in 6 10 12 16; do sg_dd if=/eight of=$d bs=512 seek=$((c * 8)) oflag=sgio cdbsz=$c &&\
       sg_verify --lba=$((c * 8)) --count=8 --bpc=8 -n 4096 -i /eight $d || exit 1; done",
        GOOD,
        &[],
    ),
    // A volume is never ejected, but does as if.
    ("sg_prevent $d", GOOD, &[]),
    (
        "sg_start --stop $d && sg_turs $d && sg_start --start $d",
        GOOD,
        &[],
    ),
    ("sg_reset -d $d && wait_until 'sg_turs $d'", GOOD, &[]),
    ("sg_reset -t $d && wait_until 'sg_turs $d'", GOOD, &[]),
    (
        "sg_verify --lba=16 --count=8 --bpc=8 -n 4096 -i /eight $d",
        GOOD,
        &[],
    ),
    // What is not there says so.
    ("sg_stpg -o $d", GOOD, &["Illegal request, Invalid opcode"]),
    (
        "sg_read_block_limits $d",
        UNKNOWN_COMMAND,
        &["Invalid opcode"],
    ),
    (
        "sg_write_x --stream=1 --lba=0 --num=8 --in=/eight $d",
        UNKNOWN_COMMAND,
        &[],
    ),
    ("sg_verify --lba=131072 --count=1 $d", OUT_OF_RANGE, &[]),
    ("sg_sanitize --quick --crypto $d", ILLEGAL_REQUEST, &[]),
    ("sg_sanitize --quick --early --fail $d", GOOD, &[]),
];

fn run(host: &mut Guest, rows: &[Row]) {
    for (command, code, words) in rows {
        let said = host.ask(&format!("d=$(disk 0); {command}"));
        assert_eq!(said.code, Some(*code), "{said:?}");
        for word in *words {
            assert!(said.stdout.contains(word), "{word:?} is not in {said:?}");
        }
    }
}

#[test]
fn sg3_utils_are_answered() {
    in_own_network("linux::sg3::sg3_utils_are_answered", || {
        let cable = Cable::lay(1, 2);
        let _array = site::array(&[&cable], &[("v", 64), ("w", 64)]);
        let mut host = site::logged_in(&site::image(), 'a', &[&cable], 2);
        host.order("dd if=/dev/urandom of=/eight bs=512 count=8 2>/dev/null");
        host.order("dd if=/eight of=/one bs=512 count=1 2>/dev/null");
        host.order("dd if=/dev/zero of=/zero bs=512 count=1 2>/dev/null");
        host.order("cat /zero /one >/zero-one && cat /one /zero >/one-zero");
        run(&mut host, DESCRIPTIONS);
        run(&mut host, DEEDS);
    });
}
