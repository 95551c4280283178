"""What `ashlar capture` costs the array that it watches."""

import statistics
import subprocess
from contextlib import contextmanager

from .basics import DEPTH, TARGET, Failure
from .block import CACHED, warm
from .clients import iscsi_perf
from .figures import take_turns
from .servers import Site

# More than for a ratio to a peer: the difference is small.
ROUNDS = 10


@contextmanager
def captured(site, seconds):
    """A capture that lasts until the block is left."""
    command = [TARGET / "release/ashlar", "capture", "--api", f"http://{site.api}", "--duration", f"{seconds}s"]
    watcher = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    try:
        yield
        if watcher.poll() is not None:
            raise Failure(f"ashlar capture ended early: {watcher.stderr.read().strip()}")
    finally:
        watcher.terminate()
        watcher.wait()
        subprocess.run([str(c) for c in command[:4]] + ["--stop"], check=False, capture_output=True)


def capture(table, bench):
    """Reads that are found in memory: nothing costs the array less, so the share of a capture is largest."""
    site = Site(bench.memory, "capture", 4, "10", more=CACHED)

    def cost_us():
        before = site.cpu_s()
        rate = iscsi_perf(site.urls, 1, bench.seconds)
        return (site.cpu_s() - before) / (rate * bench.seconds) * 1e6

    def watched():
        with captured(site, bench.seconds + 60):
            return cost_us()

    with site:
        site.serving()
        warm(site.urls, bench)
        with_it, without = take_turns(max(ROUNDS, bench.rounds), watched, cost_us)
    ratio = statistics.median(a / b for a, b in zip(with_it, without))
    table.add(f"4 KiB random read, {DEPTH} outstanding, found in memory: processor time of a command while a capture runs",
              f"{statistics.median(with_it):.2f} µs", f"without: {statistics.median(without):.2f} µs",
              f"{ratio:.3f}", "≤ 1.01", ratio <= 1.01)
