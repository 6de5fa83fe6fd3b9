"""The report page in headless Chromium: it loads without errors or requests, works by keyboard and mouse, and fits.

Run by `make test-browser`; its name keeps it out of `make test`, which must not need a browser.
"""

import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

import epszero as ez
from epszero.cli import app
from epszero.report import report

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
EXAMPLES = Path(__file__).parents[2] / "examples"
CHARGING = ["charging", "charging night", "charging refused", "charging tomorrow"]
EVIL = "<script>window.hit=1</script><img src=x onerror='window.hit=1'>\"'"


@pytest.fixture(scope="module")
def game():
    return ez.models.ev_charging(vehicles=3, hours=4, need=(2.0, 6.0))


@pytest.fixture(scope="module")
def pages(game, tmp_path_factory):
    """A full page with hostile text everywhere, and one of a refused certificate."""
    days = np.random.default_rng(0).uniform(0.02, 0.25, size=(200, 4))
    prices = ez.Samples(days, support=ez.sets.Box(0.0, 0.5), columns=[EVIL, "b", "c", "</script>"])
    good = ez.certify(ez.solve(game, prices))
    walk = ez.Samples(0.1 + 0.01 * np.cumsum(np.random.default_rng(1).normal(size=(300, 4)), axis=0))
    refused = ez.certify(ez.solve(game, walk))
    assert refused.verdict == "refused"
    folder = tmp_path_factory.mktemp("pages")
    audit, plan = ez.audit(game, walk, budget=0.5), ez.plan(game, target=1.0, samples=prices)
    full = report(good, audit, plan, title=f"Charging {EVIL}", seed=EVIL, command=f"epszero {EVIL}")
    return {
        "full": full.save(folder / "full.html"),
        "refused": report(refused).save(folder / "refused.html"),
        "banded": report(_banded()).save(folder / "banded.html"),
        **_charging(folder),
    }


def _charging(folder):
    """The pages of `epszero ev`: days, with error bars; a night; one that is refused; one day."""
    (folder / "fleet.csv").write_text(
        f'name,need,cap,wear\n"{EVIL.replace(chr(34), chr(34) * 2)}",3,2.5,0.2\nbus,9,4,0.3\n'
    )
    (folder / "night.csv").write_text("name,need,cap,arrive,depart\nvan,3,2.5,22:30,\nbus,9,4,,1:00\n")
    prices = EXAMPLES / "prices_nl_2024_all_hours.csv"
    known = ["--tomorrow", EXAMPLES / "prices_tomorrow.csv", "--start", "2024-06-12", "--end", "2024-06-12"]
    kinds = {
        "charging": (["--prices", prices], "fleet.csv", ["--draws", 2000, "--hours", "0-3"]),
        "charging night": (["--prices", prices], "night.csv", ["--hours", "22-1"]),
        "charging refused": (["--prices", prices], "night.csv", ["--hours", "22-1", "--mixing", "5,0.99"]),
        "charging tomorrow": (known, "night.csv", ["--hours", "22-1"]),
    }
    made = {}
    for name, (source, fleet, more) in kinds.items():
        made[name] = folder / f"{name.replace(' ', '_')}.html"
        given = ["ev", *source, "--fleet", folder / fleet, *more, "--out", folder / "plan.csv", "--report", made[name]]
        ended = CliRunner().invoke(app, [str(word) for word in given], prog_name="epszero")
        assert ended.exit_code == ("refused" in name), ended.output
    return made


def _banded():
    """With error bars of strategies, sums and multipliers, and with the parts of the distance."""
    game = ez.models.cournot(firms=3, markets=2, slope=[1.0, 2.0], shared_cap=[1e3, 5.0])
    rows = np.random.default_rng(0).uniform((18, 28), (22, 32), (500, 2))
    found = ez.certify(ez.solve(game, ez.Samples(rows, support=ez.sets.Box((17.0, 27.0), (23.0, 33.0)))))
    assert found.without_intervals == ""
    return found


@pytest.fixture(scope="module")
def browser():
    place = shutil.which("chromium")
    assert place, "chromium is not installed: install Debian's package chromium"
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=place, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser, pages):
    """Opens a page; whatever it complains about or asks for ends up in `visit.troubles`."""
    opened = []

    def go(name, **options):
        page = browser.new_page(**options)
        opened.append(page)
        page.on("console", lambda message: go.troubles.append(message.text))
        page.on("pageerror", lambda error: go.troubles.append(str(error)))
        page.on("request", lambda request: go.requests.append(request.url))
        page.goto(pages[name].as_uri())
        return page

    go.troubles, go.requests = [], []
    yield go
    for page in opened:
        page.close()


