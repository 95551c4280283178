"""Programs that put load on something and say how much it took."""

import json
import os
import re
import subprocess

from .basics import DEPTH, LUN_MIB, TARGET, Failure, run


def iscsi_perf(urls, sessions, seconds, depth=DEPTH, blocks=None):
    """Reads per second, all sessions together; they take the LUNs in turn. Random ones of
    4 KiB, or sequential ones of so many blocks."""
    how = ["-r", "-b", "8"] if blocks is None else ["-b", str(blocks)]
    command = ["iscsi-perf", *how, "-m", str(depth), "-t", str(seconds)]
    clients = [subprocess.Popen([*command, urls[session % len(urls)]], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
               for session in range(sessions)]
    rate = 0
    for client in clients:
        said = client.communicate()[0]
        figures = re.findall(r"iops average (\d+)", said)
        if client.returncode != 0 or not figures or "finished" not in said:
            raise Failure(f"iscsi-perf {urls}: {said.strip()[-500:]}")
        rate += int(figures[-1])
    return rate


def ashlar_load(url, profile, seconds, *more, depth=DEPTH, warmup=1):
    """The totals of a run of `ashlar load` on one target."""
    pace = ["--iodepth", depth] if depth else []
    return load_totals(profile, "--target", url, *pace, "--warmup", f"{warmup}s", "--duration", f"{seconds}s", *more)


def load_totals(*arguments):
    """The totals of a run of `ashlar load`."""
    command = [TARGET / "release/ashlar", "load", *arguments, "--yes", "--json", "-"]
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    # Exit code 3 says that a latency limit failed, which is not asked here.
    if done.returncode not in (0, 3):
        raise Failure(f"ashlar load {arguments}: {done.stderr.strip()[-1000:]}")
    total = json.loads(done.stdout)["total"]
    if total["failed"]:
        raise Failure(f"ashlar load {arguments}: {total['failed']} operations failed: {total['failures']}")
    return total


def rate_and_mean(total):
    """Operations per second, and their mean response time in milliseconds."""
    kinds = [total[kind]["response"] for kind in ("read", "write")]
    count = sum(kind["count"] for kind in kinds)
    mean_ms = sum(kind["count"] * kind["mean_ms"] for kind in kinds) / count
    return total["reads_per_s"] + total["writes_per_s"], mean_ms


def ashlar_rate(url, profile, seconds, *more, depth=DEPTH, warmup=1):
    """Completed operations per second of `ashlar load`."""
    total = ashlar_load(url, profile, seconds, *more, depth=depth, warmup=warmup)
    return total["reads_per_s"] + total["writes_per_s"]


def fill(url):
    ashlar_load(url, "rand-4k-read", 1, "--fill")


def raw_file(directory, size_mib=LUN_MIB, name="raw.img"):
    """A file that is written through, as fio's fair start."""
    path = directory / name
    with open(path, "wb") as raw:
        for _ in range(size_mib):
            raw.write(os.urandom(1 << 20))
        raw.flush()
        os.fsync(raw.fileno())
    return path


def fio_jobs(path, seconds, kinds, size_mib, block="4k", depth=DEPTH, more=()):
    """What fio says of jobs that run at the same time: one for each of `kinds`, on
    `path`, or on a file for each when it is a list."""
    paths = path if isinstance(path, list) else [path] * len(kinds)
    command = ["fio", "--ioengine=io_uring", f"--bs={block}", f"--iodepth={depth}", f"--size={size_mib}m",
               "--time_based", f"--runtime={seconds}", "--randrepeat=0", "--output-format=json", *more]
    for number, (kind, path) in enumerate(zip(kinds, paths)):
        command += [f"--name=job{number}", f"--rw={kind}", f"--filename={path}"]
    said = run(*command)
    # Warnings may stand before the JSON.
    return json.loads(said[said.index("{"):])["jobs"]


def fio(path, kind, seconds, *more, size_mib=LUN_MIB, block="4k", depth=DEPTH):
    """fio's operations per second on a file: kind is randread, randwrite, read, write."""
    [job] = fio_jobs(path, seconds, [kind], size_mib, block, depth, more)
    return job["read"]["iops"] + job["write"]["iops"]


def drive_rate(path, mode, seconds):
    return float(run(TARGET / "release/examples/drive_rate", path, mode, seconds, DEPTH))


def pool_rate(directory, level, drives, lun_mib, size_mib, cache_mib, *steps):
    """What a pool does without a protocol in front of it, one dictionary a measured step."""
    directory.mkdir()
    try:
        said = run(TARGET / "release/examples/pool_rate", directory, level, drives, size_mib, lun_mib,
                   cache_mib, *steps)
    finally:
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()
    return [json.loads(line) for line in said.splitlines()]


def arithmetic_rate(seconds):
    return json.loads(run(TARGET / "release/examples/arithmetic_rate", seconds))


def data_in_rate(rounds):
    return json.loads(run(TARGET / "release/examples/data_in_rate", rounds))
