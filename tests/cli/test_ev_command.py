"""`epszero ev`: prices and a fleet in; schedules, costs, how sure, and a page out."""

import datetime
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import epszero as ez

FLEET = "name,need,cap\nvan A,3,2.5\n[red] bus,4,3.7\n"
WORDS = ("ev", "--prices", "prices.csv", "--fleet", "fleet.csv", "--hours", "2-4")
PYTHON = re.compile(r"\bez\.|\w\(\)|\w=\S|lambda|None\b|numpy|Python")


def days_of(many=120, seed=0):
    """Days that resemble their neighbours, in EUR/MWh, with hour 3 the cheapest by far."""
    rng = np.random.default_rng(seed)
    level = np.cumsum(rng.normal(0, 2, many)) * 0.5
    shape = 80 + 30 * np.cos((np.arange(24) - 15) / 24 * 2 * np.pi)
    shape[3] = 40
    return (shape + level[:, None] + rng.normal(0, 4, (many, 24))).round(2)


def write_days(days, name="prices.csv", first="2024-01-01"):
    table = pl.DataFrame(days, schema=[f"h{hour:02d}" for hour in range(24)], orient="row")
    start = datetime.date.fromisoformat(first)
    dates = pl.date_range(start, start + datetime.timedelta(days=len(days) - 1), eager=True).alias("date")
    table.insert_column(0, dates).write_csv(name)
    return days


@pytest.fixture(autouse=True)
def _files(folder):
    write_days(days_of())
    Path("fleet.csv").write_text(FLEET)


@pytest.mark.long
def test_the_answer_comes_first_then_how_sure_then_what_was_assumed(run):
    result = run(*WORDS)
    assert result.exit_code == 0, result.output
    text = result.stdout
    first = text.splitlines()[0]
    assert first.startswith("2 vehicles charge 7 kWh a day for ")
    assert "less than charging evenly" in text
    parts = ["van A", "mean price (EUR/MWh)", "this plan saves", "Prices used", "2024-01-01 to 2024-04-29", "How sure",
             "For these days: exact", "Likely for days like these", "Sure: with 95 %", "Assumed",
             "nothing of wear and fee: 0", "not flattened", "not tomorrow's plan"]  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert not PYTHON.search(text.replace("--limits=LO,HI", ""))
    assert "agent" not in text


def test_costs_are_those_of_the_files_to_the_cent(run):
    record = json.loads(run(*WORDS, "--json").stdout)
    prices = days_of()[:, 2:5].mean(axis=0) / 1000
    order = np.argsort(prices)
    for need, cap, paid, even, once in zip((3, 4), (2.5, 3.7), *record["costs"]["vehicles"].values(), strict=True):
        cheapest = cap * prices[order[0]] + (need - cap) * prices[order[1]]
        assert paid == pytest.approx(cheapest)
        assert even == pytest.approx(need * prices.mean())
        assert once == pytest.approx(cap * prices[0] + (need - cap) * prices[1])
    costs = record["costs"]
    assert record["savings"]["evenly"] == pytest.approx(costs["evenly"] - costs["plan"])
    assert record["savings"]["at_once"] == pytest.approx(costs["at_once"] - costs["plan"])
    assert costs["planned_anew_every_day"] <= costs["plan"]
    table = pl.read_csv("schedules.csv")
    assert table.columns == ["name", "02:00", "03:00", "04:00", "kwh", "eur_per_day", "eur_evenly", "eur_at_once"]
    assert table["name"].to_list() == ["van A", "[red] bus"]
    assert table["kwh"].to_list() == pytest.approx([3.0, 4.0])
    assert table["eur_per_day"].sum() == pytest.approx(costs["plan"])
    assert table["03:00"].to_list() == pytest.approx([2.5, 3.7])
    assert record["sure"]["verdict"] == "conditional"
    assert record["certificate"]["by"].startswith("prequential")


