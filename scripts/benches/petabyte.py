"""A pool of a petabyte in virtual time, and what the processor spends on an I/O there and in a
pool of 10 TB. Both pools take their turns inside of one run of the example."""

import re

from .basics import TARGET, Failure, run

LARGE, SMALL = "1 PB", "10 TB"
STEP = re.compile(rf"^({LARGE}|{SMALL}), (.*): ([\d.]+) s, processor ([\d.]+) s, virtual ([\d.]+) s, memory (\d+) MiB$",
                  re.MULTILINE)
COST = re.compile(rf"^(.*): (\d+) ns of processor time in {LARGE}, (\d+) ns in {SMALL}, ratio ([\d.]+);", re.MULTILINE)
PEAK = re.compile(r"^peak: memory (\d+) MiB$", re.MULTILINE)


def petabyte(table, _bench):
    said = run(TARGET / "release/examples/petabyte")
    steps, costs, peak = STEP.findall(said), COST.findall(said), PEAK.search(said)
    if not steps or not costs or not peak:
        raise Failure(f"the example petabyte says no figures: {said}")
    of_small = {step: wall_s for size, step, wall_s, *_ in steps if size == SMALL}
    for size, step, wall_s, _, virtual_s, memory_mib in steps:
        if size == LARGE:
            table.add(f"{LARGE} of modelled disks, 60 × 20 TB, level 6 of 12, 4 lanes: {step}, in {virtual_s} s of virtual "
                      f"time; memory after it {memory_mib} MiB", f"{wall_s} s", f"{SMALL}: {of_small[step]} s")
    table.add(f"{LARGE} and {SMALL} of modelled disks: memory of both at its peak", f"{int(peak[1]):,} MiB")
    for what, large_ns, small_ns, ratio in costs:
        table.add(f"{LARGE} of modelled disks, 1,000 volumes, {what}: processor time of an I/O, of engine and model",
                  f"{int(large_ns) / 1000:.1f} µs", f"{SMALL}: {int(small_ns) / 1000:.1f} µs", ratio, "≤ 1.5",
                  float(ratio) <= 1.5)
