"""A bucket of an S3-compatible store: the few operations that a run needs, and their errors in words.

Whose bucket it is comes from the environment (AWS_ACCESS_KEY_ID and the like, AWS_ENDPOINT_URL, AWS_REGION), as every
S3 client reads it; no secret is ever part of a URI, a row, a file or a message.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from torus_ray.errors import InputError
from torus_ray.store.errors import StoreError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Store

RETRY_S = 120.0
"""How long a request is tried again, with growing pauses, before the run stops: a restart of a server is waited for."""
FIRST_RETRY_S = 6.0
"""The same of the first look, before anything has started: a wrong endpoint should not take minutes to be seen."""
CONNECT_S, REQUEST_S = 5.0, 60.0
_URI = re.compile(r"^s3:/{1,2}(?P<bucket>[^/]*)(?:/(?P<prefix>.*))?$")
_ENDPOINT = re.compile(
    r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._/-]*)?$|^https?://\[[0-9a-f:]+\](:[0-9]{1,5})?/?$"
)
_BUCKET = re.compile(r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
_SEGMENT = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._+=,@-]*$")
_CODE = re.compile(r"<Code>([^<]{1,80})</Code>")
_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")


class Address(NamedTuple):
    """Where a results folder or something in it lies: bucket and prefix."""

    bucket: str
    prefix: str


class Versioned(NamedTuple):
    """An object's content, the tag that changes with it, and when the store says that it was written."""

    data: bytes
    tag: str
    modified: float


class _Cause(NamedTuple):
    """What went wrong, by a mark in the client's own words."""

    mark: str
    said: str
    mend: str


_CREDENTIALS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN); `aws configure export-credentials "
    "--format env` prints those of a profile"
)
_GONE = _Cause("error sending request", "no store answers there", "check AWS_ENDPOINT_URL, the network and the server")
_CAUSES = (
    _Cause("NoSuchBucket", "there is no such bucket", "make the bucket, or correct the URI or AWS_ENDPOINT_URL"),
    _Cause("/latest/api/token", "no credentials were found", _CREDENTIALS),
    _Cause("ExpiredToken", "the credentials have expired", _CREDENTIALS),
    _Cause("InvalidAccessKeyId", "the store does not know the access key", _CREDENTIALS),
    _Cause("SignatureDoesNotMatch", "the secret key is not that of the access key", _CREDENTIALS),
    _Cause("401 Unauthorized", "the store refuses the credentials", _CREDENTIALS),
    _Cause(
        "403 Forbidden",
        "the credentials have no right to do that",
        "give them s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject there, or use others",
    ),
    _Cause("PermanentRedirect", "the bucket lies in another region", "set AWS_REGION to the bucket's region"),
    _Cause("AuthorizationHeaderMalformed", "the bucket lies in another region", "set AWS_REGION to the bucket's"),
    _GONE,
)
_GOES_ON = "; the same command goes on from what is stored"
_UNKNOWN = _Cause("", "the store did not do it", "look into the cause at the store")


def address_of(place: Path | str) -> Address | None:
    """Bucket and prefix of an s3:// URI; None for what is no URI. A Path made of one, which has lost a slash, counts.

    Raises InputError for a URI that is none of a bucket.
    """
    text = str(place)
    if not re.match(r"^[a-z0-9]+:/", text):
        return None
    match = _URI.match(text)
    segments = [part for part in (match["prefix"] or "").split("/") if part] if match else []
    if match is None or not _BUCKET.match(match["bucket"]) or not all(_SEGMENT.match(part) for part in segments):
        # The text itself is not repeated: somebody may have put a key into it.
        raise InputError(
            "that is no address of a bucket",
            where=text.partition(":")[0] + "://...",
            expected="s3://bucket/prefix, of letters, digits and . _ + = , @ -; keys and endpoint stay outside",
            mend="credentials and endpoint come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL",
        )
    return Address(match["bucket"], "/".join(segments))


