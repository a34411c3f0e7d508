"""The page's addresses over real HTTP: what they tell, what they refuse, and what a killed server leaves."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.curation.review.sample import FIRST, SECOND, Caller, desk_served, make_bank, make_results, process_served
from torus_ray.bank.load import load_bank
from torus_ray.cli import _run
from torus_ray.curation.review import server as server_module
from torus_ray.curation.review.log import LOG_FILE, read_log
from torus_ray.curation.review.server import TOKEN_HEADER, host_allowed


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    return make_bank(tmp_path / "bank")


@pytest.fixture
def caller(bank: Path) -> Iterator[Caller]:
    with desk_served(bank) as address:
        yield Caller(address)


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """A server with clips, for tests that change nothing."""
    bank = make_bank(tmp_path_factory.mktemp("bank"), tests=2)
    with desk_served(bank, make_results(tmp_path_factory.mktemp("results"), bank)) as address:
        yield Caller(address)


def test_page_and_list(caller: Caller) -> None:
    page = Path(server_module.__file__).with_name("page")
    scripts = [(f"/{file.name}", "text/javascript") for file in page.glob("*.js")]
    assert ("/review.js", "text/javascript") in scripts
    for path, kind in (("/", "text/html"), ("/review.css", "text/css"), *scripts):
        got = caller.get(path)
        assert (got.status, got.headers["content-type"]) == (200, f"{kind}; charset=utf-8")
        assert b"http://" not in got.body.replace(b"http://www.w3.org/2000/svg", b"")
        assert b"https://" not in got.body
        assert "default-src 'none'" in got.headers["content-security-policy"]
    got = caller.get("/api/bank")
    assert [(test["id"], test["state"], test["reviewed"]) for test in got.json["tests"][:2]] == [
        (FIRST, "unreviewed", False),
        (SECOND, "unreviewed", False),
    ]
    assert caller.get("/api/bank", If_None_Match=got.headers["etag"]).status == 304


def test_a_test_whole(caller: Caller) -> None:
    told = caller.test(FIRST)
    question = told["test"]["stages"]["edit"]["questions"][0]
    assert question["answer"] in question["options"]
    assert sorted(told["shown"]["edit"][0]) == list(range(6))
    assert (told["history"], told["clips"]["edit"]) == ([], [])
    got = caller.get("/api/tests/nothing-like-it")
    assert (got.status, got.json["error"]) == (404, "the bank has no test 'nothing-like-it'")


def test_what_the_checks_find_is_told_at_its_question(bank: Path) -> None:
    path = bank / f"{FIRST}.json"
    test = json.loads(path.read_text())
    question = test["stages"]["edit"]["questions"][1]
    question["text"] = f"Is it {question['answer']}?"
    path.write_text(json.dumps(test))
    with desk_served(bank) as address:
        caller = Caller(address)
        flags = [flag for flag in caller.test(FIRST)["flags"] if flag["question"] == question["id"]]
        assert [(flag["source"], flag["stage"]) for flag in flags] == [("check", "edit")]
        assert "names its answer" in flags[0]["message"]
        assert caller.get("/api/bank").json["tests"][0]["flagged"] >= 1


def test_accept_edit_reject(caller: Caller, bank: Path) -> None:
    got = caller.judge(FIRST, decision="accept", reviewer="Ann", version=caller.test(FIRST)["version"])
    assert (got.status, got.json["state"], got.json["by"]) == (200, "accepted", ["Ann"])
    edited = got.json["test"] | {"title": "<b>Mine</b>"}
    got = caller.judge(FIRST, decision="edit", reviewer="Ann", version=got.json["version"], test=edited)
    assert (got.status, got.json["state"], got.json["title"]) == (200, "edited", "<b>Mine</b>")
    got = caller.judge(FIRST, decision="reject", reviewer="Bo", version=got.json["version"], reason="unfair")
    assert (got.status, got.json["state"], got.json["reason"]) == (200, "rejected", "unfair")
    assert [entry["decision"] for entry in got.json["history"]] == ["accept", "edit", "reject"]
    assert load_bank(bank).test(FIRST).title == "<b>Mine</b>"


def test_refusals_name_their_field(caller: Caller) -> None:
    told = caller.test(FIRST)
    version = told["version"]
    got = caller.judge(FIRST, decision="accept", reviewer="", version=version)
    assert (got.status, got.json["problems"][0]["at"]) == (422, "reviewer")
    got = caller.judge(FIRST, decision="reject", reviewer="Ann", version=version)
    assert (got.status, got.json["problems"][0]["at"]) == (422, "reason")
    test = told["test"]
    test["stages"]["edit"]["questions"][0]["options"][2] = test["stages"]["edit"]["questions"][0]["options"][0]
    got = caller.judge(FIRST, decision="edit", reviewer="Ann", version=version, test=test)
    assert got.status == 422
    assert "stages.edit.questions[0].options[2]" in {problem["at"] for problem in got.json["problems"]}


def test_an_edit_of_the_id_is_refused_as_such(caller: Caller, bank: Path) -> None:
    told = caller.test(FIRST)
    for more in ({}, {"title": "Another"}):
        edited = told["test"] | {"id": "another", **more}
        got = caller.judge(FIRST, decision="edit", reviewer="Ann", version=told["version"], test=edited)
        assert (got.status, got.json["problems"][0]["at"]) == (422, "id")
        assert "cannot be changed" in got.json["error"]
    got = caller.judge(FIRST, decision="edit", reviewer="Ann", version=told["version"], test=told["test"])
    assert "nothing was changed" in got.json["error"]
    assert read_log(bank) == []


def test_problems_of_an_edit_are_the_test_s(caller: Caller) -> None:
    told = caller.test(FIRST)
    edited = told["test"] | {"title": "\u001b[31m"}
    got = caller.judge(FIRST, decision="edit", reviewer="Ann", version=told["version"], test=edited)
    assert got.json["error"] == f"the test {FIRST}.json has 1 problem"
    assert got.json["problems"][0]["at"] == "title"


def test_a_file_that_became_something_else_is_not_read(caller: Caller, bank: Path) -> None:
    (bank / f"{FIRST}.json").unlink()
    os.mkfifo(bank / f"{FIRST}.json")
    assert "not a regular file" in caller.test(FIRST)["problems"][0]["message"]
    assert caller.get("/api/bank").json["tests"][0]["state"] == "broken"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_to_end_it_is_no_failure(bank: Path, number: int) -> None:
    with process_served(bank) as server:
        server.process.send_signal(number)
        told, _ = server.process.communicate(timeout=10)
        assert (server.process.returncode, told) == (0, "ended\n")


def test_ctrl_c_before_it_listens_ends_it_likewise(
    bank: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("torus_ray.curation.review.server.serve", interrupted)
    assert _run(["bank", "review", str(bank)]) == 0
    assert capsys.readouterr().out == "ended\n"


def test_a_file_that_changed_is_not_overwritten(caller: Caller, bank: Path) -> None:
    version = caller.test(FIRST)["version"]
    path = bank / f"{FIRST}.json"
    path.write_text(path.read_text() + "\n")
    before = path.read_bytes()
    got = caller.judge(FIRST, decision="accept", reviewer="Ann", version=version)
    assert (got.status, path.read_bytes()) == (409, before)
    assert "changed since you opened it" in got.json["error"]


def test_of_many_at_once_on_one_version_one_is_saved(caller: Caller, bank: Path) -> None:
    version = caller.test(FIRST)["version"]
    with ThreadPoolExecutor(8) as pool:
        calls = [
            pool.submit(caller.judge, FIRST, decision="accept", reviewer=f"R{number}", version=version)
            for number in range(8)
        ]
        assert sorted(call.result().status for call in calls) == [200] + [409] * 7
    assert len(read_log(bank)) == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"7", b'{"decision": "delete"}', b'{"decision": "accept", "reviewer": 7}', b"[" * 100_000],
)
def test_bodies_that_are_no_verdict(caller: Caller, bank: Path, body: bytes) -> None:
    got = caller.post(FIRST, body, **{TOKEN_HEADER: caller.token})
    assert got.status == 400
    assert got.json["error"]
    assert read_log(bank) == []


def test_other_bad_requests(caller: Caller) -> None:
    headers = {TOKEN_HEADER: caller.token}
    assert caller.post(FIRST, b"{}", **headers, Content_Type="text/plain").status in (400, 415)
    assert caller.call("POST", f"/api/tests/{FIRST}/verdicts", b"{}", **headers).status == 415
    assert caller.post(FIRST, b" " * (2 << 20), **headers).status == 413
    assert caller.judge("nothing", decision="accept", reviewer="Ann", version="").status == 404
    assert caller.call("PUT", "/api/bank", b"", **headers).status == 405


def test_verdicts_come_from_the_page_itself(caller: Caller, bank: Path) -> None:
    body = json.dumps({"decision": "accept", "reviewer": "Eve", "version": caller.test(FIRST)["version"]}).encode()
    token = {TOKEN_HEADER: caller.token}
    assert caller.post(FIRST, body).status == 403
    got = caller.post(FIRST, body, **{TOKEN_HEADER: "guess"})
    assert (got.status, got.json["token"]) == (403, True)
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        assert caller.post(FIRST, body, **token, Origin=origin).status == 403
    for host in ("evil.example", "evil.example:80", "localhost.evil.example", "", "[::"):
        assert caller.post(FIRST, body, **token, Host=host).status in (400, 421)
        assert caller.get("/api/bank", Host=host).status in (400, 421)
    assert read_log(bank) == []
    assert caller.post(FIRST, body, **token, Origin=caller.address).status == 200


def test_whom_the_host_header_may_name() -> None:
    assert all(host_allowed(name, "127.0.0.1") for name in ("127.0.0.1:80", "localhost:9", "LOCALHOST", "[::1]:80"))
    assert not any(host_allowed(name, "127.0.0.1") for name in ("10.0.0.5", "evil.example", "127.0.0.1.evil.example"))
    assert all(host_allowed(name, "0.0.0.0") for name in ("10.0.0.5:80", "localhost", "[fe80::1]:80"))
    assert not host_allowed("evil.example", "0.0.0.0")
    assert host_allowed("Box.Example:80", "box.example")


@pytest.mark.parametrize(
    "path",
    [
        "/../bank.json",
        "/..%2f..%2fetc/passwd",
        "/review.js/../../server.py",
        "/%2e%2e/server.py",
        "/server.py",
        "/api/tests/../../bank",
        "/api/tests/..%2fbank",
        "/api/tests/%2Fetc%2Fpasswd",
        "/clips/0/..%2f..%2frun.json",
        "/clips/0/../../run.json",
        "/clips/-1/x",
        "/clips/0/%00",
        "/clips/9/" + "a" * 64,
    ],
)
def test_no_path_leads_out(listening: Caller, path: str) -> None:
    assert listening.get(path).status in (400, 404)


def test_clips_by_arm(bank: Path, tmp_path: Path) -> None:
    runs = make_results(tmp_path / "results", bank)
    path = bank / f"{FIRST}.json"
    test = json.loads(path.read_text())
    rendered, test["stages"]["edit"]["prompt"] = test["stages"]["edit"]["prompt"], "Something else."
    path.write_text(json.dumps(test))
    with desk_served(bank, runs) as address:
        caller = Caller(address)
        assert caller.get("/api/bank").json["arms"] == ["toy/native", "toy/self-caption"]
        clips = caller.test(FIRST)["clips"]
        assert [len(clips[stage]) for stage in clips] == [2, 2, 2]
        assert clips["generation"][0]["other_prompt"] is None
        assert clips["edit"][0]["other_prompt"] == rendered
        url = clips["edit"][1]["url"]
        whole = caller.get(url)
        assert (whole.status, whole.headers["content-type"], whole.body[:4]) == (200, "audio/flac", b"fLaC")
        part = caller.get(url, Range="bytes=4-99")
        assert (part.status, part.body) == (206, whole.body[4:100])
        for file in tmp_path.glob("results/**/*.flac"):
            file.unlink()
        assert caller.get(url).status == 404


# --- the command ------------------------------------------------------------------------------------------------------


def test_kill_9_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Killed while verdicts stream in: all that were called saved are there, and the bank is whole."""
    bank = make_bank(tmp_path / "bank", tests=40)
    saved: list[str] = []
    some = threading.Event()

    def accept_all(caller: Caller) -> None:
        for test in [test["id"] for test in caller.get("/api/bank").json["tests"]]:
            try:
                version = caller.test(test)["version"]
                if caller.judge(test, decision="accept", reviewer="Ann", version=version).status == 200:
                    saved.append(test)
            except (OSError, http.client.HTTPException):
                return
            finally:
                if len(saved) == 5:
                    some.set()

    with process_served(bank) as server:
        reviewer = threading.Thread(target=accept_all, args=[Caller(server.address)])
        reviewer.start()
        assert some.wait(60)
        server.kill()
        reviewer.join(60)
    with process_served(bank, "--reviewer", "Bo") as server:
        told = Caller(server.address).get("/api/bank").json
        assert told["reviewer"] == "Bo"
        accepted = {test["id"] for test in told["tests"] if (test["state"], test["by"]) == ("accepted", ["Ann"])}
        assert 5 <= len(saved) < 40
        assert set(saved) <= accepted
        assert len(accepted) <= len(saved) + 1
        assert {test.id for test in load_bank(bank).tests if test.provenance.human_verified_by} == accepted
        assert _run(["bank", "review", str(bank), "--port", "0"]) == 2
        assert "being reviewed by another" in capsys.readouterr().err
        assert server.end(signal.SIGINT) == 0


def test_bad_starts_are_told(bank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def start(*words: object) -> str:
        assert _run(["bank", "review", *map(str, words)]) == 2
        return capsys.readouterr().err

    assert "there is no such folder" in start(tmp_path / "nowhere")
    assert "no run at" in start(bank, "--run", tmp_path / "nowhere")
    assert "cannot listen" in start(bank, "--host", "203.0.113.9")
    with desk_served(make_bank(tmp_path / "other")) as address:
        assert "in use" in start(bank, "--port", address.rsplit(":", 1)[1])
    other = make_results(tmp_path / "results", bank)
    card = json.loads((bank / "bank.json").read_text())
    (bank / "bank.json").write_text(json.dumps(card | {"name": "another"}))
    assert "the run was made on the bank canary, you review another" in start(bank, "--run", other[0])
    (bank / f"{FIRST}.json").write_text("{")
    assert f"{FIRST}.json:1" in start(bank)


def test_a_log_that_cannot_be_written(bank: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bank / LOG_FILE).mkdir()
    assert _run(["bank", "review", str(bank)]) == 2
    assert "the verdict log cannot be written" in capsys.readouterr().err
