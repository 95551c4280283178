"""Servers in the background: Ashlar with a site of its own, and tgt."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.request
from pathlib import Path

from .basics import LUN_MIB, TARGET, Failure, run

IQN = "iqn.2026-11.dev.ashlar:bench"


def free_address():
    """An address of this host that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def login(address):
    """Logs in to an iSCSI portal for discovery; true when it accepts."""
    host, port = address.rsplit(":", 1)
    text = b"InitiatorName=iqn.2026-11.dev.ashlar:bench-client\0SessionType=Discovery\0AuthMethod=None\0"
    # RFC 7143, 11.12: immediate login request, transit from security to full feature.
    header = struct.pack(">BBBBI", 0x43, 0x83, 0, 0, len(text))
    header += bytes([0x80, 0, 0, 0, 0, 0, 0, 0]) + struct.pack(">IHHII", 1, 0, 0, 1, 0) + bytes(16)
    with socket.create_connection((host, int(port)), timeout=5) as stream:
        stream.sendall(header + text + bytes(-len(text) % 4))
        answer = b""
        while len(answer) < 48:
            more = stream.recv(4096)
            if not more:
                return False
            answer += more
    return answer[0] & 0x3F == 0x23 and answer[36] == 0


class Server:
    """A program in the background; its end is part of leaving the block."""

    def __init__(self, command, log, env=None):
        self.command, self.log, self.env, self.process = command, log, env, None

    def __enter__(self):
        self.began = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([str(c) for c in self.command], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env=self.env)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def wait_for(self, ready, within_s=60):
        """Waits until ready() is true; gives milliseconds since the start."""
        while time.monotonic() - self.began < within_s:
            if self.process.poll() is not None:
                break
            try:
                if ready():
                    return (time.monotonic() - self.began) * 1000
            except (OSError, Failure):
                pass
            time.sleep(0.001)
        tail = Path(self.log).read_text(errors="replace").strip()[-2000:]
        raise Failure(f"{self.command[0]} does not serve: {tail or 'it said nothing'}")

    def cpu_s(self):
        """Processor time of all its threads so far, without the kernel's workers."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def rss_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


# Drives that hold one drive's worth of data: the share of a pool's bytes that is data.
DATA_SHARE = {"simple": lambda n: 1, "10": lambda n: 1 / 2, "5": lambda n: (n - 1) / n,
              "6": lambda n: (n - 2) / n}


class Site(Server):
    """`ashlar serve` with a site of one pool of `drives` files, with `luns` LUNs, each
    behind a target of its own and in a lane of its own; as many shards as a site file
    that says nothing gets, or as it is told. The program is the one built in `target`."""

    def __init__(self, work, name, drives, level, luns=1, lun_mib=LUN_MIB, more=(), room=1.25, shards=None,
                 target=TARGET):
        self.portal, self.api = free_address(), free_address()
        # Labels, metadata, logs and sums want room, and overwrites some to move to: `room`
        # is that for data, in sizes of the LUNs.
        size_mib = 320 * luns + int(lun_mib * room / DATA_SHARE[level](drives)) // drives
        lun_mib //= luns
        names = [f"p0d{i}" for i in range(drives)]
        few = [f"shards = {shards}"] if shards else []
        lines = ["[site]", f'name = "{name}"', *few, "[api]", f'listen = "{self.api}"',
                 "[[portal]]", f'address = "{self.portal}"']
        for drive in names:
            lines += ["[[drive]]", f'name = "{drive}"', f'file = "{drive}.img"', f'size = "{size_mib} MiB"']
        lines += ["[[pool]]", 'name = "pool0"', f'level = "{level}"', f"lanes = {luns}",
                  f"drives = {json.dumps(names)}", *more]
        self.urls = []
        for lun in range(luns):
            lines += ["[[volume]]", f'name = "lun{lun}"', 'pool = "pool0"', f'size = "{lun_mib} MiB"',
                      "[[export]]", f'target = "{IQN}{lun}"', f'volumes = ["lun{lun}"]', 'initiators = "any"']
            self.urls.append(f"iscsi://{self.portal}/{IQN}{lun}/0")
        home = work / name
        home.mkdir()
        (home / "site.toml").write_text("\n".join(lines) + "\n")
        self.home, self.data = home, home / "data"
        super().__init__([target / "release/ashlar", "serve", "--site", home / "site.toml", "--data", self.data],
                         home / "serve.log")

    @contextlib.contextmanager
    def emptied(self):
        """Its files go when the block is left: the disk is not for all sites at once."""
        try:
            yield
        finally:
            shutil.rmtree(self.data, ignore_errors=True)

    def serving(self):
        self.wait_for(lambda: login(self.portal))
        return self

    def ask(self, path, method="GET", body=None):
        """The answer of the REST API."""
        request = urllib.request.Request(f"http://{self.api}/api/v1/{path}", method=method)
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def pool(self, index=0):
        return self.ask(f"pools/pool{index}")

    def settled(self, index=0):
        """The pool once its log is in place and nothing goes on in the background."""
        before = None
        while True:
            pool = self.pool(index)
            quiet = pool["log_used_bytes"] == 0 and pool["backed_bytes"] == 0 and not pool["tasks"]
            if quiet and before == pool["io"]:
                return pool
            before = pool["io"]
            time.sleep(1)


class QemuNbd(Server):
    """A qcow2 image behind qemu-nbd, with direct I/O, each write durable by itself."""

    def __init__(self, work, image):
        self.socket = work / "qemu-nbd.socket"
        self.socket.unlink(missing_ok=True)
        self.url = f"nbd+unix:///?socket={self.socket}"
        super().__init__(["qemu-nbd", "-f", "qcow2", "--cache=directsync", "--aio=io_uring", "--persistent",
                          "--socket", self.socket, image], work / "qemu-nbd.log")

    def serving(self):
        def answers():
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(self.socket))
            return True
        self.wait_for(answers)
        return self


class Tgt(Server):
    """tgtd on a control socket and a port of its own, with filled LUNs, each behind
    a target of its own."""

    def __init__(self, work, memory, luns=1):
        self.portal = free_address()
        self.urls = [f"iscsi://{self.portal}/{IQN}{lun}/1" for lun in range(luns)]
        self.backing = [memory / f"tgt{luns}-{lun}.img" for lun in range(luns)]
        for path in self.backing:
            with open(path, "wb") as backing:
                for _ in range(LUN_MIB // luns):
                    backing.write(os.urandom(1 << 20))
        env = dict(os.environ, TGT_IPC_SOCKET=str(work / f"tgt{luns}.ipc"))
        super().__init__(["tgtd", "-f", "--iscsi", f"portal={self.portal}"], work / "tgtd.log", env)

    def configure(self):
        def admin(*args):
            run("tgtadm", "--lld", "iscsi", *args, env=self.env)
        self.wait_for(lambda: admin("--mode", "sys", "--op", "show") is None)
        for lun, backing in enumerate(self.backing):
            tid = lun + 1
            admin("--mode", "target", "--op", "new", "--tid", tid, "-T", f"{IQN}{lun}")
            admin("--mode", "logicalunit", "--op", "new", "--tid", tid, "--lun", 1, "--bstype", "rdwr",
                  "-b", backing)
            admin("--mode", "target", "--op", "bind", "--tid", tid, "-I", "ALL")