def test_what_is_sure_holds_for_every_mean_within_the_ball_and_likely_is_narrower(run):
    record = json.loads(run(*WORDS, "--json", "--limits=0,200").stdout)
    plan, prices = np.array(record["schedules"]), days_of()[:, 2:5].mean(axis=0) / 1000
    certificate = ez.Certificate.from_json(json.dumps(record["certificate"]))
    radius = certificate.epsilon / np.sqrt(2)
    caps = np.repeat([[2.5], [3.7]], 3, axis=1)
    rng, sure = np.random.default_rng(0), record["sure"]
    even, once = ez.models.even_charging(caps, [3, 4]), ez.models.charging_at_once(caps, [3, 4])
    for _ in range(300):
        away = rng.normal(size=3)
        mean = prices + radius * away / np.linalg.norm(away)
        cost = (plan @ mean).sum()
        assert sure["cost"][0] <= cost <= sure["cost"][1]
        for name, other in (("saves_evenly", even), ("saves_at_once", once)):
            assert sure[name][0] <= (other @ mean).sum() - cost <= sure[name][1]
        best = ez.models.cheapest_charging(mean, caps, [3, 4])
        assert cost - (best @ mean).sum() <= sure["others_are_cheaper_by"] + 1e-12
        assert np.max((plan - best) @ mean) <= sure["one_vehicle_could_save"] + 1e-12
    likely = record["likely"]
    assert sure["cost"][0] < likely["cost"][0] <= record["costs"]["plan"] <= likely["cost"][1] < sure["cost"][1]
    assert sure["distance_kwh"] is None  # nothing makes the answer unique


def test_seeds_change_nothing_but_what_is_likely(run):
    first, second = (json.loads(run(*WORDS, "--json", "--seed", seed).stdout) for seed in (0, 1))
    for name in ("schedules", "costs", "savings", "sure", "assumed"):
        assert first[name] == second[name]
    assert first["likely"] != second["likely"]


@pytest.mark.long
def test_wear_in_the_file_counts_and_makes_the_answer_unique(run):
    Path("fleet.csv").write_text("id,need,cap,wear,fee\nA,3,2.5,0.01,0.05\nB,4,3.7,0.02,0.05\n")
    record = json.loads(run(*WORDS, "--json").stdout)
    assert record["sure"]["distance_kwh"] > 0
    plan, prices = np.array(record["schedules"]), days_of()[:, 2:5].mean(axis=0) / 1000
    assert plan.sum(axis=1) == pytest.approx([3, 4])
    wear = np.array([0.01, 0.02])
    paid = plan @ prices + 0.05 * plan.sum(axis=1) + wear * (plan**2).sum(axis=1)
    assert record["costs"]["vehicles"]["plan"] == pytest.approx(paid)
    assert not any("wear and fee" in line for line in record["assumed"])


@pytest.mark.long
def test_flattening_is_asked_for(run):
    plain, flat = (
        json.loads(run(*WORDS, "--json", *more).stdout) for more in ((), ("--weight", "1", "--reference", "1.2"))
    )
    spread = [np.std(np.sum(record["schedules"], axis=0)) for record in (plain, flat)]
    assert spread[1] < spread[0]
    assert flat["costs"]["plan"] > plain["costs"]["plan"]
    assert any("drawn towards 1.2 kWh an hour, with weight 1" in line for line in flat["assumed"])


@pytest.mark.long
def test_a_capacity_is_shared(run):
    record = json.loads(run(*WORDS, "--json", "--capacity", "3").stdout)
    total = np.sum(record["schedules"], axis=0)
    assert total.max() <= 3 + 1e-6
    assert np.sum(record["schedules"], axis=1) == pytest.approx([3, 4])
    assert len(record["multipliers"]) == 3
    caps = np.repeat([[2.5], [3.7]], 3, axis=1)
    mean = days_of()[:, 2:5].mean(axis=0) / 1000
    best = ez.models.cheapest_charging(mean, caps, [3, 4], 3.0)
    assert record["costs"]["plan"] == pytest.approx((best @ mean).sum(), abs=1e-7)
    assert any("at most 3 kWh an hour" in line for line in record["assumed"])


def test_ties_are_told(run):
    write_days(np.full((30, 24), 50.0))
    result = run(*WORDS)
    assert result.exit_code == 0, result.output
    assert "could be charged in other hours for the same money; the earlier hours are taken" in " ".join(
        result.stdout.split()
    )
    assert pl.read_csv("schedules.csv")["02:00"].to_list() == [2.5, 3.7]


