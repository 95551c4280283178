"""How well the limit of a volume holds, and what it costs a command."""

import statistics
import threading
import time

from .basics import DEPTH
from .block import CACHED, warm
from .clients import iscsi_perf
from .figures import take_turns
from .servers import Site

# More than for a ratio to a peer: the difference is small.
ROUNDS = 10

IOPS = 50
# Longer than any window that is looked at.
SECONDS = 30


def limits(table, bench):
    site = Site(bench.memory, "limits", 4, "10", more=CACHED)
    with site:
        site.serving()
        warm(site.urls, bench)
        held(table, site)
        lifted(table, site)
        cost(table, bench, site)


def limit(site, **limits):
    site.ask("qos/lun0", "PUT", limits)


def reads(site):
    """Reads that the volume has answered."""
    return site.ask("stats/volumes")[0]["io"]["reads"]["commands"]


def counted(site, seconds):
    """Points in time, and how many reads were answered by then."""
    points, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        points.append((time.monotonic(), reads(site)))
        time.sleep(0.1)
    return points


def furthest(points, seconds):
    """By how much of a limit the rate over some window of so many seconds is off, at most."""
    off = []
    for at, count in points:
        later = [point for point in points if point[0] >= at + seconds]
        if later:
            end, so_many = later[0]
            off.append(((so_many - count) / (end - at) / IOPS) - 1)
    return max(off, key=abs)


def held(table, site):
    limit(site, iops=IOPS)
    client = threading.Thread(target=iscsi_perf, args=(site.urls, 1, SECONDS + 4))
    client.start()
    # It has logged in, and the queue is full.
    time.sleep(2)
    points = counted(site, SECONDS)
    client.join()
    for seconds, bound in ((5, 0.05), (1, 0.10)):
        off = furthest(points, seconds)
        table.add(f"limit of {IOPS} IO/s, {DEPTH} outstanding: rate over the worst {seconds} s of {SECONDS}",
                  f"{IOPS * (1 + off):.1f} /s", f"the limit: {IOPS} /s", f"{off:+.1%}", f"± {bound:.0%}", abs(off) <= bound)


def lifted(table, site):
    """How soon a change counts: reads of the first second without the limit, and with it again."""
    limit(site)
    client = threading.Thread(target=iscsi_perf, args=(site.urls, 1, 12))
    client.start()
    time.sleep(2)
    free = counted(site, 3)
    unlimited = (free[-1][1] - free[0][1]) / (free[-1][0] - free[0][0])
    limit(site, iops=IOPS)
    time.sleep(2)
    limit(site)
    first = counted(site, 1)
    rate = (first[-1][1] - first[0][1]) / (first[-1][0] - first[0][0])
    limit(site, iops=IOPS)
    under = counted(site, 1)
    after = under[-1][1] - under[0][1]
    client.join()
    limit(site)
    table.add("first second after the limit is removed", f"{rate:,.0f} /s", f"never limited: {unlimited:,.0f} /s",
              f"{rate / unlimited:.2f}")
    table.add(f"first second after a limit of {IOPS} IO/s is set", f"{after} reads", f"the limit: {IOPS}",
              f"{after / IOPS:.2f}", f"and {DEPTH} past it", after <= IOPS * 1.1 + DEPTH)


def cost(table, bench, site):
    """Reads that are found in memory, at one queue depth, with a limit that keeps none waiting."""
    def cost_us():
        before = site.cpu_s()
        rate = iscsi_perf(site.urls, 1, bench.seconds)
        return (site.cpu_s() - before) / (rate * bench.seconds) * 1e6

    def limited():
        limit(site, iops=100_000_000, bytes_per_s=100_000_000_000)
        cost = cost_us()
        limit(site)
        return cost

    with_it, without = take_turns(max(ROUNDS, bench.rounds), limited, cost_us)
    off = statistics.median((a - b) * 1e3 for a, b in zip(with_it, without))
    table.add("4 KiB random read, found in memory: processor time that limits add to a command",
              f"{statistics.median(with_it):.2f} µs", f"without: {statistics.median(without):.2f} µs",
              f"{off:+.0f} ns", "≤ 300 ns", off <= 300)
