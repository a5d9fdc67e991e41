"""A test or benchmark that is told to end takes with it what it has started."""

from __future__ import annotations

import signal
import sys
import threading


def end_orderly_when_told() -> None:
    """Lets SIGTERM, as `timeout` sends it, end this process as an error does, so that its servers are ended too.

    Servers have sessions of their own: a process that just dies would leave them running.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if in_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
