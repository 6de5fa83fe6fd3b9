"""What pictures share: colours, figures, axes. Matplotlib loads with the first picture; nothing is shown or saved."""

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito: told apart by colour-blind readers too
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)
GREY = "#777777"
FORMS = ("png", "pdf", "svg")  # in which figures are written
SPREAD = (10, 90)  # percentiles between which a band lies


def figure(width: float, height: float) -> "Figure":
    """An empty figure that arranges its axes without overlaps."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (a second of loading, for those who draw)

    return Figure(figsize=(width, height), layout="constrained")


def drawn(sheet: "Figure", form: str) -> bytes:
    """The figure as a file ("png", "pdf" or "svg"): equal bytes for equal figures, as no time is written into it."""
    import matplotlib as mpl  # noqa: PLC0415  (as above)

    undated: dict[str, Any] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    packed = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "epszero", "svg.fonttype": "path"}):
        sheet.savefig(packed, format=form, dpi=150, metadata=undated.get(form, {}))
    return packed.getvalue()


def tidy(*axes: "Axes") -> None:
    """No frame where there is no axis, and a faint grid behind the data."""
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", alpha=0.3, linewidth=0.6)
        ax.set_axisbelow(True)


def beside(ax: "Axes") -> None:
    """The legend, where it covers nothing."""
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)


def whole(ax: "Axes") -> None:
    """Marks at whole numbers only, for what is counted."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415  (as above)

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