class Bucket:
    """A bucket. endpoint: of an S3-compatible server, None for AWS. retry_s: how long what fails is tried again.

    Safe to use from several threads.
    """

    def __init__(self, name: str, endpoint: str | None, *, retry_s: float) -> None:
        from obstore.store import S3Store

        self.name, self._endpoint, self._gone = name, endpoint, False
        options: ClientConfig = {
            "allow_http": bool(endpoint and endpoint.startswith("http://")),
            "connect_timeout": timedelta(seconds=CONNECT_S),
            "timeout": timedelta(seconds=REQUEST_S),
        }
        retry: RetryConfig = {"max_retries": 1000, "retry_timeout": timedelta(seconds=retry_s)}
        with self._in_words("", "open"):
            where: S3Config = {"endpoint": endpoint} if endpoint else {}
            self._patient: S3Store = S3Store(name, config=where, client_options=options, retry_config=retry)

    def impatient(self) -> Bucket:
        """The same for a first look, before anything has started."""
        return Bucket(self.name, self._endpoint, retry_s=FIRST_RETRY_S)

    def uri(self, key: str) -> str:
        return f"s3://{self.name}/{key}"

    @property
    def _store(self) -> S3Store:
        """The client; once a store is gone, what is still to be said to it waits no second time."""
        return self.impatient()._patient if self._gone else self._patient

    @contextmanager
    def _in_words(self, key: str, doing: str) -> Iterator[None]:
        """Turns errors of the client into StoreError: its own words hold whole replies of the server."""
        from obstore.exceptions import BaseError

        uri = self.uri(key)
        try:
            yield
            self._gone = False
        except (BaseError, FileNotFoundError, ValueError) as error:
            told = f"{type(error).__name__} {error}"
            if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in told:
                raise FileNotFoundError(2, "no such object", uri) from None
            cause = next((cause for cause in _CAUSES if cause.mark in told), _UNKNOWN)
            self._gone = cause is _GONE
            raise StoreError(
                f"cannot {doing} {uri}: {cause.said}{_code(told)}",
                where=uri if self._endpoint is None else f"{uri} at {self._endpoint}",
                expected="a bucket that can be listed, read and written",
                mend=cause.mend + _GOES_ON,
            ) from None

    def get(self, key: str) -> bytes:
        """Raises FileNotFoundError where there is no such object; StoreError, as all methods."""
        with self._in_words(key, "read"):
            return self._store.get(key).bytes().to_bytes()

    def get_versioned(self, key: str) -> Versioned | None:
        with self._in_words(key, "read"):
            try:
                found = self._store.get(key)
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None
            meta = found.meta
            return Versioned(found.bytes().to_bytes(), meta["e_tag"] or "", meta["last_modified"].timestamp())

    def put(self, key: str, content: bytes | Path) -> None:
        """One write, whole or not at all; a large file goes up in pieces and appears when they are all there."""
        with self._in_words(key, "write"):
            self._store.put(key, content)

    def put_if(self, key: str, data: bytes, tag: str | None) -> str | None:
        """Write only where the object still has this tag (None: is not there); the new tag, or None when it has not."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._in_words(key, "write"):
            try:
                done = self._store.put(key, data, mode={"e_tag": tag} if tag else "create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return None
            return done["e_tag"]

    def delete(self, keys: Sequence[str]) -> None:
        if keys:
            with self._in_words(keys[0], "delete"):
                self._store.delete(list(keys))

    def objects(self, prefix: str) -> dict[str, int]:
        """The key and size of everything under a prefix, however many pages it takes."""
        with self._in_words(prefix, "list"):
            pages = self._store.list(prefix or None, chunk_size=1000)
            return {found["path"]: found["size"] for page in pages for found in page}

    def level(self, prefix: str) -> tuple[list[str], list[str]]:
        """The names directly under a prefix: those of further prefixes, and those of objects."""
        with self._in_words(prefix, "list"):
            found = self._store.list_with_delimiter(prefix or None)
            folders = [PurePosixPath(path).name for path in found["common_prefixes"]]
            return folders, [PurePosixPath(o["path"]).name for o in found["objects"]]

    def now(self, key: str) -> float:
        """The store's own time, in seconds since 1970, by what it says of an object that is written (and removed)."""
        probe = f"{key}.clock-{secrets.token_hex(4)}"
        self.put(probe, b"what time is it")
        with self._in_words(probe, "read"):
            at = self._store.head(probe)["last_modified"].timestamp()
        self.delete([probe])
        return at

    def check_writable(self, prefix: str) -> None:
        """Write, write under a condition, remove. Raises InputError."""
        key = "/".join(part for part in (prefix, f"probe-{secrets.token_hex(6)}") if part)
        with before_start():
            tag = self.put_if(key, b"may a run be kept here?", None)
            again = self.put_if(key, b"created twice", None)
            changed = self.put_if(key, b"changed by nobody", f'"{secrets.token_hex(16)}"')
            self.delete([key])
        if tag is None or again is not None or changed is not None:
            raise InputError(
                "the store does not keep to conditions on writing (If-None-Match, If-Match)",
                where=self.uri(prefix),
                expected="a store that refuses to overwrite where it is told not to: one run has one driver by it",
                mend="use one that does (AWS S3, MinIO, Backblaze B2, Cloudflare R2 say they do), or a shared folder",
            )


@lru_cache(maxsize=8)
def open_bucket(name: str, endpoint: str | None) -> Bucket:
    """The bucket, its connections shared by all who ask."""
    return Bucket(name, endpoint, retry_s=RETRY_S)


def endpoint_of_environment() -> str | None:
    """Where the S3-compatible server is; None for AWS itself. Raises InputError for what is no address of a server."""
    name = next((name for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") if os.environ.get(name)), None)
    if name is None:
        return None
    endpoint = os.environ[name]
    if not _ENDPOINT.match(endpoint):
        # Not repeated: somebody may have put a key into it.
        raise InputError(
            f"{name} is no address of a server",
            where=name,
            expected="http://HOST:PORT or https://HOST, without keys",
            mend="correct it; without it the store is AWS",
        )
    return endpoint.rstrip("/")


@contextmanager
def before_start() -> Iterator[None]:
    """Turns what a store refuses before anything has started into an InputError (exit code 2)."""
    try:
        yield
    except StoreError as error:
        mend = error.mend.removesuffix(_GOES_ON)
        raise InputError(error.message, where=error.where, expected=error.expected, mend=mend) from None


def _code(told: str) -> str:
    """The store's own code of an error, which is all of its reply that is safe to repeat."""
    match = _CODE.search(told)
    known = [value for name in _SECRETS if (value := os.environ.get(name))]
    return f" ({match[1]})" if match and not any(secret in match[1] for secret in known) else ""
