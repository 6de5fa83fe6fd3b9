"""Day-ahead prices from the ENTSO-E Transparency Platform, by entsoe-py (the extra `entsoe`).

One request per year of days, and a further one for every hundred series in an answer. The key is read from the
environment and never shown. ENTSOE_ENDPOINT_URL in the environment names another server. Where an hour has a price of
its own and prices of its parts, its own counts.
"""

import datetime
import difflib
import importlib
import os
import re
import warnings
import zoneinfo
from typing import Any, NoReturn, Unpack

import polars as pl

import epszero as ez
from epszero.datasets._inputs import Asked, Day, Form, checked, refuse
from epszero.datasets._mend import Quotes, local, mended
from epszero.datasets._prices import Prices

KEY, ENDPOINT = "ENTSOE_API_KEY", "ENTSOE_ENDPOINT_URL"
YEAR = datetime.timedelta(days=365)  # the most that one request may ask for
PAGE, PAGES = 100, 48  # series in an answer, answers to one request
PATIENCE = 60  # seconds
SEVERAL_AUCTIONS = ("DE_LU", "AT")  # zones with more than one, of which the first counts


def fetch_entsoe(zone: str, start: Day, end: Day, **options: Unpack[Form]) -> Prices:
    """Prices of a bidding zone ("NL", "DE_LU", "NO_2", … or its EIC code) from `start` to `end`, both inclusive.

    Needs `pip install 'epszero[entsoe]'` and a key of the Transparency Platform in the environment variable
    ENTSOE_API_KEY. The other options are those of every loader, see `Form`.
    """
    asked = checked({**options, "start": start, "end": end})
    first, last = _required("start", asked.start), _required("end", asked.end)
    entsoe, key = _package(), os.environ.get(KEY, "").strip()
    area = _area(zone)
    if not key:
        refuse(
            KEY,
            "is not set, and the Transparency Platform answers nobody without a key",
            f"Ask for one on its site, and set it: export {KEY}=…",
        )
    client = entsoe.EntsoeRawClient(key, session=_session(), retry_count=2, retry_delay=1, timeout=PATIENCE)
    begin, until = (_midnight(day, asked) for day in (first, last + datetime.timedelta(days=1)))
    answers: list[str] = []
    with warnings.catch_warnings():  # Beautiful Soup's, about XML read as HTML, which entsoe-py does on purpose
        warnings.simplefilter("ignore")
        while begin < until:
            upto = min(begin + YEAR, until)
            answers += _answers(client, area, begin, upto)
            begin = upto
        if not answers:
            refuse(
                "zone",
                f"the Transparency Platform has no day-ahead prices of {area.name} from {first} to {last}",
                "Choose other days, or another zone",
            )
        series = _series(answers)
    source = f"ENTSO-E Transparency Platform, day-ahead prices of {area.name}"
    return mended(Quotes(local(series, asked.time_zone), source), asked)


def _required(argument: str, day: datetime.date | None) -> datetime.date:
    if day is None:
        refuse(argument, "must be a date, but it is None", 'Write it as "2024-12-31"')
    return day


def _package() -> Any:
    try:
        return importlib.import_module("entsoe")
    except ImportError as error:
        rule, remedy = "needs the package entsoe-py, which is not installed", "Run pip install 'epszero[entsoe]'"
        raise ez.InputError.about("fetch_entsoe", rule, remedy) from error


