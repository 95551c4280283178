"""What sums and parity cost this machine's processor."""

import statistics

from .basics import DEPTH
from .clients import arithmetic_rate, ashlar_rate, fill
from .servers import Site


def sums(table, bench):
    costs = [arithmetic_rate(0.5) for _ in range(bench.rounds)]
    middle = lambda key: statistics.median(cost[key] for cost in costs)
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
    share = middle("crc_ns") / 1000 / read_us
    table.add(f"CRC-32C of a block of 4 KiB (not cached), of the server's CPU time a 4 KiB read from disk over "
              f"iSCSI, {DEPTH} outstanding",
              f"{middle('crc_ns'):.0f} ns (cached: {middle('crc_cached_ns'):.0f} ns)", f"{read_us:.2f} µs a read",
              f"{share:.1%}", "≤ 5 %", share <= 0.05)
    memory = middle("memcpy_bytes_per_s")
    for name, key in (("P", "p"), ("P and Q", "pq")):
        rate = middle(f"{key}_bytes_per_s")
        table.add(f"{name} over four columns of 64 KiB, data from memory",
                  f"{rate / 1e9:.1f} GB/s (cached: {middle(f'{key}_cached_bytes_per_s') / 1e9:.1f} GB/s)",
                  f"memory alone: read {middle('read_bytes_per_s') / 1e9:.1f} GB/s, memcpy {memory / 1e9:.1f} GB/s",
                  f"{rate / middle('read_bytes_per_s'):.2f} of read")
