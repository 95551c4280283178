"""What sums and parity cost this machine's processor."""

import statistics

from .basics import DEPTH, LUN_MIB
from .clients import arithmetic_rate, ashlar_rate, fill, pool_rate
from .servers import Site


def sums(table, bench):
    verify(table, bench)
    costs = [arithmetic_rate(0.5) for _ in range(bench.rounds)]
    middle = lambda key: statistics.median(cost[key] for cost in costs)
    table.add("CRC-32C of a block of 4 KiB", f"{middle('crc_cached_ns'):.0f} ns in cache",
              f"{middle('crc_ns'):.0f} ns from memory")
    memory = middle("memcpy_bytes_per_s")
    for name, key in (("P", "p"), ("P and Q", "pq")):
        rate = middle(f"{key}_bytes_per_s")
        table.add(f"{name} over four columns of 64 KiB, data from memory",
                  f"{rate / 1e9:.1f} GB/s (cached: {middle(f'{key}_cached_bytes_per_s') / 1e9:.1f} GB/s)",
                  f"memory alone: read {middle('read_bytes_per_s') / 1e9:.1f} GB/s, memcpy {memory / 1e9:.1f} GB/s",
                  f"{rate / middle('read_bytes_per_s'):.2f} of read")


def verify(table, bench):
    """What it costs a 4 KiB read to be checked: with and without, in the engine alone
    with a copy of what was read as a socket makes one (who touches it first brings it
    into the cache for the other); put beside what the whole read costs the server."""
    steps = [f"{kind}:4096:{DEPTH}:{bench.seconds / 2}" for kind in ("served-randread", "unverified-randread")]
    took = pool_rate(bench.disk / "alone", "10", 4, LUN_MIB, 640, 0, "fill", "drain", *steps * 2 * bench.rounds)
    pairs = [(checked["cpu_us"], unchecked["cpu_us"]) for checked, unchecked in zip(took[::2], took[1::2])]
    cost_us = statistics.median(checked - unchecked for checked, unchecked in pairs)
    site = Site(bench.disk, "sums", 4, "10", more=['cache = "none"'])
    each_us = []
    with site.emptied(), site:
        url = site.serving().urls[0]
        fill(url)
        site.settled()
        for _ in range(bench.rounds):
            reads, cpu_s = site.pool()["io"]["host_reads"]["count"], site.cpu_s()
            ashlar_rate(url, "rand-4k-read", bench.seconds)
            done = site.pool()["io"]["host_reads"]["count"] - reads
            each_us.append((site.cpu_s() - cpu_s) / done * 1e6)
    read_us = statistics.median(each_us)
    share = cost_us / read_us
    table.add(f"processor time of a 4 KiB read from disk that its check takes, {DEPTH} outstanding",
              f"{cost_us * 1000:.0f} ns", f"the whole read, over iSCSI: {read_us:.2f} µs", f"{share:.1%}", "≤ 5 %",
              share <= 0.05)
