"""The page in headless Chromium: keys, verdicts, edits, clips, two tabs, a killed server, screen readers, contrast."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.curation.review.sample import FIRST, SECOND, THIRD, desk_served, make_bank, make_results, process_served
from torus_ray.bank.load import load_bank
from torus_ray.curation.review.log import read_log

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM, DRIVER = next(filter(None, map(shutil.which, NAMES)), None), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium and chromedriver here (Debian: chromium, chromium-driver)"
)
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1500,1000"),
    *("--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--mute-audio"),
)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


class Page:
    """What a person at the keyboard does and sees."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str, test: str = FIRST) -> Page:
        self.driver.get("about:blank")
        self.driver.get(f"{address}/#{test}")
        return self.until(lambda: self.state != "")

    def until(self, true: Callable[[], Any]) -> Page:
        wait = WebDriverWait(self.driver, 30, 0.05, ignored_exceptions=[StaleElementReferenceException])
        wait.until(lambda _: true())
        return self

    def one(self, css: str) -> WebElement:
        return self.driver.find_element("css selector", css)

    def at(self, path: str) -> WebElement:
        return self.one(f'[data-path="{path}"]')

    def text(self, css: str) -> str:
        return str(self.driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", css))

    @property
    def state(self) -> str:
        return self.text("#test .chip")

    @property
    def said(self) -> str:
        return self.text("#status")

    def press(self, *keys: str) -> Page:
        self.driver.switch_to.active_element.send_keys(*keys)
        return self

    def write(self, element: WebElement, text: str) -> Page:
        element.send_keys(Keys.CONTROL, "a")
        element.send_keys(text or Keys.DELETE)
        return self

    def named(self, name: str = "Ann") -> Page:
        self.write(self.one("#reviewer"), name)
        return self.press(Keys.ESCAPE)

    def says(self, text: str) -> Page:
        return self.until(lambda: text in self.said)

    def shows(self, test: str) -> Page:
        return self.until(lambda: test in self.text("#test .about"))


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    return make_bank(tmp_path / "bank")


@pytest.fixture
def address(bank: Path) -> Iterator[str]:
    with desk_served(bank) as found:
        yield found


@pytest.fixture
def page(chromium: webdriver.Chrome, address: str) -> Page:
    return Page(chromium).open(address)


def test_keys_move_and_judge(page: Page, bank: Path) -> None:
    page.press("a")
    assert page.one("#reviewer").get_attribute("aria-invalid") == "true"
    assert page.driver.switch_to.active_element.get_attribute("id") == "reviewer"
    page.named().press("a").says(f"Saved: {FIRST} accepted by Ann")
    assert (page.state, page.text("#progress-text")) == ("accepted", "1 of 4 reviewed")
    page.press("j").shows(SECOND)
    assert page.driver.switch_to.active_element.get_attribute("id") == "title"
    page.press(Keys.ARROW_RIGHT).shows(THIRD).press("k").shows(SECOND).press(Keys.ARROW_LEFT).shows(FIRST)
    page.press("k").says("first test")
    page.driver.refresh()
    page.until(lambda: page.state == "accepted")
    assert page.one("#reviewer").get_attribute("value") == "Ann"
    assert load_bank(bank).test(FIRST).provenance.human_verified_by == "Ann"


def test_keys_do_nothing_while_somebody_types_or_turned_them_off(page: Page, bank: Path) -> None:
    page.named("jar e?")
    assert (page.state, page.one("#reviewer").get_attribute("value")) == ("unreviewed", "jar e?")
    page.press("?").until(lambda: page.one("#help-dialog").is_displayed())
    page.one("#single-keys").click()
    page.press(Keys.ESCAPE).until(lambda: not page.one("#help-dialog").is_displayed())
    page.one("#title").send_keys("a")
    page.one("#next").click()
    page.shows(SECOND)
    assert read_log(bank) == []


def test_reject_with_a_reason(page: Page, bank: Path) -> None:
    page.named().press("r")
    page.one("#reason").send_keys(Keys.CONTROL, Keys.ENTER)
    page.until(lambda: "needs a reason" in page.text("#reason-problem"))
    page.one("#reason").send_keys("<b>Two</b> options are right.", Keys.CONTROL + Keys.ENTER)
    page.says("rejected by Ann")
    assert not page.one("#reject-dialog").is_displayed()
    assert "<b>Two</b> options are right." in page.text("#test .notice")
    assert read_log(bank)[-1].reason == "<b>Two</b> options are right."


def test_an_edit_that_fails_then_one_that_is_saved(page: Page, bank: Path) -> None:
    def wrong() -> list[str]:
        marked = page.driver.find_elements("css selector", ".stage [aria-invalid=true]")
        return [element.get_attribute("data-path") or "" for element in marked]

    page.named().press("a").says("accepted").press("e")
    path = "stages.edit.questions[1].options[2]"
    other = page.at("stages.edit.questions[1].options[3]").get_attribute("value") or ""
    page.write(page.at(path), other.upper())
    onset = "stages.generation.spec.sources[0].onset_s"
    page.write(page.at(onset), "").press(Keys.CONTROL + Keys.ENTER)
    page.until(lambda: len(wrong()) == 2 and onset in wrong())
    assert "expected a number" in page.text(f'[id="field-{onset}-problem"]')
    page.write(page.at(onset), "0.5").press(Keys.CONTROL + Keys.ENTER)
    page.until(lambda: len(wrong()) == 1 and wrong() != [onset])
    assert wrong()[0] in (path, path.replace("[2]", "[3]"))
    assert "equal options" in page.text("#notice")
    assert page.driver.switch_to.active_element.get_attribute("data-path") == wrong()[0]
    assert read_log(bank)[-1].decision == "accept"
    page.write(page.at(path), "Something unlike the rest")
    page.one('[id="field-stages.edit.spec.sources-add"]').click()
    for name, value in (("what", "a bell"), ("level", "soft"), ("place", "far")):
        added = page.driver.find_elements(
            "css selector", f'[data-path^="stages.edit.spec.sources"][data-path$="{name}"]'
        )[-1]
        page.write(added, value)
    page.press(Keys.CONTROL + Keys.ENTER).says("edited by Ann")
    stages = load_bank(bank).test(FIRST).stages
    assert stages.edit.questions[1].options[2] == "Something unlike the rest"
    assert stages.generation.spec.sources[0].onset_s == 0.5
    assert stages.edit.spec.sources[-1].what == "a bell"
    assert load_bank(bank).test(FIRST).provenance.human_verified_by is None
    assert "edited" in page.state


def test_the_answer_goes_with_the_option_that_is_marked(page: Page, bank: Path) -> None:
    page.named().press("e")
    before = load_bank(bank).test(FIRST).stages.edit.questions[0]
    right = before.options.index(before.answer)
    page.write(page.at(f"stages.edit.questions[0].options[{right}]"), "The right one in other words")
    page.press(Keys.CONTROL + Keys.ENTER).says("edited")
    assert load_bank(bank).test(FIRST).stages.edit.questions[0].answer == "The right one in other words"
    page.press("e")
    other = (right + 1) % 6
    page.one(f'[id="field-stages.edit.questions[0]-right-{other}"]').click()
    page.press(Keys.CONTROL + Keys.ENTER)
    page.until(lambda: load_bank(bank).test(FIRST).stages.edit.questions[0].answer == before.options[other])


def test_an_edit_is_not_lost_by_mistake(page: Page, bank: Path) -> None:
    page.press("e").write(page.at("title"), "Half a").press(Keys.ESCAPE)
    page.until(lambda: page.one("#leave-dialog").is_displayed())
    page.one("#leave-no").click()
    page.one("#next").click()
    page.until(lambda: page.one("#leave-dialog").is_displayed())
    page.one("#leave-no").click()
    page.until(lambda: page.driver.current_url.endswith(FIRST))
    assert page.at("title").get_attribute("value") == "Half a"
    page.one("#cancel").click()
    page.until(lambda: page.one("#leave-yes").is_displayed())
    page.one("#leave-yes").click()
    page.says("nothing was changed")
    assert read_log(bank) == []


def test_two_tabs(page: Page, address: str, bank: Path) -> None:
    """Each tab has its own reviewer; what one saved, the other is told and cannot overwrite."""
    driver, first = page.driver, page.driver.current_window_handle
    page.named("Ann")
    driver.switch_to.new_window("tab")
    try:
        page.open(address).named("Bo").press("e").write(page.at("title"), "Bo's title")
        second = driver.current_window_handle
        driver.switch_to.window(first)
        page.press("a").says("accepted by Ann")
        driver.switch_to.window(second)
        page.press(Keys.CONTROL + Keys.ENTER).until(lambda: "cannot be saved over" in page.text("#notice"))
        assert page.at("title").get_attribute("value") == "Bo's title"
        assert [verdict.decision for verdict in read_log(bank)] == ["accept"]
        page.one("#load-newer").click()
        page.until(lambda: page.state == "accepted").press("a").says("accepted by Bo")
        driver.close()
    finally:
        driver.switch_to.window(first)
    page.until(lambda: "Ann, Bo" in page.text("#test .about"))


def test_a_file_changed_by_hand_is_shown_anew_before_it_can_be_judged(page: Page, bank: Path) -> None:
    page.named()
    path = bank / f"{FIRST}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"title": "By hand"}))
    changed = path.read_bytes()
    page.press("a").until(lambda: page.text("#title") == "By hand")
    # Whichever came first: the page saw the change by itself, or the server refused the verdict on the older file.
    assert not read_log(bank) or read_log(bank)[0].file_before == hashlib.sha256(changed).hexdigest()


def test_filters(page: Page) -> None:
    def listed() -> list[str]:
        links = page.driver.execute_script(
            "return [...document.querySelectorAll('#tests a')].map((a) => a.hash.slice(1))"
        )
        return list(links)

    page.named().press("a").says("accepted")
    page.until(lambda: page.text("#progress-text").startswith("1 of 4"))
    page.one("#filter-state").send_keys("U")
    page.until(lambda: len(listed()) < 4)
    assert listed() == [SECOND, THIRD, "canary-003"]
    page.one("#filter-type").send_keys("M")
    page.until(lambda: len(listed()) < 3)
    assert listed() == [THIRD]
    page.one("#title").click()
    page.press("j").shows(THIRD)
    assert listed() == [THIRD]
    page.press("j").says("last test of the list")
    assert THIRD in page.text("#test .about")


def test_clips_play(chromium: webdriver.Chrome, bank: Path, tmp_path: Path) -> None:
    runs = make_results(tmp_path / "results", bank)
    with desk_served(bank, runs) as address:
        page = Page(chromium).open(address)
        durations = "return [...document.querySelectorAll('audio')].map((audio) => audio.duration || 0)"
        page.until(lambda: [round(found, 2) for found in chromium.execute_script(durations)] == [0.25] * 3)
        chromium.execute_script(
            "window.heard = []; document.addEventListener('play', (e) => heard.push(e.target.src), true)"
        )

        def heard() -> list[str]:
            return [
                url.rsplit("/", 2)[1] + str(number)
                for number, url in enumerate(chromium.execute_script("return heard"))
            ]

        page.press(" ").until(lambda: heard() == ["00"])
        page.press("3").until(lambda: len(heard()) == 2)
        page.press("m").says("Clips of toy/self-caption")
        page.press("2").until(lambda: heard()[2:] == ["12"])
        assert chromium.execute_script("return new Set(heard).size") == 3


def test_a_killed_server_is_told_and_the_next_one_shows_what_was_saved(chromium: webdriver.Chrome, bank: Path) -> None:
    with process_served(bank) as server:
        page = Page(chromium).open(server.address).named()
        page.press("a").says(f"Saved: {FIRST}")
        page.press("j").shows(SECOND)
        server.kill()
        page.press("a").says("the server does not answer, so nothing was saved")
        port = server.port
    with process_served(bank, port=port) as server:
        # The same page goes on: the verdict names the version it judged, the token is fetched anew.
        page.press("a").says(f"Saved: {SECOND}")
        page.open(server.address)
        assert (page.state, page.text("#progress-text")) == ("accepted", "2 of 4 reviewed")


# --- for everybody ----------------------------------------------------------------------------------------------------

LOOK = Path(__file__).with_name("accessibility.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_order_and_contrast(chromium: webdriver.Chrome, bank: Path, tmp_path: Path, scheme: str) -> None:
    features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
    path = bank / f"{FIRST}.json"
    test = json.loads(path.read_text())
    test["stages"]["edit"]["questions"][1]["text"] = f"Is it {test['stages']['edit']['questions'][1]['answer']}?"
    path.write_text(json.dumps(test))
    with desk_served(bank, make_results(tmp_path / "results", bank)) as address:
        page = Page(chromium).open(address).named()

        def sound(where: str) -> None:
            found = chromium.execute_script(LOOK)
            assert {name: what for name, what in found.items() if what} == {}, where

        background = chromium.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(250, 249, 246)") == (scheme == "light")
        sound("unreviewed")
        page.press("a").says("Saved")
        sound("accepted")
        page.press("r").until(lambda: page.one("#reject-dialog").is_displayed())
        page.one("#reason").send_keys(Keys.CONTROL + Keys.ENTER)
        sound("reject")
        page.one("#reason").send_keys("unfair", Keys.CONTROL + Keys.ENTER)
        page.says("rejected")
        sound("rejected")
        page.press("?").until(lambda: page.one("#help-dialog").is_displayed())
        sound("help")
        page.press(Keys.ESCAPE).until(lambda: not page.one("#help-dialog").is_displayed())
        page.one("#title").send_keys("e")
        page.write(page.at("title"), "").press(Keys.CONTROL + Keys.ENTER)
        page.until(lambda: "one thing is wrong" in page.text("#notice"))
        sound("edit")


def test_nothing_is_loaded_from_elsewhere_and_nothing_is_logged(page: Page, address: str) -> None:
    page.driver.get_log("browser")
    page.open(address).named().press("a").says("Saved")
    loaded = page.driver.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert loaded
    assert all(url.startswith((address, "data:")) for url in loaded)
    assert page.driver.get_log("browser") == []


def test_markup_in_a_test_is_text(chromium: webdriver.Chrome, bank: Path) -> None:
    nasty = '"><img src=x onerror="window.injected=1"><script>window.injected=1</script>'
    path = bank / f"{FIRST}.json"
    test = json.loads(path.read_text())
    test["title"] = test["stages"]["edit"]["prompt"] = test["provenance"]["author"] = nasty
    test["stages"]["edit"]["spec"]["sources"][0]["what"] = test["stages"]["edit"]["questions"][0]["text"] = nasty
    path.write_text(json.dumps(test))
    with desk_served(bank, reviewer=nasty.replace('"', "")[:50]) as address:
        page = Page(chromium).open(address)
        assert page.text("#title") == nasty
        page.press("e").until(lambda: page.at("title").get_attribute("value") == nasty)
        assert chromium.execute_script("return [window.injected, document.images.length]") == [None, 0]
        page.press(Keys.ESCAPE).says("nothing was changed")
