"""The probe helper: answers questions whose answers may never come, so that only it hangs.

A program of its own, run as ``python -I -S probe_child.py`` by `agent.host.prober`; it imports nothing
but the smallest parts of the standard library (its memory counts) and nothing of the agent.  It only
reads.  One request a line on stdin, one answer a line on stdout, words in between by spaces, all other
bytes in hexadecimal:

    read PATH MAJOR:MINOR LENGTH   first bytes of a block device    -> ok BYTES
    stat PATH MAJOR:MINOR          statvfs of a mount point         -> ok FRSIZE BLOCKS BFREE BAVAIL
    run PROGRAM ARGUMENT...        what a program prints            -> ok BYTES
    anything that fails                                             -> no TEXT

It ends when stdin does.
"""

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the typing module would be the largest thing in this process
    from typing import BinaryIO

_MAX_OUTPUT_BYTES = 1024 * 1024


def serve(requests: "BinaryIO", answers: int) -> None:
    """Answer each line of `requests` on the descriptor `answers` until they end."""
    for line in requests:
        verb, *words = line.decode("ascii").split()
        try:
            answer = "ok " + _ANSWERS[verb](words)
        except OSError as error:
            answer = "no " + (error.strerror or str(error)).encode().hex()
        os.write(answers, answer.encode("ascii") + b"\n")


def _read(words: list[str]) -> str:
    path, number, length = words
    descriptor = os.open(bytes.fromhex(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        # The name may mean another device by now: sysfs and /dev change independently.
        if not stat.S_ISBLK(status.st_mode) or _number(status.st_rdev) != number:
            raise OSError(0, "it is another device by now")
        return os.pread(descriptor, int(length), 0).hex()
    finally:
        os.close(descriptor)


def _stat(words: list[str]) -> str:
    path, number = words
    descriptor = os.open(bytes.fromhex(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # Something else may be mounted over it.
        if _number(os.fstat(descriptor).st_dev) != number:
            raise OSError(0, "something else is mounted there by now")
        values = os.fstatvfs(descriptor)
        return f"{values.f_frsize} {values.f_blocks} {values.f_bfree} {values.f_bavail}"
    finally:
        os.close(descriptor)


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"


def _run(words: list[str]) -> str:
    argv = [bytes.fromhex(word) for word in words]
    reader, writer = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    actions = [
        (os.POSIX_SPAWN_DUP2, null, 0),
        (os.POSIX_SPAWN_DUP2, writer, 1),
        (os.POSIX_SPAWN_DUP2, null, 2),
    ]
    try:
        child = os.posix_spawn(argv[0], argv, {"LC_ALL": "C"}, file_actions=actions)
    finally:
        os.close(writer)
        os.close(null)
    with open(reader, "rb") as pipe:  # noqa: PTH123 - a descriptor
        output = pipe.read(_MAX_OUTPUT_BYTES)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        raise OSError(0, f"it ended with status {status}")
    return output.hex()


_ANSWERS = {"read": _read, "stat": _stat, "run": _run}

if __name__ == "__main__":
    serve(sys.stdin.buffer, 1)
