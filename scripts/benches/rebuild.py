"""A drive replaced: how fast its content is put together again, and what commands
notice of it. All drives lie on the same disk, as those of fio do."""

import statistics
import time

from .basics import say
from .clients import ashlar_load, fill, fio, fio_jobs, pool_rate, raw_file
from .servers import DATA_SHARE, Site

LUN_MIB = 2048
SHAPES = [("10", 4, 1), ("6", 6, 4)]
"""Level, drives, and drives that are read for the one that is written."""
FOREGROUND_RATE = 1000
LIMIT_MIB = 100
"""MiB a second of a drive that is to be slower than its share of the disk."""


def rebuild(table, bench):
    for level, drives, sources in SHAPES:
        site = Site(bench.disk, f"rebuild{level}", drives, level, lun_mib=LUN_MIB,
                    more=['cache = "none"', 'background = "full"', 'rebuild_rate = "unlimited"'])
        with site.emptied(), site:
            fill(site.serving().urls[0])
            site.settled()
            full_rate(table, bench, site, level, drives, sources)
            under_load(table, bench, site, level, drives)
        apart(table, bench, level, drives)


def apart(table, bench, level, drives):
    """Drives that don't share what the disk can do: each is held to a rate that is far
    below it, reads and writes together."""
    size_mib = 320 + int(1024 * 1.25 / DATA_SHARE[level](drives)) // drives
    steps = ["fill", "drain", f"limit:{LIMIT_MIB}", "rebuild"]
    ours = [pool_rate(bench.disk / "apart", level, drives, 1024, size_mib, 0, *steps)[0]["bytes_per_s"] / 2**20
            for _ in range(bench.rounds)]
    table.compare(f"rebuild of a drive of RAID {level} of {drives} at full rate, each drive held to {LIMIT_MIB} MiB/s: "
                  "MiB written to it", "its own rate", ours, [LIMIT_MIB] * bench.rounds, 0.7)


def full_rate(table, bench, site, level, drives, sources):
    raw = raw_file(bench.disk, 512)
    fresh = bench.disk / "fresh.img"

    def write():
        """What a new file takes, as the new drive of a rebuild is one."""
        try:
            return fio(fresh, "write", 2, "--direct=1", "--fallocate=posix", size_mib=1024, block="1m", depth=8)
        finally:
            fresh.unlink()

    def mixed():
        """The same reads and writes at once: bytes a second of the writer."""
        try:
            jobs = fio_jobs([raw] * sources + [fresh], 2, ["read"] * sources + ["write"], 512, "1m", 8,
                            ["--direct=1", "--fallocate=posix"])
            return jobs[-1]["write"]["iops"]
        finally:
            fresh.unlink()

    ours, slower, same = [], [], []
    for turn in range(bench.rounds):
        ours.append(replace(site, turn) / 2**20)
        read = fio(raw, "read", 2, "--direct=1", size_mib=512, block="1m", depth=8)
        slower.append(min(read, write()))
        same.append(mixed())
    raw.unlink()
    what = f"rebuild of a drive of RAID {level} of {drives} at full rate, MiB written to it"
    table.compare(what, "slower of fio read and write of 1 MiB", ours, slower, 0.7 if sources == 1 else None)
    table.compare(f"{what}, beside the same reads and writes",
                  f"fio, {sources} reader{'s' if sources > 1 else ''} and a writer", ours, same,
                  None if sources == 1 else 0.7)


def begin(site, turn):
    """Puts a new drive in the place of one; gives the name of the new one."""
    state = site.ask("drives")
    old = next(drive for drive in state if drive["place"] == 1)["name"]
    new = f"r{turn}"
    # One that answers would be copied.
    site.ask(f"drives/{old}/fail", "POST", {})
    site.ask(f"drives/{old}/replace", "POST", {"with": {"name": new, "file": f"{new}.img"}})
    return old


def replace(site, turn):
    """Bytes a second that a rebuild writes to the new drive, from the first on."""
    start = site.pool()["io"]["repair_writes"]["bytes"]
    old = begin(site, turn)
    first = last = None
    while True:
        pool, now = site.pool(), time.monotonic()
        written = pool["io"]["repair_writes"]["bytes"] - start
        if written and first is None:
            first = (now, written)
        if first and (last is None or written > last[1]):
            last = (now, written)
        if pool["health"] in ("ok", "attention") and not pool["tasks"] and written:
            break
        time.sleep(0.002)
    (site.data / f"{old}.img").unlink()
    say(f"rebuilt {last[1] >> 20} MiB")
    return (last[1] - first[1]) / (last[0] - first[0])


def under_load(table, bench, site, level, drives):
    """What commands notice of a rebuild at the rates that hold when nobody says
    anything."""
    site.ask("pools/pool0/rates", "PUT", {"rebuild_bytes_per_s": 0, "background": "yield"})
    load = lambda: ashlar_load(site.urls[0], "rand-8k-90", bench.seconds, "--rate", FOREGROUND_RATE, depth=None)
    mean = lambda total: ((total["read"]["response"]["mean_ms"] * total["read"]["response"]["count"]
                           + total["write"]["response"]["mean_ms"] * total["write"]["response"]["count"])
                          / (total["read"]["response"]["count"] + total["write"]["response"]["count"]))
    quiet, busy, shares = [], [], []
    for turn in range(bench.rounds):
        quiet.append(mean(load()))
        old = begin(site, 100 + turn)
        busy.append(mean(load()))
        tasks = site.pool()["tasks"]
        shares.append(tasks[0]["done_bytes"] / tasks[0]["total_bytes"] if tasks else 1)
        site.ask("pools/pool0/rates", "PUT", {"background": "full"})
        site.settled()
        site.ask("pools/pool0/rates", "PUT", {"background": "yield"})
        (site.data / f"{old}.img").unlink()
    rise = statistics.median(b / q for b, q in zip(busy, quiet))
    table.add(f"mean latency of {FOREGROUND_RATE:,} operations/s (8 KiB random 90/10) while a drive of RAID {level} "
              f"of {drives} is rebuilt at the default rates",
              f"{statistics.median(busy):.3f} ms", f"without: {statistics.median(quiet):.3f} ms",
              f"{rise:.2f}", "< 1.3", rise < 1.3)
    if min(shares) == 1:
        say("the rebuild was over before the load was: the figure is of a part of it")
