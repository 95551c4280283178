"""Snapshots, clones and restoring: what they take, and what they cost those who write and
read; beside the same of qcow2 images.

"Right after a snapshot" lasts only until a page has been written once. So it is measured in
bursts that are short beside the volume, each with a snapshot of its own, and what part of the
writes met a page that the snapshot has, too, is counted. The states that it is compared with
are measured in the same bursts, in turns: of the same volume without a snapshot, and, when
all pages are the volume's own again, of a second volume that never had one.
"""

import shutil
import statistics
import subprocess
import time

from .basics import TARGET, Failure, run
from .clients import ashlar_rate, fill, raw_file
from .servers import QemuNbd, Site

LUN_MIB = 1536
# As many as qemu-nbd takes from one client.
DEPTH = 16
BURST_S = 0.25
BURSTS = 4
PAGE = 256 << 10
CLUSTER = 64 << 10
CLONES = 64
DEEP = 100
BOOTING = 32
GIB = 1 << 30


def snapshots(table, bench):
    maps(table, bench)
    ours, theirs = overwrites(bench), overwrites_of_qcow2(bench)
    what = f"RAID 10 on disk, 4 KiB random durable overwrite, {DEPTH} outstanding, over iSCSI,"
    against(table, f"{what} right after a snapshot", "without", ours["without"], ours["after"], 0.5, ours["note"])
    against(table, f"{what} when the pages are the volume's own again", "beside it, without a snapshot", ours["twin"],
            ours["private"], 0.95)
    what = f"RAID 10 on disk, 4 KiB random reads, {DEPTH} outstanding, over iSCSI,"
    against(table, f"{what} of the last of {DEEP} clones of clones", "of the volume itself", ours["first"],
            ours["last"], 0.95)
    for key, how in (("after", "of a new overlay"), ("private", "of an overlay that has all of it")):
        against(table, f"peer: qcow2 by qemu-nbd, the same {how}", "without overlay", theirs["without"], theirs[key],
                note=theirs["note"] if key == "after" else "")
    clones(table, bench)


def against(table, what, of, before, after, at_least=None, note=""):
    """One row from rounds of the same program in two states."""
    ratio = statistics.median(a / b for a, b in zip(after, before))
    table.add(what, f"{statistics.median(after):,.0f}/s",
              f"{of}: {statistics.median(before):,.0f}/s" + (f"; {note}" if note else ""), f"{ratio:.2f}",
              f"≥ {at_least}" if at_least else "", at_least is None or ratio >= at_least)


def maps(table, bench):
    """Of a volume of about 1 TiB, in a pool of the worst maps."""
    program, home, runs = TARGET / "release/examples/recovery", bench.disk / "recovery", []
    for _ in range(bench.rounds):
        home.mkdir()
        run(program, "make", home, "scattered", 10)
        lines = run(program, "snapshots", home).split() + run(program, "zero", home).split()
        runs.append({name: float(value) for name, value in (line.split("=") for line in lines)})
        shutil.rmtree(home)
    got = {name: statistics.median(figures[name] for figures in runs) for name in runs[0]}
    what = f"{got['mapped_tib']:.2f} TiB mapped, no two pages consecutive"
    peer = qcow2_terabyte(bench)
    for count in (1, 10, 1000):
        for step, name in [("snapshot", "a snapshot"), ("clone", "a clone of it"), ("restore", "restoring it")]:
            nth = f"with {count:,} of them" if count > 1 else "the first one"
            took = got[f"{step}_{count}_ms"]
            table.add(f"{what}, {nth}: {name}", f"{took:.2f} ms", peer.get((step, count), ""), "", "≤ 100 ms",
                      took <= 100)
    table.add(f"{what}: memory for each snapshot", f"{got['rss_kib_per_snapshot']:.0f} KiB")
    table.add(f"{what}: {CLONES} clones", f"{got['clones_64_s']:.3f} s", target="≤ 2 s", met=got["clones_64_s"] <= 2)
    for name, how in (("mapped", what), ("unmapped", "as much of which nothing is mapped")):
        table.add(f"{how}: zeroing all of it", f"{got[f'zero_{name}_s']:.3f} s",
                  f"{got[f'zero_{name}_written_kib']:,.0f} KiB written for it")