def _area(zone: Any) -> Any:
    mappings = importlib.import_module("entsoe.mappings")
    try:
        return mappings.lookup_area(zone)
    except ValueError:
        near = difflib.get_close_matches(str(zone).upper(), mappings.Area.__members__, n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else "Pass a code such as 'NL', 'DE_LU' or 'NO_2'"
        raise ez.InputError.about("zone", f"there is no bidding zone {zone!r}", remedy) from None


def _session() -> Any:
    """A session that asks the server of the environment, where it names one."""
    requests = importlib.import_module("requests")

    class Session(requests.Session):
        def get(self, url: str, **rest: Any) -> Any:
            return super().get(os.environ.get(ENDPOINT) or url, **rest)

    return Session()


def _midnight(day: datetime.date, asked: Asked) -> datetime.datetime:
    local_time = datetime.datetime(day.year, day.month, day.day, tzinfo=zoneinfo.ZoneInfo(asked.time_zone))
    return local_time.astimezone(datetime.UTC)


def _answers(client: Any, area: Any, begin: datetime.datetime, until: datetime.datetime) -> list[str]:
    """The documents about one period; none where the platform has no data of it."""
    requests, faults = importlib.import_module("requests"), importlib.import_module("entsoe.exceptions")
    Timestamp = importlib.import_module("pandas").Timestamp
    found: list[str] = []
    for page in range(PAGES):
        try:
            answer = client.query_day_ahead_prices(
                area,
                Timestamp(begin),
                Timestamp(until),
                offset=PAGE * page,
                sequence=1 if area.name in SEVERAL_AUCTIONS else None,
            )
        except faults.NoMatchingDataError:
            break
        except requests.HTTPError as error:
            _refuse_status(error.response.status_code)
        except (
            requests.RequestException,
            OSError,
            faults.PaginationError,
            faults.InvalidBusinessParameterError,
        ) as error:
            silence = f"the Transparency Platform did not answer ({type(error).__name__})"
            remedy = "Check the connection, and try again later"
            raise ez.InputError.about("fetch_entsoe", silence, remedy) from None
        if "Acknowledgement_MarketDocument" in answer:
            if "No matching data found" in answer:
                break
            _refuse_answer("is a refusal")
        found.append(answer)
        if answer.count("<TimeSeries>") < PAGE:
            break
    return found


def _refuse_status(status: int) -> NoReturn:
    """In place of an error whose text holds the key; the same above."""
    if status in (401, 403):
        raise ez.InputError.about(KEY, f"the Transparency Platform refuses this key ({status})", "Check it") from None
    later = "Wait a minute, and ask for less at once" if status == 429 else "Try again later"
    answer = f"the Transparency Platform answered with status {status}"
    raise ez.InputError.about("fetch_entsoe", answer, later) from None


def _refuse_answer(finding: str) -> NoReturn:
    answer = f"the Transparency Platform's answer {finding}"
    raise ez.InputError.about("fetch_entsoe", answer, "Try again later") from None


def _series(answers: list[str]) -> pl.DataFrame:
    """Times and prices of all answers; periods that two of them cover count once."""
    parse = importlib.import_module("entsoe.parsers").parse_prices
    frames = [pl.DataFrame(schema={"utc": pl.Datetime("us", "UTC"), "price": pl.Float64, "minutes": pl.Int32})]
    for answer in answers:
        money = set(re.findall(r"<currency_Unit\.name>\s*(\w+)", answer)) - {"EUR"}
        if money:
            refuse("zone", f"its prices are in {min(money)}, not in EUR", "Choose another zone")
        try:
            parts = parse(answer)
            frames += [_frame(prices, length) for length, prices in parts.items() if len(prices)]
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError):
            _refuse_answer("is not a list of prices")
    every = pl.concat(frames).drop_nulls()
    if every.height == 0:
        _refuse_answer("holds no prices")
    longest = pl.col("minutes").max().over(pl.col("utc").dt.truncate("1h"))
    return every.filter(pl.col("minutes") == longest).select("utc", "price").unique().sort("utc", "price")


def _frame(prices: Any, length: str) -> pl.DataFrame:
    """A pandas series of prices of one length, such as "15min"."""
    when = pl.Series(prices.index.tz_convert("UTC").as_unit("us").asi8).cast(pl.Datetime("us", "UTC"))
    price = pl.Series(prices.to_numpy(dtype=float), nan_to_null=True)
    return pl.DataFrame({"utc": when, "price": price}).with_columns(
        minutes=pl.lit(int(length.removesuffix("min")), pl.Int32)
    )
