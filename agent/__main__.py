"""`agent` and `python -m agent`.  Nothing happens at import."""

import sys


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        from agent.cli.main import run  # noqa: PLC0415 - importing this module must cost nothing

        status = run(sys.argv[1:])
    except KeyboardInterrupt:  # while importing, or on the way out: there is nothing to explain
        status = 130
    sys.exit(status)


if __name__ == "__main__":
    main()
