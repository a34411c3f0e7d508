"""Errors for people."""

from __future__ import annotations

import pickle

from torus_ray.errors import InputError, TorusError


def test_an_error_tells_what_where_expected_and_mend_in_one_block() -> None:
    error = InputError("5 options", where="a.json:3", expected="6", mend="add one")
    assert error.render().splitlines() == ["error: 5 options", "  where: a.json:3", "  expected: 6", "  mend: add one"]
    assert error.exit_code == 2


def test_what_is_not_known_is_left_out() -> None:
    assert TorusError("no such run").render() == "error: no such run"


def test_an_error_survives_a_process_boundary() -> None:
    error = pickle.loads(pickle.dumps(InputError("wrong", where="here", mend="so")))
    assert (error.where, error.mend) == ("here", "so")


def test_a_wrong_argument_is_a_value_error_too() -> None:
    assert issubclass(InputError, ValueError)
    assert not issubclass(TorusError, ValueError)
    assert str(InputError("wrong", mend="so")) == "wrong\n  mend: so"