def test_tomorrow_is_exact_and_needs_no_certificate(run):
    write_days(days_of()[:1], "tomorrow.csv", "2024-06-01")
    words = ("ev", "--tomorrow", "tomorrow.csv", "--fleet", "fleet.csv", "--hours", "2-4")
    record = json.loads(run(*words, "--json").stdout)
    assert record["certificate"] is None
    assert record["sure"] is record["likely"] is None
    price = days_of()[0, 2:5] / 1000
    best = ez.models.cheapest_charging(price, np.repeat([[2.5], [3.7]], 3, axis=1), [3, 4])
    assert record["costs"]["plan"] == pytest.approx((best @ price).sum())
    result = run(*words, "--report", "page.html")
    assert result.exit_code == 0
    assert "2 vehicles charge 7 kWh on 2024-06-01 for " in result.stdout
    assert "no certificate is needed" in result.stdout
    assert "average day" not in result.stdout
    assert "no certificate is needed" in Path("page.html").read_text()


def test_a_negative_price_makes_nobody_charge_more_than_needed(run):
    write_days(-days_of()[:1], "tomorrow.csv")
    run("ev", "--tomorrow", "tomorrow.csv", "--fleet", "fleet.csv", "--hours", "2-4")
    assert pl.read_csv("schedules.csv")["kwh"].to_list() == pytest.approx([3, 4])


@pytest.mark.long
def test_a_night_crosses_midnight_and_vehicles_come_and_go(run):
    days = days_of()
    Path("fleet.csv").write_text(
        "name,need,cap,arrive,depart\nbus,12,4,22:30,02:00\nvan,5,2.5,2024-05-01T18:00,2024-05-02T00:30\ncar,2,2,,\n"
    )
    words = ("ev", "--prices", "prices.csv", "--fleet", "fleet.csv", "--hours", "22-2")
    record = json.loads(run(*words, "--json").stdout)
    assert record["hours"] == [22, 23, 0, 1, 2]
    assert record["overnight"]
    assert record["days"] == 119
    plan = np.array(record["schedules"])
    limits = [[2, 4, 4, 4, 0], [2.5, 2.5, 1.25, 0, 0], [2, 2, 2, 2, 2]]
    assert (plan <= np.array(limits) + 1e-9).all()
    assert plan.sum(axis=1) == pytest.approx([12, 5, 2])
    nights = np.hstack([days[:-1, 22:], days[1:, :3]]).mean(axis=0) / 1000
    assert record["mean_prices_eur_per_kwh"] == pytest.approx(nights.tolist())
    once = [[2, 4, 4, 2, 0], [2.5, 2.5, 0, 0, 0], [2, 0, 0, 0, 0]]
    assert record["costs"]["vehicles"]["at_once"] == pytest.approx((np.array(once) @ nights).tolist())
    text = run(*words).stdout
    assert "a night for" in text
    assert "from 22:00 to 03:00 of the next day" in " ".join(text.split())


@pytest.mark.long
def test_draws_are_the_paper_s_experiment_and_say_so(run):
    record = json.loads(run(*WORDS, "--draws", 200, "--json", "--out", "a/plan.csv").stdout)
    assert record["sure"]["verdict"] == "conditional"
    assert "picked at random" in record["said"]["Sure"]
    assert "the paper's experiment" in record["said"]["Sure"]
    assert "best for the draws" in record["said"]["For these days"]
    mean = days_of()[:, 2:5].mean(axis=0) / 1000
    assert record["costs"]["plan"] == pytest.approx((np.array(record["schedules"]) @ mean).sum())  # of the file's days
    assert [str(Path(path)) for path in record["written"]] == [str(Path("a/plan.csv"))]


def test_a_rate_of_mixing_is_the_user_s_word(run):
    record = json.loads(run(*WORDS, "--mixing", "1,0.1", "--json").stdout)
    assert "which is your word (--mixing)" in record["said"]["Sure"]
    assert record["sure"]["verdict"] == "conditional"


