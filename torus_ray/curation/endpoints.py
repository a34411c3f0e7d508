"""Which chat model does what: the author (Test Architect and Question Author), the ideal solver, a muted one.

Anything that speaks OpenAI's chat completions will do: OpenAI, Gemini's compatible layer, vLLM, SGLang. A TOML file has
one table a role; a table replaces the default of its role whole, so that a key never goes to another server.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from torus_ray.bank.near import near_names
from torus_ray.errors import InputError

Role = Literal["author", "ideal", "muted"]
ROLES: tuple[Role, ...] = ("author", "ideal", "muted")


class Endpoint(BaseModel):
    """One chat model. Prices are money for a million tokens, in whatever currency the budget is in; None: unknown.

    key_env: the environment variable that holds the key; None where the server wants none. temperature,
    reasoning_effort: sent only if set. max_tokens: the cap on a reply, thinking included, sent as `tokens_field`.
    json_mode: ask for a JSON object where one is wanted. hears: of a muted solver, one second of silence (for models
    that take audio) or nothing but the question. attempts, deadline_s: of one call; in_flight: calls at once.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Annotated[str, Field(min_length=1)]
    base_url: Annotated[str, Field(pattern=r"^https?://[^\s@]+$")] = "https://api.openai.com/v1"
    # Capitals only: a key pasted here by mistake does not fit, and is not echoed.
    key_env: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=80)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(gt=0)] = 16_384
    tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    reasoning_effort: str | None = None
    json_mode: bool = True
    hears: Literal["silence", "nothing"] = "silence"
    input_price: Annotated[float, Field(ge=0)] | None = None
    output_price: Annotated[float, Field(ge=0)] | None = None
    attempts: Annotated[int, Field(ge=1, le=20)] = 6
    deadline_s: Annotated[float, Field(gt=0)] = 300.0
    in_flight: Annotated[int, Field(ge=1, le=1000)] = 32

    @property
    def priced(self) -> bool:
        return self.input_price is not None and self.output_price is not None

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        """What so many tokens cost; None where a price is unknown."""
        if self.input_price is None or self.output_price is None:
            return None
        return (input_tokens * self.input_price + output_tokens * self.output_price) / 1e6

    def key(self) -> str:
        """The key from the environment. Raises InputError where the variable is not there."""
        if self.key_env is None:
            return "none"  # the client wants some text
        value = os.environ.get(self.key_env, "").strip()
        if not value:
            raise InputError(
                f"the environment variable {self.key_env} is not set",
                where=f"the key for {self.model} at {self.base_url}",
                expected="the key in that variable",
                mend=f"export {self.key_env}=..., or name another variable as key_env",
            )
        return value


DEFAULTS: Mapping[Role, Endpoint] = {
    # The paper's (Appendix A): gemini-3.5-flash at its shipped temperature; scoring at temperature 0.
    "author": Endpoint(
        model="gemini-3.5-flash",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_env="GEMINI_API_KEY",
    ),
    "ideal": Endpoint(model="gpt-5.6-luna", key_env="OPENAI_API_KEY", temperature=0.0, max_tokens=8_192),
}


def read_endpoints(path: Path | None, changes: Sequence[str] = ()) -> dict[Role, Endpoint]:
    """The endpoint of each role: the default, or the file's table; then `changes`, each ROLE.FIELD=VALUE.

    A change of base_url drops the key_env that went with the one before. VALUE `none` unsets. Raises InputError.
    """
    tables: dict[str, dict[str, Any]] = {role: endpoint.model_dump() for role, endpoint in DEFAULTS.items()}
    for role, table in _tables(path).items():
        tables[_role(role, str(path))] = table
    for change in changes:
        name, _, value = change.partition("=")
        role, _, field = name.partition(".")
        fields = list(Endpoint.model_fields)
        if not value or field not in fields:
            near = near_names(field, fields, 1) if value else []
            raise InputError(
                f"unknown field {field!r}" if value and field else f"--set {name} is no change of an endpoint",
                where=f"--set {name}",
                expected="ROLE.FIELD=VALUE, FIELD one of " + ", ".join(fields) + "".join(f"; near: {n}" for n in near),
                mend=f"write {role}.{near[0]}=..." if near else "e.g. --set author.model=my-model",
            )
        table = tables.setdefault(_role(role, "--set"), {})
        if field == "base_url" and table.get("base_url") != value:
            table.pop("key_env", None)
        table[field] = None if value == "none" else value
    return {_role(role, str(path)): _endpoint(role, table, path) for role, table in tables.items()}


def safe_url(url: str) -> str:
    """A base URL without query or fragment, where some services carry a secret."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))


def _tables(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"the models cannot be read: {error}",
            where=str(path),
            expected="a TOML file with a table for each of " + ", ".join(ROLES),
            mend="mend it, or leave --models out",
        ) from error
    for role, table in read.items():
        if not isinstance(table, dict):
            raise InputError(
                f"`{role}` is no table", where=str(path), expected=f"[{ROLES[0]}] and fields under it", mend="mend it"
            )
    return read


def _role(name: str, where: str) -> Role:
    for role in ROLES:
        if role == name:
            return role
    raise InputError(
        f"there is no role {name!r}", where=where, expected="one of " + ", ".join(ROLES), mend="mend the name"
    )


def _endpoint(role: str, table: Mapping[str, Any], path: Path | None) -> Endpoint:
    try:
        return Endpoint.model_validate(table)
    except ValidationError as error:
        # Never the value itself: it may be a key that was put in the wrong place.
        told = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False))
        raise InputError(
            f"the endpoint `{role}` is wrong: {told}",
            where=str(path or "--set"),
            expected="fields as in docs/curation.md; key_env is the NAME of a variable, never a key",
            mend="mend the fields named",
        ) from error
