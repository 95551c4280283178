"""Opening a pool with 10 TiB mapped, and its checkpoints (synthetic maps)."""

import shutil
import statistics

from benches.basics import TARGET, run


# The checkpoints of a pool with 100 TiB mapped take 10 GB on its drives.
LANES_DISK_BYTES = 16 << 30


def figures(lines):
    return {name: float(value) for name, value in (line.split("=") for line in lines.split())}


def several_lanes(table, bench):
    """100 TiB mapped, in four lanes that open side by side."""
    program, home, tib, count = TARGET / "release/examples/recovery", bench.disk / "recovery", 100, 4
    if shutil.disk_usage(bench.disk).free < LANES_DISK_BYTES:
        print(f"no rows of {tib} TiB: {bench.disk} has less than {LANES_DISK_BYTES >> 30} GiB free")
        return
    home.mkdir()
    run(program, "make", home, "scattered", tib, count)
    runs = [figures(run(program, "lanes", home, count)) for _ in range(bench.rounds)]
    shutil.rmtree(home)
    got = {name: statistics.median(of[name] for of in runs) for name in runs[0]}
    what = f"{got['mapped_tib']:.0f} TiB mapped, no two pages consecutive, {count} lanes"
    table.add(f"{what}: opening", f"{got['recovery_s']:.1f} s", f"processor time: {got['processor_s']:.1f} s",
              target="≤ 10 s", met=got["recovery_s"] <= 10)
    table.limit(f"{what}: memory of the open pool, per TiB", got["rss_mib_per_tib"], "MiB", 64)


def recovery(table, bench):
    program, tib = TARGET / "release/examples/recovery", 10
    shapes = [("runs", "in runs of 16 MiB"), ("scattered", "no two pages consecutive"),
              ("holes", "no two pages consecutive, every other one mapped")]
    for shape, how in shapes:
        home, runs = bench.disk / "recovery", []
        for _ in range(bench.rounds):
            home.mkdir()
            run(program, "make", home, shape, tib)
            runs.append(figures(run(program, "open", home)))
            shutil.rmtree(home)
        got = {name: statistics.median(figures[name] for figures in runs) for name in runs[0]}
        what = f"{got['mapped_tib']:.0f} TiB mapped, {how}"
        table.add(f"{what}: opening", f"{got['recovery_s']:.1f} s", target="≤ 10 s", met=got["recovery_s"] <= 10)
        table.add(f"{what}: read for it", f"{got['read_mib']:,.0f} MiB")
        table.limit(f"{what}: memory at its peak, per TiB", got["peak_after_mib_per_tib"], "MiB", 64)
        table.add(f"{what}: memory of the open pool, per TiB", f"{got['rss_mib_per_tib']:.1f} MiB")
        table.add(f"{what}: a checkpoint", f"{got['checkpoint_s']:.2f} s")
        lanes = [("tick", "the shard held up"), ("read", "4 KiB read"), ("overwrite", "4 KiB overwrite"),
                 ("allocate", "4 KiB write to a new page")]
        for lane, name in lanes:
            quiet, busy = (f"{got[f'{phase}_{lane}_max_ms']:.1f} ms" for phase in ("quiet", "checkpoint"))
            table.add(f"{what}: longest {name} during checkpoints", busy, f"without: {quiet}")
    several_lanes(table, bench)