@pytest.mark.long
def test_a_refused_page_says_what_to_do_without_words_of_python(run):
    result = run(*WORDS, "--mixing", "5,0.99", "--report", "page.html")
    assert result.exit_code == 1
    assert "Leave --mixing out" in result.stderr
    assert Path("schedules.csv").exists()
    page = Path("page.html").read_text()
    shown = re.sub(r"(?s)<(script|style).*?</\1>|<code.*?</code>", "", page)
    seen = re.sub(r"<[^>]*>", " ", shown).split("Versions")[0]
    assert "Leave --mixing out" in seen
    found = PYTHON.search(seen.replace("--limits=LO,HI", "").replace("--mixing 5,0.99", ""))
    assert found is None, seen[max(0, found.start() - 60) : found.end() + 60]


def test_the_page_has_names_euros_hours_and_period(run):
    run(*WORDS, "--report", "page.html")
    page = Path("page.html").read_text()
    order = ["The answer</h2>", "2 vehicles charge 7 kWh a day", "When the vehicles charge", "[red] bus",
             "The prices used", "2024-01-01 to 2024-04-29",
             "How sure is that?", "What was assumed", "Behind the numbers"]  # fmt: skip
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    assert "agents" not in page
    assert "entry of a strategy" not in page
    assert page.count('class="band one"') >= 3  # of the fleet and of each vehicle


def test_names_from_files_are_text_on_the_page(run):
    Path("fleet.csv").write_text('name,need\n"<script>alert(1)</script>",3\n=1+1,4\n')
    assert run(*WORDS, "--report", "page.html").exit_code == 0
    page = Path("page.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_workbook_where_it_is_asked_for(run, refused, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xlsxwriter", None)
    told = refused(*WORDS, "--out", "plan.xlsx")
    assert told.startswith("--out: to write .xlsx needs the package XlsxWriter")
    assert "epszero[excel]" in told


def test_a_workbook_has_three_sheets(run):
    pytest.importorskip("xlsxwriter")
    import zipfile  # noqa: PLC0415

    assert run(*WORDS, "--out", "plan.xlsx").exit_code == 0
    with zipfile.ZipFile("plan.xlsx") as book:
        sheets = [name for name in book.namelist() if name.startswith("xl/worksheets/sheet")]
        words = book.read("xl/sharedStrings.xml").decode()
    assert len(sheets) == 3
    for part in ("[red] bus", "03:00", "this plan saves", "For these days", "not flattened"):
        assert part in words


