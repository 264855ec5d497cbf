"""`agent` and `python -m agent`.  Nothing happens at import."""

import gc
import signal
import sys


def main() -> None:
    """Run the command line and exit with its status."""
    if sys.argv[1:2] == ["run"]:
        # They would end the daemon until it listens and once it no longer does.  Nothing is lost: starting
        # reads the configuration and audits.
        for number in (signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
    else:  # all others end before they have made any garbage
        gc.disable()  # a tenth of a cold audit went into looking for some among what was just imported
    try:
        from agent.cli.main import run  # noqa: PLC0415 - importing this module must cost nothing

        status = run(sys.argv[1:])
    except KeyboardInterrupt:  # while importing, or on the way out: there is nothing to explain
        status = 130
    gc.freeze()  # the interpreter would look once more on its way out: another tenth
    sys.exit(status)


if __name__ == "__main__":
    main()
