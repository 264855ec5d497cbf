"""`agent` and `python -m agent`.  Nothing happens at import."""

import sys


def main() -> None:
    """Run the command line and exit with its status."""
    from agent.cli.main import run  # noqa: PLC0415 - importing this module must cost nothing

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