@pytest.mark.parametrize("name", ["full", "refused", "banded", *CHARGING])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_loads_in_silence_and_asks_for_nothing(visit, pages, name, scheme):
    page = visit(name, color_scheme=scheme)
    page.wait_for_timeout(200)
    assert visit.troubles == []
    assert [url for url in visit.requests if not url.startswith("data:")] == [pages[name].as_uri()]
    light = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(v => v > 128)")
    assert light == (scheme == "light")


def test_injected_text_does_nothing(visit):
    page = visit("full")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.querySelectorAll('[onerror], img[src=x]').length") == 0
    assert EVIL in page.locator("h1").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_error_bars_are_seen_within_their_chart(visit, scheme):
    page = visit("banded", color_scheme=scheme)
    chart = page.locator("#answer0-chart")
    inside, around = (chart.locator(which).bounding_box() for which in ("path.bars", ".grid >> nth=0"))
    assert inside["height"] > 0
    assert around["x"] <= inside["x"] <= inside["x"] + inside["width"] <= around["x"] + around["width"]
    ink = page.evaluate("getComputedStyle(document.querySelector('#answer0-chart .bars')).stroke.match(/\\d+/g)")
    assert all(int(part) < 100 for part in ink[:3]) == (scheme == "light")
    for caption in ("Sum over 3 agents", "Multipliers", "Parts of the bound", "would be about"):
        assert page.locator("table", has=page.locator("caption", has_text=caption)).is_visible()


def test_sliders_move_the_number_by_keyboard(visit):
    page = visit("full")
    seen = [page.locator("#now").inner_text()]
    place = page.locator("#forecast-chart .chosen").get_attribute("cx")
    for slider, key in (("#delta", "ArrowRight"), ("#size", "End"), ("#size", "Home")):
        page.locator(slider).focus()
        page.keyboard.press(key)
        seen.append(page.locator("#now").inner_text())
    assert len(set(seen)) == 4
    assert page.locator("#forecast-chart .chosen").get_attribute("cx") != place
    assert "samples" in page.locator("#size").get_attribute("aria-valuetext")
    assert "forecast" in page.locator("#what").inner_text()
    assert visit.troubles == []


def test_sliders_move_the_number_by_mouse(visit):
    page = visit("full")
    before = page.locator("#now").inner_text()
    slider = page.locator("#size")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    assert page.locator("#now").inner_text() != before
    first, last = (float(text.split("≤ ")[1].split(",")[0]) for text in (before, page.locator("#now").inner_text()))
    assert last < first  # more samples, smaller ε


def test_the_number_is_the_certificate_s_at_first(visit):
    page = visit("full")
    row = page.locator("table.facts tr", has_text="ε, the residual").locator(".value").inner_text()
    assert row.replace("\u00a0", " ").removeprefix("≤ ") in page.locator("#now").inner_text().replace("\u00a0", " ")
    assert "the certificate of this page" in page.locator("#what").inner_text()


def test_a_refused_certificate_has_no_sliders(visit):
    page = visit("refused")
    assert page.locator("input").count() == 0
    assert "refused" in page.locator(".headline").first.inner_text()
    assert visit.troubles == []


def test_the_record_can_be_saved(visit, game):
    page = visit("full")
    with page.expect_download() as saved:
        page.locator("#save").click()
    text = saved.value.path().read_text(encoding="utf-8")
    assert ez.Certificate.from_json(text).verdict == "conditional"


