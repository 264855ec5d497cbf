"""A password or token in a file, read again when the file changes.

Not here: what the secret opens.  No text made here holds any part of it.
"""

import os
import stat
from pathlib import Path
from typing import Final, NoReturn

from agent.core.errors import SecretUnreadable
from agent.core.names import to_visible

MAX_SECRET_BYTES: Final = 64 * 1024
"""Keystone's largest tokens (PKI) are about 8 KiB."""


class SecretFile:
    """One secret.  `name` is an absolute path, or a credential that systemd hands to the service."""

    def __init__(self, name: str, *, credentials_directory: str | None = None) -> None:
        self._name = name
        self._path = Path(name)
        if not self._path.is_absolute() and credentials_directory is not None:
            self._path = Path(credentials_directory, name)
        self._identity: tuple[int, int, int] | None = None
        self._secret = ""

    def __repr__(self) -> str:
        return f"SecretFile({self._name!r})"

    @property
    def name(self) -> str:
        """The path or credential, safe to print."""
        return to_visible(self._name)

    def forget(self) -> None:
        """Read it again next time, whatever the file's times say."""
        self._identity = None

    def read(self) -> str:
        """The secret, without the line end that editors add.

        Raises:
            SecretUnreadable: there is no such file, or nothing in it that could be sent.
        """
        if not self._path.is_absolute():
            self._refuse("is a credential's name, but $CREDENTIALS_DIRECTORY is not set (LoadCredential=)")
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                # A rewrite within the clock's tick may keep mtime and size, but a rename changes the inode.
                identity = (status.st_mtime_ns, status.st_size, status.st_ino)
                if identity != self._identity:
                    if not stat.S_ISREG(status.st_mode):
                        self._refuse("is not a regular file")
                    self._secret = self._check(file.read(MAX_SECRET_BYTES + 1))
                    self._identity = identity
        except OSError as error:
            self._refuse(f"can't be read: {error.strerror}")
        except ValueError:  # a NUL in the path
            self._refuse("no file can have this name")
        return self._secret

    def _check(self, data: bytes) -> str:
        if len(data) > MAX_SECRET_BYTES:
            self._refuse(f"is larger than {MAX_SECRET_BYTES} bytes, which no secret is")
        try:
            secret = data.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            self._refuse("is not UTF-8 text")
        if not secret.strip():
            self._refuse("is empty")
        if any(character in secret for character in "\r\n\0"):
            self._refuse("has more than one line")
        return secret

    def _refuse(self, reason: str) -> NoReturn:
        self._identity = None
        raise SecretUnreadable(subject=self.name, reason=reason) from None