def qcow2_terabyte(bench):
    """`qemu-img snapshot` of an image of 1 TiB whose every cluster is mapped."""
    image, took = bench.disk / "terabyte.qcow2", {}
    run("qemu-img", "create", "-q", "-f", "qcow2", "-o", "preallocation=metadata", image, "1T")
    for count in range(1, 11):
        # Restoring takes long, and its rows are for the first and the tenth.
        for step, what in (("snapshot", "-c"), ("restore", "-a"))[:2 if count in (1, 10) else 1]:
            began = time.monotonic()
            run("qemu-img", "snapshot", "-q", what, f"s{count}", image)
            took[step, count] = f"qemu-img snapshot {what}, qcow2: {(time.monotonic() - began) * 1e3:,.0f} ms"
    image.unlink()
    return took


def burst(url):
    return ashlar_rate(url, "rand-4k-write", BURST_S, depth=DEPTH, warmup=0)


def in_turns(site, *pairs):
    """Bursts of each of these, `(URL, rates)`, over and over."""
    for _ in range(BURSTS):
        for url, rates in pairs:
            site.settled()
            rates.append(burst(url))


def exported(site, volume):
    """The URL of a volume that gets a target of its own."""
    name = f"iqn.2026-11.dev.ashlar:{volume}"
    site.ask("exports", "POST", {"target": name, "volumes": [volume], "initiators": "any"})
    return f"iscsi://{site.portal}/{name}/0"


def bursts_after_snapshots(site, without, rates, shares):
    """One without a snapshot and one as soon as there is one, in turns."""
    for _ in range(BURSTS):
        site.settled()
        without.append(burst(site.urls[0]))
        before = site.settled()["io"]["host_writes"]["count"]
        site.ask("volumes/lun0/snapshots", "POST", {"name": "new"})
        rates.append(burst(site.urls[0]))
        own_pages = site.ask("volumes/lun0/space")["exclusive_bytes"] // PAGE
        shares.append(own_pages / (site.pool()["io"]["host_writes"]["count"] - before))
        site.settled()
        site.ask("snapshots/lun0@new", "DELETE")


def overwrites(bench):
    """Writes per second without a snapshot, right after one, and once all pages are the
    volume's own though a snapshot is there; reads of the volume and of a clone far from it."""
    rates, shares = {key: [] for key in ("without", "after", "twin", "private", "first", "last")}, []
    site = Site(bench.disk, "snapshots", 4, "10", lun_mib=LUN_MIB, room=4)
    with site.emptied(), site:
        [url] = site.serving().urls
        site.ask("volumes", "POST", {"name": "twin", "pool": "pool0", "size_bytes": LUN_MIB << 20})
        twin = exported(site, "twin")
        fill(url)
        fill(twin)
        for _ in range(bench.rounds):
            bursts_after_snapshots(site, rates["without"], rates["after"], shares)
            site.ask("volumes/lun0/snapshots", "POST", {"name": "kept"})
            fill(url)
            fill(twin)
            in_turns(site, (twin, rates["twin"]), (url, rates["private"]))
            site.ask("snapshots/lun0@kept", "DELETE")
        names = ["lun0", *(f"deep{depth}" for depth in range(DEEP))]
        for of, name in zip(names, names[1:]):
            site.ask(f"volumes/{of}/clone", "POST", {"name": name})
        last = exported(site, names[-1])
        for _ in range(bench.rounds):
            for key, of in (("first", url), ("last", last)):
                rates[key].append(ashlar_rate(of, "rand-4k-read", bench.seconds / 4, depth=DEPTH))
    rates["note"] = f"{statistics.median(shares):.0%} of the writes were the first to their page"
    return rates