@pytest.mark.parametrize("name", ["full", "refused", "banded", *CHARGING])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_sticks_out(visit, name, width):
    page = visit(name, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_prints(visit):
    page = visit("full")
    page.emulate_media(media="print")
    assert not page.locator("#controls").is_visible()
    assert not page.locator("nav").is_visible()
    assert page.locator("#forecast table").first.is_visible()
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


@pytest.mark.parametrize("name", ["full", "refused", "banded", *CHARGING])
def test_headings_labels_and_captions(visit, name):
    page = visit(name)
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    unlabelled = "[...document.querySelectorAll('input')].filter(i => !i.labels.length).length"
    assert page.evaluate(unlabelled) == 0
    assert page.evaluate("[...document.querySelectorAll('table')].filter(t => !t.caption).length") == 0
    assert page.evaluate("[...document.querySelectorAll('th')].filter(t => !t.scope).length") == 0
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


CONTRAST = """() => {
  const parts = c => { const n = c.match(/[\\d.]+/g).map(Number), k = c.startsWith('color') ? 255 : 1;
    return [n[0] * k, n[1] * k, n[2] * k, n.length > 3 ? n[3] : 1]; };
  const lum = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255;
    return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
  const behind = e => { const layers = []; for (; e; e = e.parentElement) {
      const c = parts(getComputedStyle(e).backgroundColor); layers.unshift(c); if (c[3] >= 1) break; }
    return layers.reduce((under, c) => under.map((v, i) => v * (1 - c[3]) + c[i] * c[3]), [255, 255, 255]); };
  return Math.min(...[...document.querySelectorAll('p,li,td,th,h1,h2,h3,a,span,code,caption,summary,button')]
    .filter(e => e.textContent.trim() && e.checkVisibility()).map(e => {
      const a = lum(parts(getComputedStyle(e).color)), b = lum(behind(e));
      return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); }));
}"""


@pytest.mark.parametrize("name", ["full", "banded", *CHARGING])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(visit, name, scheme):
    assert visit(name, color_scheme=scheme).evaluate(CONTRAST) >= 4.5


def test_without_javascript_all_is_there(visit):
    page = visit("full", java_script_enabled=False)
    assert not page.locator("#controls").is_visible()
    assert page.locator("#forecast table").count() == 2


@pytest.fixture(scope="module")
def cells(game, tmp_path_factory):
    """What a notebook shows of each of five objects, on a page whose theme says nothing, is light, or is dark."""
    days = np.random.default_rng(0).uniform(0.02, 0.25, size=(200, 4))
    prices = ez.Samples(days, support=ez.sets.Box(0.0, 0.5), columns=[EVIL, "b", "c", "</style>"])
    good = ez.certify(ez.solve(game, prices))
    things = (
        prices,
        good.solution,
        good,
        ez.audit(game, prices, budget=0.5),
        ez.plan(game, target=1.0, samples=prices),
    )
    body, folder = "".join(one._repr_html_() for one in things), tmp_path_factory.mktemp("cells")
    themes = {"": "", "light": 'data-jp-theme-light="true"', "dark": 'data-jp-theme-light="false"'}
    for theme, says in themes.items():
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,"><body {says}>{body}'
        )
        (folder / f"{theme}.html").write_text(page, encoding="utf-8")
    return folder


@pytest.mark.parametrize("theme", ["", "light", "dark"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cells_follow_the_notebook_then_the_system(browser, cells, theme, scheme):
    page, troubles, asked = browser.new_page(color_scheme=scheme), [], []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    place = (cells / f"{theme}.html").as_uri()
    page.goto(place)
    assert (troubles, [url for url in asked if not url.startswith("data:")]) == ([], [place])
    assert page.evaluate("window.hit") is None
    assert page.locator(".epszero-cell").count() == 5
    light = (theme or scheme) == "light"
    for paper, ink in page.evaluate(
        "[...document.querySelectorAll('.epszero-cell')].map(e => [e, e.querySelector('p')].map((one, i) => "
        "getComputedStyle(one)[i ? 'color' : 'backgroundColor'].match(/\\d+/g).map(Number)))"
    ):
        assert all(part > 128 for part in paper) == light
        assert all(part > 128 for part in ink) != light
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()


def test_names_of_vehicles_are_text(visit):
    page = visit("charging")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    assert EVIL in page.locator(".heat tbody th").first.inner_text()


def test_a_vehicle_s_chart_has_its_band_and_its_error_bars(visit):
    page = visit("charging")
    chart = page.locator("#vehicle1-chart")
    assert chart.locator("path.band").count() == 1
    assert chart.locator("path.bars").bounding_box()["height"] > 0
    assert visit("charging night").locator("path.bars").count() == 0  # where the answer is not unique


def test_the_refused_page_says_what_to_do(visit):
    page = visit("charging refused")
    assert "Leave --mixing out" in page.locator("#sure .verdict-refused").inner_text()
    assert "ez." not in page.locator("main").inner_text()


def test_the_charging_page_prints_whole(visit):
    page = visit("charging", viewport={"width": 700, "height": 1000})  # about what A4 leaves
    page.emulate_media(media="print")
    table = page.locator(".heat table").bounding_box()
    assert table["x"] + table["width"] <= 700
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
