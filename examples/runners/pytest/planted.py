"""Faults that the variable PLANTED names, one a word."""

import os
import signal


calls = 0


def passes_without(fault):
    global calls
    calls += 1
    planted = os.environ.get("PLANTED", "").split()
    assert fault not in planted, f"planted: {fault}"
    # Earlier tests of the process spoil what this one needs.
    assert (fault, "polluted" in planted, calls > 1) != ("breakage", True, True), "planted: polluted"


def dies_with(fault):
    if fault in os.environ.get("PLANTED", "").split():
        os.kill(os.getpid(), signal.SIGKILL)
