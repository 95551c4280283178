"""Pools of modelled hard disks in virtual time: random I/O and streams over 8 to 120 disks, and random
writes behind a log of flash.

Each figure is of a rehearsal, the engine that serves on modelled drives, so the machine's speed
does not matter. Beside it stands the share of the drives' own rate that the level leaves, from
the model's table: of the deep-queue rate of a drive (32 outstanding, over the whole drive) a random
write takes 2, 4 or 6 operations, a random read one; of the rate of its outermost tracks a stream
takes the data drives' part.
"""

import json
import re

from .basics import TARGET, Failure, run

MODEL, NAME, CAPACITY_GB = "sas-10k-600", "SAS 10k", 600
VM_DISK_GB = 300
WARMUP_S, MEASURE_S = 20, 20
# Records of checksums fill their part of a log of flash slowly. Each row of a large pool takes minutes.
FLASH_WARMUP_S = 100
FLASH_DISKS_MAX = 60
# Lanes of a pool that several threads serve: each has a log of its own, on drives of its own.
LANES = 4
# Outstanding operations for each disk of the pool.
DEPTH_PER_DISK = 16

# Disks, and how they make groups: at most 32 are in one.
POOLS = [(8, 8), (24, 24), (60, 12), (120, 12)]
READERS = (1, 16, 128)

SITE = """
[site]
name = "disks"
[run]
warmup = "{warmup} s"
measure = "{measure} s"
[[controller]]
name = "array"
model = "ashlar"
cores = 16
ports = [{{ network = "san", count = 4 }}]
[[bus]]
name = "pcie"
kind = "pcie"
[[drives]]
name = "disk"
model = "{model}"
count = {disks}
bus = "pcie"
[[pool]]
name = "pool"
controller = "array"
lanes = {lanes}
groups = [{{ level = "{level}", drives = {group}, from = "disk", count = {groups} }}{log_group}]
[[network]]
name = "san"
kind = "ethernet"
speed = "100 Gb/s"
mtu = 9000
[[host]]
name = "host"
count = 2
cores = 32
clock_ghz = 2.8
memory = "256 GiB"
initiator = "iscsi"
ports = [{{ network = "san", count = 2 }}]
[[vm_group]]
name = "load"
profile = "{profile}"
hosts = ["host"]
pools = ["pool"]
outstanding = {outstanding}
count = {vms}
"""


