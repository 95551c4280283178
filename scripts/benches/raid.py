"""RAID levels over files of one disk, beside fio on a file of that disk.

All drives of a pool lie on the same disk, so what a level writes besides the data
comes out of the same bandwidth: its theoretical share of raw is the part of all
written bytes that is data (RAID 10 1/2, RAID 5 of five drives 4/5, RAID 6 of six 4/6).
"""

from .basics import DEPTH
from .clients import ashlar_load, ashlar_rate, fill, fio, pool_rate, raw_file
from .figures import take_turns
from .servers import DATA_SHARE, Site

LUN_MIB = 1024
SEQUENTIAL_DEPTH = 8
PARITY = [("5", 5), ("6", 6)]
NO_CACHE = 'cache = "none"'


def raid(table, bench):
    reads(table, bench)
    for level, drives in PARITY:
        price_of_writes(table, bench, level, drives)
    for level, drives in [("10", 4), *PARITY]:
        sequential_writes(table, bench, level, drives)


def reads(table, bench):
    raw = raw_file(bench.disk, LUN_MIB)
    # The whole LUN fits: what it costs to answer from memory.
    plain = Site(bench.disk, "reads", 4, "10", lun_mib=LUN_MIB, more=[NO_CACHE])
    alone = lambda step: pool_rate(bench.disk / "alone", "10", 4, LUN_MIB, 1100, 0, "fill", "drain", step)[0]
    shapes = [("4 KiB random read", "rand-4k-read", "randread", "4k", 4096, DEPTH, 0.7),
              ("1 MiB sequential read", "seq-read-1m", "read", "1m", 1 << 20, SEQUENTIAL_DEPTH, 0.8)]
    for what, profile, kind, block, len_bytes, depth, at_least in shapes:
        step = f"{'randread' if kind == 'randread' else 'seqread'}:{len_bytes}:{depth}:{bench.seconds}"
        with plain.emptied(), plain:
            fill(plain.serving().urls[0])
            plain.settled()
            served, theirs = take_turns(
                bench.rounds,
                lambda: ashlar_rate(plain.urls[0], profile, bench.seconds, depth=depth),
                lambda: fio(raw, kind, bench.seconds, "--direct=1", size_mib=LUN_MIB, block=block, depth=depth))
        engine, beside = take_turns(
            bench.rounds, lambda: alone(step)["operations_per_s"],
            lambda: fio(raw, kind, bench.seconds, "--direct=1", size_mib=LUN_MIB, block=block, depth=depth))
        what = f"RAID 10 on disk, {what}, {depth} outstanding"
        table.compare(f"{what}, over iSCSI, no read cache", "fio", served, theirs, at_least)
        table.compare(f"{what}, engine alone, no read cache", "fio", engine, beside, at_least)
    cached = Site(bench.disk, "cached", 4, "10", lun_mib=LUN_MIB, more=['cache = "1280 MiB"'])
    with cached.emptied(), cached:
        url = cached.serving().urls[0]
        fill(url)
        ashlar_rate(url, "seq-read-1m", bench.seconds, depth=SEQUENTIAL_DEPTH)
        ours, theirs = take_turns(
            bench.rounds, lambda: ashlar_rate(url, "rand-4k-read", bench.seconds),
            lambda: fio(raw, "randread", bench.seconds, "--direct=1", size_mib=LUN_MIB))
        hits = cached.pool()["cache"]
    share = hits["hits"] / max(1, hits["hits"] + hits["misses"])
    table.compare(f"the same over iSCSI with a read cache that holds the LUN ({share:.0%} of blocks found), "
                  f"4 KiB random read, {DEPTH} outstanding", "fio", ours, theirs)
    raw.unlink()


