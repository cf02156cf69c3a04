"""The `dialeval` command. One file per verb parses, calls the library and prints, without logic."""

from __future__ import annotations

import atexit
import errno
import gc
import sys


def main() -> None:
    """Runs a verb; exits 0 on success, 1 on a failed job, 2 on bad usage or bad input."""
    from dialeval.cli.app import app_for
    from dialeval.errors import DialevalError

    # Python would look through all that torch made, several times, only to end: as long as half a
    # second. What is frozen is left out.
    atexit.register(gc.freeze)
    try:
        app_for(sys.argv[1:])()
    except DialevalError as error:
        from dialeval.cli.terminal import say

        say(str(error), stderr=True, style="red")
        sys.exit(error.exit_code)
    except OSError as error:
        from dialeval.cli.terminal import say

        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        place = error.filename or ("standard output" if full else "")
        advice = ". Free some space, and repeat the command" if full else ""
        text = f"{place}: " * bool(place) + f"{error.strerror or error}{advice}"
        say(text, stderr=True, style="red")
        sys.exit(1)
