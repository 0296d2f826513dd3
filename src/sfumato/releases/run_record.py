"""The run record: a private log of which releases were made from which table.

Two releases of one table under different policies can be intersected: a record is in one class of each, and the overlap
can be a single person. So every written release adds a line to a file in the user's state directory (0600): the time,
the input, the output, the policy, what was measured against the original (the certificate has none of it), and a
fingerprint of every quasi-identifier, keyed by a secret that never leaves that directory.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_state_path

from sfumato.kernels.threads import in_threads
from sfumato.policy import Policy
from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain, NumericDomain

SECRET_BYTES = 32
MANY = 1 << 16
AUTO = "auto"


def state_directory() -> Path:
    """The directory of the run record: SFUMATO_STATE_DIR, or the usual place of the operating system."""
    root = os.environ.get("SFUMATO_STATE_DIR")
    return Path(root) if root else user_state_path("sfumato")


def fingerprints(
    batches: Iterable[Codes], used: Sequence[NDArray[np.int64]], domains: Sequence[Domain]
) -> dict[str, str]:
    """A keyed digest of every quasi-identifier, row by row; equal only for equal values in the same order.

    used: how often each code of each domain occurs in the batches. A column with a single value does not distinguish
    tables and gets no digest, unless every column is like that. Raises OSError if no record can be kept.
    """
    secret = _secret()
    os.close(_open_record())
    varying = [q for q in range(len(domains)) if np.count_nonzero(used[q]) > 1] or range(len(domains))
    digests = [_Fingerprint(secret, domains[q], np.flatnonzero(used[q]).tolist()) for q in varying]
    for codes in batches:
        in_threads(lambda index: digests[index].add(codes[:, varying[index]]), range(len(varying)))  # noqa: B023
    names = [hmac.digest(secret, domains[q].name.encode(), "sha256").hex() for q in varying]
    return {name: digest.hexdigest() for name, digest in zip(names, digests, strict=True)}


def fingerprints_of_contents(contents: Mapping[str, bytes]) -> dict[str, str]:
    """A keyed digest of every column of a table without row order, from a text of its values and their counts."""
    secret = _secret()
    os.close(_open_record())
    return {
        hmac.digest(secret, name.encode(), "sha256").hex(): hmac.digest(secret, content, "sha256").hex()
        for name, content in contents.items()
    }


def earlier_releases(
    columns: Mapping[str, str], policy: Policy, *, drawn: bool = False, rules: str | None = None
) -> int:
    """Count earlier releases of the same table under another policy, or, with ``drawn``, under any policy.

    Random groups are drawn afresh in each run, so even the same policy gives another grouping. ``rules`` is a digest of
    the rules that decided the grouping, if they were learnt on another table.
    """
    current = _policy_digest(policy, rules)
    return sum(
        (drawn or run["policy"] != current)
        and any(run["columns"].get(name) == digest for name, digest in columns.items())
        for run in _runs()
    )


def record_run(
    columns: Mapping[str, str],
    policy: Policy,
    source: str,
    target: str | Path,
    *,
    rules: str | None = None,
    figures: Mapping[str, Any] | None = None,
) -> None:
    """Append a written release to the record. figures: what is known about the release and may not be published."""
    line = {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "input": source,
        "output": str(target),
        "policy": _policy_digest(policy, rules),
        "columns": dict(columns),
        "private_figures": dict(figures or {}),
    }
    content = json.dumps(line).encode() + b"\n"
    handle = _open_record()
    try:
        if os.fstat(handle).st_size:
            os.lseek(handle, -1, os.SEEK_END)
            if os.read(handle, 1) != b"\n":
                content = b"\n" + content  # the previous run could not finish its line
        # One write, so that simultaneous runs do not mix their lines.
        if os.write(handle, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)


def _open_record() -> int:
    return os.open(state_directory() / "runs.jsonl", os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)


def _runs() -> list[dict[str, Any]]:
    try:
        lines = (state_directory() / "runs.jsonl").read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    runs = []
    for line in lines:
        with contextlib.suppress(ValueError):  # a run that was killed may have left half a line
            run = json.loads(line)
            if isinstance(run, dict) and isinstance(run.get("columns"), dict) and "policy" in run:
                runs.append(run)
    return runs


def _secret() -> bytes:
    directory = state_directory()
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = directory / "secret"
    if not path.exists():
        _make_secret(path)
    secret = path.read_bytes()
    if len(secret) != SECRET_BYTES:
        raise OSError(errno.EIO, "the secret of the run record is damaged")
    return secret


def _make_secret(path: Path) -> None:
    """Write the secret under another name and link it: if several runs do so at once, the first one's stays."""
    fresh = path.with_name(f"secret-{secrets.token_hex(4)}")
    with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(secrets.token_bytes(SECRET_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()


class _Fingerprint:
    """The digest of one column. It does not depend on the taxonomy, the type or the other columns.

    Values are numbered in the order of their texts. A numeric column with more than MANY values keeps its order of
    numbers, which is faster: nobody would read such a column as categories.
    """

    def __init__(self, secret: bytes, domain: Domain, used: list[int]) -> None:
        self._digest = hmac.new(secret, digestmod=hashlib.sha256)
        if isinstance(domain, NumericDomain) and len(used) > MANY:
            ordered = used
            self._digest.update(domain.values.astype(np.float64).tobytes())
        else:
            texts = dict(zip(used, _texts(domain, used), strict=True))
            # Null is distinguished from every text, including the empty one.
            ordered = sorted(used, key=lambda code: (texts[code] is None, texts[code] or ""))
            self._digest.update(json.dumps([texts[code] for code in ordered]).encode())
        self._rank = np.zeros(domain.size, np.min_scalar_type(len(used)))
        self._rank[ordered] = np.arange(len(used))

    def add(self, codes: NDArray[np.unsignedinteger]) -> None:
        self._digest.update(self._rank[codes].data)

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _texts(domain: Domain, codes: list[int]) -> list[str | None]:
    if isinstance(domain, CategoricalDomain):
        leaves = domain.taxonomy.leaves
        return [leaves[code] if code < len(leaves) else None for code in codes]
    assert isinstance(domain, NumericDomain)
    texts: list[str | None] = domain.texts(domain.values).to_pylist()
    return [texts[code] if code < len(texts) else None for code in codes]


def _policy_digest(policy: Policy, rules: str | None) -> str:
    """A digest of what decides the grouping, including the contents of taxonomies but not the table's file format."""
    if rules is not None:
        return rules
    content = policy.to_dict()
    content.pop("input", None)
    if policy.method.name != AUTO and not policy.privacy.sensitive:
        content.pop("engine", None)  # in this case all engines make the same classes
    for name, column in policy.columns.items():
        if column.taxonomy_file is not None:
            with contextlib.suppress(OSError):
                taxonomy = hashlib.sha256(policy.taxonomy_path(name).read_bytes()).hexdigest()
                content["columns"][name]["taxonomy"] = taxonomy
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