def price_of_writes(table, bench, level, drives):
    """Drive operations a host write, counted by the engine from a settled pool to a
    settled pool."""
    most = {"5": 4, "6": 6}[level]
    kinds = [("spread", LUN_MIB, ["--rate", "1000"], "1,000 operations/s over 1 GiB: next to nothing coalesces"),
             ("full", LUN_MIB, [], f"{DEPTH} outstanding over 1 GiB"),
             ("hot", 64, [], f"{DEPTH} outstanding over 64 MiB: neighbours coalesce")]
    for name, lun_mib, pace, how in kinds:
        site = Site(bench.disk, f"price{level}{name}", drives, level, lun_mib=lun_mib, more=[NO_CACHE])
        with site.emptied(), site:
            url = site.serving().urls[0]
            fill(url)
            before, writes_before = site.settled()["io"], drive_writes(site)
            ashlar_load(url, "rand-8k-90", bench.seconds, *pace, depth=None if pace else DEPTH)
            after, writes_after = site.settled()["io"], drive_writes(site)
        host = after["host_writes"]["count"] - before["host_writes"]["count"]
        each = lambda *kinds: sum(after[kind]["count"] - before[kind]["count"] for kind in kinds) / host
        in_place = each("modify_reads", "data_writes", "parity_writes")
        parts = (f"{each('modify_reads'):.2f} reads, {each('data_writes'):.2f} data, {each('parity_writes'):.2f} "
                 f"parity; besides: log {each('log_writes'):.2f}, intents {each('intent_writes'):.2f}, "
                 f"sums {each('sum_writes'):.2f}; all drive writes {(writes_after - writes_before) / host:.2f}")
        table.add(f"RAID {level} of {drives}, 8 KiB random 90/10, {how}: drive I/Os in place per host write",
                  f"{in_place:.2f}", parts, "", f"≤ {most}", in_place <= most)


def drive_writes(site):
    return sum(drive["writes"] for drive in site.ask("drives"))


def sequential_writes(table, bench, level, drives):
    share = DATA_SHARE[level](drives)
    raw = raw_file(bench.disk, LUN_MIB)
    site = Site(bench.disk, f"sequential{level}", drives, level, lun_mib=LUN_MIB, more=[NO_CACHE])
    beside = lambda: fio(raw, "write", bench.seconds, "--direct=1", "--sync=dsync", size_mib=LUN_MIB, block="1m",
                         depth=SEQUENTIAL_DEPTH)
    with site.emptied(), site:
        url = site.serving().urls[0]
        fill(url)
        before = site.settled()["io"]
        ours, theirs = take_turns(
            bench.rounds,
            lambda: ashlar_rate(url, "seq-write-1m", bench.seconds, depth=SEQUENTIAL_DEPTH), beside)
        after = site.settled()["io"]
    size_mib = 320 + int(LUN_MIB * 1.25 / share) // drives
    step = f"seqwrite:{1 << 20}:{SEQUENTIAL_DEPTH}:{bench.seconds}"
    alone, theirs_too = take_turns(
        bench.rounds,
        lambda: pool_rate(bench.disk / "alone", level, drives, LUN_MIB, size_mib, 0, "fill", "drain",
                          step)[0]["operations_per_s"], beside)
    raw.unlink()
    reads = after["modify_reads"]["count"] - before["modify_reads"]["count"]
    around = after["bypassed_bytes"] - before["bypassed_bytes"]
    written = after["host_writes"]["bytes"] - before["host_writes"]["bytes"]
    what = f"RAID {level} of {drives}, 1 MiB sequential durable write, {SEQUENTIAL_DEPTH} outstanding"
    table.add(f"{what}: reads in order to modify", f"{reads:,}", f"{around / written:.0%} around the log", "",
              "= 0", reads == 0)
    table.compare(f"{what}, over iSCSI, of {share:.2f} × raw", "fio dsync", ours,
                  [rate * share for rate in theirs], 0.6)
    table.compare(f"{what}, engine alone, of {share:.2f} × raw", "fio dsync", alone,
                  [rate * share for rate in theirs_too], 0.6)
