"""What a block target is asked for: beside tgt from memory, beside fio and iperf3, what a
command costs the processor, and copies that the array makes itself."""

import json
import os
import re
import statistics
import subprocess

from .basics import DEPTH, LUN_MIB, TARGET, Failure, run
from .clients import ashlar_load, data_in_rate, fill, fio_jobs, iscsi_perf, raw_file
from .figures import take_turns
from .servers import Server, Site, Tgt, free_address

# All of a LUN is found in memory, as tgt finds its file in the kernel's.
CACHED = ['cache = "1 GiB"']


def block(table, bench):
    one_lun(table, bench)
    several(table, bench)
    on_disk(table, bench)
    offload(table)
    short_segments(table, bench)


def warm(urls, bench):
    """Everything is where it will be read from."""
    for url in urls:
        fill(url)
    iscsi_perf(urls, len(urls), bench.seconds)


def one_lun(table, bench):
    site = Site(bench.memory, "block1", 4, "10", more=CACHED)
    with site, Tgt(bench.disk, bench.memory) as tgt:
        tgt.configure()
        site.serving()
        warm(site.urls, bench)
        turns = lambda measure: take_turns(bench.rounds, lambda: measure(site), lambda: measure(tgt))
        costs = {site: [], tgt: []}

        def reads(server):
            before = server.cpu_s()
            rate = iscsi_perf(server.urls, 1, bench.seconds)
            costs[server].append((server.cpu_s() - before) / (rate * bench.seconds) * 1e6)
            return rate

        ours, theirs = turns(reads)
        what = f"4 KiB random read, {DEPTH} outstanding, one session, found in memory"
        table.compare(what, "tgt", ours, theirs, 2.5)
        cost = statistics.median(a / b for a, b in zip(costs[site], costs[tgt]))
        table.add("the same: processor time of a command at the target",
                  f"{statistics.median(costs[site]):.2f} µs", f"tgt: {statistics.median(costs[tgt]):.2f} µs",
                  f"{cost:.2f}", "≤ 0.5", cost <= 0.5)
        ours, theirs = turns(lambda server: 1e6 / iscsi_perf(server.urls, 1, bench.seconds, depth=1))
        slower = statistics.median(a / b for a, b in zip(ours, theirs))
        table.add("4 KiB random read, one outstanding, found in memory: mean latency",
                  f"{statistics.median(ours):.0f} µs", f"tgt: {statistics.median(theirs):.0f} µs",
                  f"{slower:.2f}", "≤ 0.8", slower <= 0.8)
        mib = lambda server: iscsi_perf(server.urls, 1, bench.seconds, blocks=512) / 4
        ours, theirs = turns(mib)
        line = loopback(bench)
        table.compare(f"256 KiB sequential read, {DEPTH} outstanding, one session, found in memory, in MiB; "
                      f"iperf3 on loopback: {line:,.0f} MiB/s", "tgt", ours, theirs, 1.5)


def several(table, bench):
    for luns in (1, 4):
        site = Site(bench.memory, f"block-{luns}", 4, "10", luns, more=CACHED)
        how = "on one LUN" if luns == 1 else "on four LUNs of one pool, four lanes"
        with site, Tgt(bench.disk, bench.memory, luns) as tgt:
            tgt.configure()
            site.serving()
            warm(site.urls, bench)
            turns = lambda measure: take_turns(bench.rounds, lambda: measure(site), lambda: measure(tgt))
            ours, theirs = turns(lambda server: iscsi_perf(server.urls, 4, bench.seconds))
            at_least = 5 if luns > 1 else None
            table.compare(f"4 KiB random read, {DEPTH} outstanding each, 4 sessions {how}, found in memory",
                          "tgt", ours, theirs, at_least)
            ours, theirs = turns(lambda server: writes(server, bench))
            at_least = 4 if luns > 1 else None
            table.compare(f"4 KiB random write, {DEPTH} outstanding each, 4 sessions {how}, drives in memory, "
                          "each write in the log of two", "tgt, its file only", ours, theirs, at_least)


