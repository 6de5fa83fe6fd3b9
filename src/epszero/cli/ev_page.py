"""The page of `epszero ev --report`."""

from typing import TYPE_CHECKING

import numpy as np

from epszero.cli import ev_words
from epszero.cli.ev_files import cost_rows
from epszero.cli.ev_plan import Answer
from epszero.cli.ev_words import Told
from epszero.report import Charging, charging_page

if TYPE_CHECKING:
    import epszero as ez


def page(  # noqa: PLR0913  (the sections of the page)
    answer: Answer,
    told: list[Told],
    assumed: list[str],
    prices: list[str],
    *,
    unit: str,
    audit: "ez.Audit | None",
    command: str,
    seed: int,
) -> str:
    """HTML in one file."""
    setting, digits = answer.setting, ev_words.digits_of(answer)
    likely, sure = answer.likely, answer.sure
    many = len(setting.cars.vehicles)
    costs = [
        (name, ev_words.euro(cost, digits), "" if saved == "" else ev_words.euro(saved, digits))
        for name, cost, saved in cost_rows(answer)[1:]
    ]
    columns = zip(answer.cost, answer.evenly, answer.at_once, strict=True)
    story = Charging(
        title=f"When {many} electric vehicle{'s' if many > 1 else ''} charge{'' if many > 1 else 's'}",
        headline=ev_words.headline(answer),
        average=ev_words.average(setting) if answer.certificate is not None else "",
        word=ev_words.span_word(setting),
        label=setting.cars.label,
        names=[str(name) for name in setting.cars.vehicles],
        hours=setting.span.names,
        x=np.maximum(answer.x, 0.0),
        costs=costs,
        vehicle_costs=[[ev_words.euro(float(one), max(digits, 2)) for one in row] for row in columns],
        likely=None if likely is None else likely.schedules,
        likely_demand=None if likely is None else likely.demand,
        bars=None if sure is None else sure.schedules,
        days=ev_words.price_factor(unit) * np.asarray(setting.days.samples.values),
        unit=unit,
        prices=prices,
        told=[(one.name, one.says) for one in told],
        assumed=assumed,
        refused=answer.certificate is not None and sure is None,
        asked=[("command", command), ("seed", str(seed))],
    )
    return charging_page(story, answer.certificate, answer.solution, audit, ev_words.plain).html
