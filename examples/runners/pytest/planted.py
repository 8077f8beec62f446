"""Faults that the variable PLANTED names, one a word."""

import os
import signal


def passes_without(fault):
    assert fault not in os.environ.get("PLANTED", "").split(), f"planted: {fault}"


def dies_with(fault):
    if fault in os.environ.get("PLANTED", "").split():
        os.kill(os.getpid(), signal.SIGKILL)