def sets_of(group):
    """Sets of RAID 5 that level 50 makes of a group: the fewest of three drives or more."""
    return next(sets for sets in range(2, group) if group % sets == 0 and group // sets >= 3)


# The log group has as many drives of flash as the level needs copies.
FLASH = """
[[drives]]
name = "flash"
model = "nvme-7680"
count = {copies}
bus = "pcie"
"""
LOG_GROUPS = {"10": ("10", 2), "50": ("10", 2), "6": ("10x3", 3)}
# Operations of drives for a random write, and drives of a group of so many that hold no data.
LEVELS = {"10": (2, lambda group: group // 2), "50": (4, sets_of), "6": (6, lambda _: 2)}


def drive_rates():
    """Of the modelled drive: random reads and writes a second with 32 outstanding, over all of it,
    and MB/s of its outermost tracks."""
    table = run(TARGET / "release/examples/hdd_table")

    def figure(row):
        found = re.search(rf"^\| {NAME} \| {row} \| [\d.]+ \| ([\d.]+) ", table, re.MULTILINE)
        if not found:
            raise Failure(f"hdd_table has no row '{row}' of {NAME}: {table}")
        return float(found[1])

    return figure(r"Read \| 100 %"), figure(r"Write \| 100 %"), figure("sustained outside, MB/s")


def rehearsed(bench, warmup_s=WARMUP_S, flash="", log_group="", lanes=1, **of):
    """The load's KPIs as they last, how busy the drives were, and whether the run has settled."""
    site = bench.disk / "disks.toml"
    plan = SITE.format(warmup=warmup_s, measure=MEASURE_S, model=MODEL, log_group=log_group, lanes=lanes,
                       **of)
    site.write_text(plan + flash)
    said = json.loads(run(TARGET / "release/ashlar", "rehearse", site, "--json", "-"))
    [seed] = said["variants"][0]["seeds"]
    busy = [share["utilisation"] for share in seed["shares"] if share["part"] == "drives"]
    if not busy:
        raise Failure(f"the rehearsal says nothing of its drives: {[s['part'] for s in seed['shares']]}")
    settling = seed["settling"]
    return seed["load"]["total"], max(busy), settling is None or settling["is_settled"]


def disks(table, bench):
    rates = drive_rates()
    for count, group in POOLS:
        for level, (cost, without_data) in LEVELS.items():
            data = count - count // group * without_data(group)
            pool = {"disks": count, "group": group, "groups": count // group, "level": level}
            random_io(table, bench, pool, data, cost, rates)
            streams(table, bench, pool, data, rates)


def random_io(table, bench, pool, data, cost, rates):
    reads_per_s, writes_per_s, _ = rates
    count = pool["disks"]
    writes_in_theory = count * writes_per_s / cost
    # The VMs have half of the pool.
    vms = max(1, data * CAPACITY_GB // 2 // VM_DISK_GB)
    load = {"vms": vms, "outstanding": max(1, count * DEPTH_PER_DISK // vms), **pool}
    level, copies = LOG_GROUPS[pool["level"]]
    flash = {"flash": FLASH.format(copies=copies), "warmup_s": FLASH_WARMUP_S,
             "log_group": f', {{ level = "{level}", drives = {copies}, from = "flash", role = "log" }}'}
    rows = [("random 8 KiB write", "rand-8k-write", writes_in_theory, {}),
            (f"random 8 KiB write, {LANES} lanes", "rand-8k-write", writes_in_theory, {"lanes": LANES}),
            ("random 8 KiB, 67 % reads", "rand-8k-67", count / (0.67 / reads_per_s + 0.33 * cost / writes_per_s), {})]
    if count <= FLASH_DISKS_MAX:
        what = f"random 8 KiB write, log on {copies} drives of flash"
        rows.append((what, "rand-8k-write", writes_in_theory, flash))
    for what, profile, theory, log in rows:
        run_of = rehearsed(bench, profile=profile, **log, **load)
        rate = run_of[0]["reads_per_s"] + run_of[0]["writes_per_s"]
        row(table, (count, pool["level"], what), (rate, theory, "/s"), run_of)


def streams(table, bench, pool, data, rates):
    *_, outer_mb_per_s = rates
    # Each reader has a disk of its own: as many as the pool has room for.
    fit = int(data * CAPACITY_GB * 0.9 / VM_DISK_GB)
    for readers in sorted({min(readers, fit) for readers in READERS}):
        run_of = rehearsed(bench, profile="seq-read-1m", vms=readers, outstanding=1, **pool)
        what = f"1 MiB sequential read, {readers} in order at the same time"
        figures = run_of[0]["megabytes_per_s"], data * outer_mb_per_s, " MB/s"
        row(table, (pool["disks"], pool["level"], what), figures, run_of)


def row(table, of, figures, run_of):
    (count, level, what), (rate, theory, unit), (total, busy, is_settled) = of, figures, run_of
    read, write = total["read"]["response"], total["write"]["response"]
    times = [f"read p99 {read['p99_ms']:.0f} ms"] if read["count"] else []
    times += [f"longest write {write['max_ms']:.0f} ms"] if write["count"] else []
    # A log still fills, or checksums still pile up: the figure is that of the last window.
    times += [] if is_settled else ["not settled"]
    table.add(f"{count} modelled disks, level {level}, {what}; drives {busy:.0%} busy; {', '.join(times)}",
              f"{rate:,.0f}{unit}", f"in theory: {theory:,.0f}{unit}", f"{rate / theory:.2f}")
