"""What every bench needs: where things are, and commands run to their end."""

import os
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPO / "target")).resolve()
MEMORY = Path("/dev/shm")
DEPTH = 32
LUN_MIB = 512


class Failure(Exception):
    """Something is missing or went wrong; the message says what and what to do."""


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def run(*command, cwd=None, env=None):
    """Runs a command to its end and gives its standard output."""
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, cwd=cwd, env=env)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise Failure(f"{' '.join(map(str, command))} failed ({done.returncode}): {said[-2000:]}")
    return done.stdout
