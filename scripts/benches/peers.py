"""Ashlar beside tgt and fio: reads from memory, durable writes, the drive layer;
and how long it takes to start."""

import os
import re
import statistics
import time

from .basics import DEPTH, REPO, TARGET, Failure, run
from .clients import ashlar_rate, drive_rate, fill, fio, iscsi_perf, raw_file
from .figures import take_turns
from .servers import Site, Tgt, free_address, login


def reads(table, bench):
    # One LUN is in one lane, on one shard, however many sessions it has; other shards
    # carry those after the first. LUNs of a pool spread over its lanes.
    layouts = [(1, 1, "one session", 1.5), (1, 4, "4 sessions on one LUN", 2.5),
               (2, 4, "4 sessions on two LUNs of one pool, two lanes", 2.5)]
    for luns, sessions, how, at_least in layouts:
        # No cache: tgt leaves that to the kernel, and so do the drive files here.
        site = Site(bench.memory, f"reads{luns}-{sessions}", 4, "10", luns, more=['cache = "none"'])
        with site, Tgt(bench.disk, bench.memory, luns) as tgt:
            tgt.configure()
            site.serving()
            for url in site.urls:
                fill(url)
            ours, theirs = take_turns(bench.rounds, lambda: iscsi_perf(site.urls, sessions, bench.seconds),
                                      lambda: iscsi_perf(tgt.urls, sessions, bench.seconds))
            table.compare(f"4 KiB random read, {DEPTH} outstanding, {how}, in memory", "tgt",
                          ours, theirs, at_least)


def writes(table, bench):
    raw = raw_file(bench.disk)
    mirrored = Site(bench.disk, "raid10", 4, "10")
    single = Site(bench.disk, "single", 1, "simple")
    [url10], [url1] = mirrored.urls, single.urls
    with mirrored, single:
        for site in (mirrored, single):
            fill(site.serving().urls[0])
        ours10, ours1, theirs = take_turns(
            bench.rounds,
            lambda: ashlar_rate(url10, "rand-4k-write", bench.seconds),
            lambda: ashlar_rate(url1, "rand-4k-write", bench.seconds),
            lambda: fio(raw, "randwrite", bench.seconds, "--direct=1", "--sync=dsync"))
    what = f"4 KiB random durable write, {DEPTH} outstanding, on disk"
    table.compare(f"{what}, single drive", "fio dsync", ours1, theirs, 0.5)
    table.compare(f"{what}, RAID 10 with all drives on that disk", "fio dsync", ours10, theirs, 0.5)
    raw.unlink()


def drives(table, bench):
    for place, directory, direct in (("in memory", bench.memory, 0), ("on disk", bench.disk, 1)):
        path = raw_file(directory)
        for mode, kind, more in (("read", "randread", []), ("write", "randwrite", []),
                                 ("durable", "randwrite", ["--sync=dsync"])):
            if mode == "durable" and not direct:
                continue  # There is nothing to make it durable on.
            ours, theirs = take_turns(bench.rounds, lambda: drive_rate(path, mode, bench.seconds),
                                      lambda: fio(path, kind, bench.seconds, f"--direct={direct}", *more))
            word = {"durable": "durable write"}.get(mode, mode)
            table.compare(f"drive layer, 4 KiB random {word}, {DEPTH} outstanding, {place}", "fio", ours, theirs)
        path.unlink()


def start(table, bench):
    site = Site(bench.disk, "start", 4, "10")
    with site:
        fill(site.serving().urls[0])
    times, sizes = [], []
    for _ in range(5):
        with site:
            times.append(site.wait_for(lambda: login(site.portal)))
            time.sleep(1)
            sizes.append(site.rss_mib())
    table.limit("from exec to the first login, data there already", statistics.median(times), "ms", 1000)
    table.limit("idle memory (RSS)", statistics.median(sizes), "MiB", 64)


def rehearsed_rates(target=TARGET):
    """Modelled I/Os per second of wall time, by level and number of drives."""
    said = run(target / "release/ashlar-sim", "rate")
    # Level, drives, outstanding, set up, wall time, I/Os per second.
    found = re.findall(r"^(RAID .*?)\s{2,}(\d+)\s+\d+\s+[\d.]+ s\s+[\d.]+ s\s+(\d+)\s", said, re.MULTILINE)
    if not found:
        raise Failure(f"ashlar-sim rate says no rate: {said}")
    return {(level, int(drives)): int(rate) for level, drives, rate in found}


def sim(table, bench):
    rates = {}
    for _ in range(bench.rounds):
        for of, rate in rehearsed_rates().items():
            rates.setdefault(of, []).append(rate)
    for (level, drives), measured in rates.items():
        table.add(f"1,000,000 I/Os through {level} over {drives:,} drives in virtual time",
                  f"{statistics.median(measured):,.0f}/s of wall time")


def demo(table, bench):
    env = dict(os.environ, PORTAL=free_address(), API=free_address())
    cores = [] if (os.cpu_count() or 1) <= 2 else ["taskset", "-c", "0,1"]
    seconds = []
    for _ in range(2):
        began = time.monotonic()
        run(*cores, "make", "demo", cwd=REPO, env=env)
        seconds.append(time.monotonic() - began)
    table.limit("second `make demo`, on 2 cores", seconds[1], "s", 90)