def writes(server, bench):
    """Four sessions that write; those of one LUN to the same blocks."""
    totals = in_parallel([(server.urls[n % len(server.urls)], "rand-4k-write") for n in range(4)], bench)
    return sum(total["writes_per_s"] for total in totals)


def in_parallel(loads, bench):
    """The totals of several `ashlar load` at the same time."""
    command = [TARGET / "release/ashlar", "load", "--yes"]
    more = ["--iodepth", DEPTH, "--warmup", "1s", "--duration", f"{bench.seconds}s", "--json", "-"]
    clients = [subprocess.Popen([str(c) for c in [*command, profile, "--target", url, *more]],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for url, profile in loads]
    totals = []
    for client in clients:
        said, complained = client.communicate()
        # Exit code 3 says that a latency limit failed, which is not asked here.
        if client.returncode not in (0, 3):
            raise Failure(f"ashlar load: {complained.strip()[-1000:]}")
        totals.append(json.loads(said)["total"])
    return totals


def on_disk(table, bench):
    luns = 4
    site = Site(bench.disk, "block-disk", 4, "10", luns)
    raw = raw_file(bench.disk)
    with site, site.emptied():
        site.serving()
        for url in site.urls:
            fill(url)
        latencies = []

        def ours():
            totals = in_parallel([(url, "rand-8k-90") for url in site.urls], bench)
            latencies.append(statistics.mean(total["read"]["response"]["mean_ms"] for total in totals))
            return sum(total["reads_per_s"] + total["writes_per_s"] for total in totals)

        def theirs():
            jobs = fio_jobs(raw, bench.seconds, ["randrw"] * 4, LUN_MIB, "8k", DEPTH,
                            ["--rwmixread=90", "--direct=1", "--sync=dsync"])
            return sum(job["read"]["iops"] + job["write"]["iops"] for job in jobs)

        mixed = take_turns(bench.rounds, ours, theirs)
        table.compare(f"8 KiB random 90/10, {DEPTH} outstanding each, 4 sessions on four LUNs, RAID 10 on disk, "
                      f"every write durable; mean of reads {statistics.median(latencies):.2f} ms", "fio dsync, 4 jobs",
                      *mixed, 0.7)
    raw.unlink()


def loopback(bench):
    """MiB/s of one TCP connection over loopback."""
    host, port = free_address().rsplit(":", 1)
    with Server(["iperf3", "-s", "-1", "-B", host, "-p", port], bench.disk / "iperf3.log"):
        for _ in range(50):
            done = subprocess.run(["iperf3", "-c", host, "-p", port, "-t", str(bench.seconds), "-J"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode == 0:
                return json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] / 8 / (1 << 20)
            if "refused" not in done.stdout:
                break
    raise Failure(f"iperf3: {done.stdout.strip()[-500:]}")


def offload(table):
    """Copies of 10 GiB inside a pool."""
    said = run(TARGET / "release/examples/offload_rate", env=dict(os.environ, TMPDIR=str(TARGET)))
    for what, how, seconds in re.findall(r"^(.*), 10 GiB(.*): ([\d.]+) s$", said, re.MULTILINE):
        seconds = float(seconds)
        table.add(f"{what} of 10 GiB inside a pool{how}, commands of 256 MiB", f"{seconds:.3f} s", "", "", "≤ 0.2 s",
                  seconds <= 0.2)


def short_segments(table, bench):
    """The processor time of a long READ grows with its length, also in the shortest PDUs."""
    took = data_in_rate(bench.rounds)
    sought, ratio = took["from_the_front"], took["ratio_16_to_8"]
    table.add("READ of 16 MiB in Data-In PDUs of 512 bytes, one connection without a socket: processor time; ratio to 8 MiB",
              f"{took['read_16_mib_ms']:.1f} ms", f"each segment sought from the front: {sought['cut_16_mib_ms']:,.0f} ms",
              f"{ratio:.1f}", "≤ 3", ratio <= 3)