def test_few_days_say_nothing_of_what_is_likely(run):
    write_days(days_of()[:5])
    result = run(*WORDS)
    assert result.exit_code == 0, result.output
    assert "too few days to see how they vary" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("fleet", "said"),
    [
        ("id,need,cap\nA7,3,2\nB8,30,2\n", "line 3 (id B8) needs 30 kWh, but from 02:00 to 05:00 it can charge 6 kWh"),
        ("need\n8\n", "line 2 (vehicle 1) needs 8 kWh, but from 02:00 to 05:00 it can charge 7.5 kWh"),
        ("need,depart\n5,03:30\n", "needs 5 kWh, but to 03:30 it can charge 3.75 kWh, 1.5 hours at 2.5 kWh"),
        ("need,arrive,depart\n5,6,8\n", "from 06:00 to 08:00 it is never there in the hours of --hours"),
        ("need,cap\n5,0\n", "needs 5 kWh, but its cap is 0"),
        ("need,arrive\n5,noon\n", "has 'noon' in the column arrive, which is no time of day"),
        ("need,arrive\n5,25:00\n", "has '25:00' in the column arrive"),
        ("need,arrive,depart\n5,3:00,03:00\n", "arrives and departs at 03:00"),
        ("need,arrive\n5,18:00\n", "arrives at 18:00, outside of --hours, which has from 02:00 to 05:00"),
        ("need,depart\n5,18:00\n", "departs at 18:00, outside of --hours"),
        ("need,arrive,depart\n5,4:00,3:00\n", "is there from 04:00 to 03:00, which --hours cuts in two"),
        ("need,arrive,depart\n5,2024-01-02T01:00,2024-01-01T05:00\n", "Let it depart after it arrives"),
    ],
)
def test_fleets_that_cannot_be(refused, fleet, said):
    Path("fleet.csv").write_text(fleet)
    told = refused(*WORDS, "--report", "page.html")
    assert told.startswith("--fleet: ")
    assert said in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--delta", "1"), "--delta"),
        (("--hours", "0-24"), "--hours"),
        (("--hours", "1,1"), "--hours"),
        (("--hours", "22,3,23"), "--hours"),
        (("--hours", "-3"), "--hours"),
        (("--hours", "night"), "--hours"),
        (("--limits", "cheap"), "--limits"),
        (("--limits=10,0"), "--limits"),
        (("--limits=0,20"), "--limits: the file has prices outside of them. Widen them"),
        (("--capacity", "nan"), "--capacity"),
        (("--capacity", "1"), "--capacity: within 1 kWh an hour all vehicles together can charge 3 kWh"),
        (("--weight", "-1"), "--weight: must be a number, at least 0"),
        (("--reference", "inf"), "--reference"),
        (("--cap", "-2"), "--cap"),
        (("--draws", "0"), "--draws: must be a whole number of days"),
        (("--mixing", "fast"), "--mixing: must be two numbers"),
        (("--mixing", "2,1"), "--mixing: must be two numbers"),
        (("--mixing", "2,0.5", "--draws", "9"), "--mixing: is given beside --draws"),
        (("--tomorrow", "prices.csv"), "--tomorrow: is given beside --prices"),
        (("--start", "yesterday"), "--start: must be a date, but it is 'yesterday'"),
        (("--unit", "GBP"), "--unit: must be"),
        (("--zone", "NL"), "--zone: "),
        (("--time-zone", "Mars"), "--time-zone: "),
        (("--prices", "nothing.csv"), "--prices: there is no file 'nothing.csv'"),
        (("--prices", "fleet.csv"), "--prices: "),
        (("--fleet", "nothing.csv"), "--fleet: there is no file 'nothing.csv'"),
        (("--out", "fleet.csv"), "--out: 'fleet.csv' is also given as --fleet"),
        (("--out", "plan.ods"), "--out: 'plan.ods' would be a form that is not written here"),
    ],
)
def test_options_that_cannot_be(refused, words, said):
    told = refused(*WORDS, *([words] if isinstance(words, str) else words))
    assert said in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ev",), "--prices: is missing"),
        (("ev", "--prices", "prices.csv"), "--fleet: is missing"),
        (
            ("ev", "--tomorrow", "prices.csv", "--fleet", "fleet.csv"),
            "--tomorrow: the file has 120 days, from 2024-01-01",
        ),
        (
            ("ev", "--tomorrow", "prices.csv", "--fleet", "fleet.csv", "--draws", "3"),
            "--draws: says how sure a plan is",
        ),
    ],
)
def test_files_that_are_missing_or_too_many(refused, words, said):
    told = refused(*words)
    assert said in told
    assert told.count("\n") == 1


def test_a_night_in_a_file_of_one_day(refused):
    write_days(days_of()[:1], "tomorrow.csv")
    told = refused("ev", "--tomorrow", "tomorrow.csv", "--fleet", "fleet.csv", "--hours", "22-5")
    assert told.startswith("--hours: go beyond midnight, but the data have one day only")


def test_a_date_that_cannot_be_read(refused):
    Path("prices.csv").write_text("utc,eur_per_mwh\n2024-01-01T00:00Z,50\n31 of May,60\n")
    told = refused(*WORDS)
    assert told.startswith("--prices: ")
    assert "31 of May" in told


def test_columns_whose_names_do_not_tell_are_named_by_options(run):
    days = days_of(12)
    start = datetime.datetime(2024, 1, 1)
    stamps = [start + datetime.timedelta(hours=k) for k in range(days.size)]
    table = pl.DataFrame({"when": [f"{one:%Y-%m-%d %H:%M}" for one in stamps], "what": days.ravel(), "load": 1.0})
    table.write_csv("own.csv")
    words = ("ev", "--prices", "own.csv", "--fleet", "fleet.csv", "--hours", "2-4", "--json")
    named = ("--time-column", "when", "--price-column", "what", "--hour-beginning", "--unit", "EUR/MWh")
    result = run(*words, *named)
    assert result.exit_code == 0, result.output
    plan = json.loads(result.stdout)["costs"]["plan"]
    write_days(days)
    assert plan == pytest.approx(json.loads(run(*WORDS, "--json").stdout)["costs"]["plan"])


def test_a_column_that_is_not_there_is_told_with_its_option(refused):
    told = refused(*WORDS, "--price-column", "what")
    assert told.startswith("--price-column: ")