def overwrites_of_qcow2(bench):
    """The same of an image, of a new overlay over it, and of one that has been filled."""
    rates, shares = {"without": [], "after": [], "private": []}, []
    base, overlay = bench.disk / "base.qcow2", bench.disk / "overlay.qcow2"

    def rate(nbd):
        # What was written or deleted just now is the disk's business for a while.
        run("sync")
        time.sleep(2)
        return burst(nbd.url)

    run("qemu-img", "create", "-q", "-f", "qcow2", base, f"{LUN_MIB}M")
    with QemuNbd(bench.disk, base) as nbd:
        fill(nbd.serving().url)
    for _ in range(bench.rounds * BURSTS):
        with QemuNbd(bench.disk, base) as nbd:
            rates["without"].append(rate(nbd.serving()))
        run("qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "qcow2", overlay)
        with QemuNbd(bench.disk, overlay) as nbd:
            rates["after"].append(rate(nbd.serving()))
        writes = rates["after"][-1] * BURST_S
        clusters = LUN_MIB * (1 << 20) / CLUSTER
        shares.append(clusters * (1 - (1 - 1 / clusters) ** writes) / writes)
    with QemuNbd(bench.disk, overlay) as nbd:
        fill(nbd.serving().url)
    for _ in range(bench.rounds * BURSTS):
        with QemuNbd(bench.disk, overlay) as nbd:
            rates["private"].append(rate(nbd.serving()))
    overlay.unlink()
    base.unlink()
    rates["note"] = f"by arithmetic {statistics.median(shares):.0%} of the writes were a cluster's first"
    return rates


def clones(table, bench):
    """Clones of an image, by REST, and some of them read the same gibibyte."""
    site = Site(bench.disk, "clones", 4, "10", lun_mib=20 << 10, more=['cache = "1536 MiB"'], room=0.3)
    image = raw_file(bench.disk, 2048)
    times, asked, read = [], [], []
    with site.emptied():
        with site:
            [url] = site.serving().urls
            run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", image, url)
            site.ask("volumes/lun0/snapshots", "POST", {"name": "gold"})
            for turn in range(bench.rounds):
                began = time.monotonic()
                for clone in range(CLONES):
                    site.ask("volumes/lun0@gold/clone", "POST", {"name": f"c{turn}-{clone}"})
                times.append(time.monotonic() - began)
            guests = [exported(site, f"c0-{clone}") for clone in range(BOOTING)]
        for _ in range(bench.rounds):
            # Nothing is in RAM at the beginning.
            with site:
                site.serving()
                before = site.pool()
                boot_storm(guests)
                after = site.pool()
            asked.append(after["io"]["host_reads"]["bytes"] - before["io"]["host_reads"]["bytes"])
            # For commands, and ahead of them.
            read.append(after["io"]["data_reads"]["bytes"] - before["io"]["data_reads"]["bytes"]
                        + after["cache"]["ahead_bytes"] - before["cache"]["ahead_bytes"])
    image.unlink()
    took, theirs = statistics.median(times), statistics.median(linked_clones(bench))
    table.add(f"{CLONES} clones of a volume of 20 GiB, 2 GiB of it mapped, by REST, one after the other",
              f"{took:.3f} s", f"{CLONES} × qemu-img create -b: {theirs:.3f} s", f"{theirs / took:.1f}", "≤ 2 s",
              took <= 2)
    once = statistics.median(read) / GIB
    table.add(f"boot storm: {BOOTING} clones read the same 1 GiB at once, cache of 1.5 GiB: read of drives",
              f"{once:.2f} GiB", f"{statistics.median(asked) / GIB:.1f} GiB asked for", "", "≤ 1.1 GiB", once <= 1.1)


def boot_storm(urls):
    step = 16
    reads = [word for at in range(0, 1024, step) for word in ("-c", f"read {at}M {step}M")]
    commands = [["qemu-io", "-r", "-f", "raw", *reads, url] for url in urls]
    guests = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True) for command in commands]
    for guest in guests:
        said = guest.communicate()[0]
        if guest.returncode != 0 or "failed" in said:
            raise Failure(f"qemu-io: {said.strip()[-500:]}")


def linked_clones(bench):
    """Seconds for as many overlays over a qcow2 image of that size."""
    home, times = bench.disk / "linked", []
    for _ in range(bench.rounds):
        home.mkdir()
        base = home / "base.qcow2"
        run("qemu-img", "create", "-q", "-f", "qcow2", base, "20G")
        began = time.monotonic()
        for clone in range(CLONES):
            run("qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "qcow2", home / f"c{clone}.qcow2")
        times.append(time.monotonic() - began)
        shutil.rmtree(home)
    return times
