"""Tables of pandas, Polars and xarray: names are kept, and what is no number is refused by the name of its column."""

import datetime
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import epszero as ez

VALUES = np.array([[0.1, 0.2], [0.3, 0.1], [0.2, 0.4]])
NAMES = ("night", "day")


class DataArray:
    """What xarray's looks like from outside."""

    def __init__(self, values, dims, coords=(), name=None):
        self.values, self.dims, self.name = np.asarray(values), dims, name
        self.coords = {key: SimpleNamespace(values=np.asarray(labels)) for key, labels in dict(coords).items()}


class Dataset:
    def __init__(self, **parts):
        self.data_vars, self.dims = parts, ("day",)

    def __getitem__(self, name):
        return self.data_vars[name]


TABLES = {
    "pandas": pd.DataFrame(VALUES, columns=list(NAMES), index=pd.date_range("2024-01-01", periods=3)),
    "pandas, nullable": pd.DataFrame(VALUES, columns=list(NAMES)).convert_dtypes(),
    "pandas, objects": pd.DataFrame(VALUES, columns=list(NAMES)).astype(object),
    "polars": pl.DataFrame(dict(zip(NAMES, VALUES.T, strict=True))),
    "polars, decimals": pl.DataFrame({name: [Decimal(repr(one)) for one in column] for name, column in
                                      zip(NAMES, VALUES.T.tolist(), strict=True)}),
    "xarray": DataArray(VALUES, ("date", "hour"), {"hour": NAMES}),
    "xarray, dataset": Dataset(night=DataArray(VALUES[:, 0], ("day",)), day=DataArray(VALUES[:, 1], ("day",))),
}  # fmt: skip


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_names_and_values_are_kept(table):
    samples = ez.Samples(table)
    assert samples.names == samples.columns == NAMES
    np.testing.assert_array_equal(samples.values, VALUES)
    for part in (samples.take(5, seed=0), *samples.split(0.4, seed=0), samples[1:], samples[[0, 2]],
                 samples.followed_by(samples[:1])):  # fmt: skip
        assert part.names == NAMES
    chosen = ez.Samples(table, columns=["day"])
    assert chosen.names == ("day",)
    np.testing.assert_array_equal(chosen.values[:, 0], VALUES[:, 1])
    with pytest.raises(ez.InputError, match=r"columns: values has no column 'nigth'. Did you mean 'night'\?"):
        ez.Samples(table, columns=["nigth"])


def test_one_column_and_names_that_are_no_text():
    assert ez.Samples(pd.Series([1.0, 2.0], name="price")).names == ("price",)
    assert ez.Samples(pd.Series([1.0, 2.0])).names is None
    assert ez.Samples(pl.Series("price", [1, 2])).names == ("price",)
    assert ez.Samples(DataArray([1.0, 2.0], ("day",), name="price")).names == ("price",)
    assert ez.Samples(pd.DataFrame(VALUES)).names is None
    assert ez.Samples(pd.DataFrame(VALUES), columns=NAMES).names == NAMES
    assert ez.Samples(pd.DataFrame(VALUES, columns=[22, 23])).names == ("22", "23")
    levels = pd.MultiIndex.from_tuples([("FR", 1), ("FR", 2)])
    assert ez.Samples(pd.DataFrame(VALUES, columns=levels)).names == ("FR.1", "FR.2")
    assert ez.Samples(DataArray(VALUES, ("day", "hour"))).names is None


DAY = datetime.date(2024, 1, 1)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (pd.DataFrame({"a": [1.0], "when": [pd.Timestamp(DAY)]}), r"column 'when' holds dates \(datetime64"),
        (pd.DataFrame({"a": [1.0], "when": pd.to_datetime([DAY]).tz_localize("UTC")}), "column 'when' holds dates"),
        (pd.DataFrame({"a": ["x"]}), "column 'a' holds"),
        (pd.DataFrame({"a": pd.Categorical([1, 2])}), "column 'a' holds category"),
        (pd.DataFrame({"a": ["x"]}, dtype=object), r"values\['a'\]\[0\]: must be a real number, but it is 'x'"),
        (pd.DataFrame({"a": [1j]}), r"column 'a' holds complex numbers"),
        (pl.DataFrame({"b": [1.0], "when": [DAY]}), r"column 'when' holds dates \(Date\)"),
        (pl.DataFrame({"b": ["x"]}), r"column 'b' holds text \(String\)"),
        (pl.DataFrame({"b": [[1.0]]}), r"column 'b' holds List"),
        (pl.DataFrame({"b": [1.0]}).lazy(), r"lazy frame.*values\.collect\(\)"),
        (DataArray(np.array([["x"]]), ("s", "e"), {"e": ["c"]}), r"column 'c' holds text"),
        (DataArray(np.zeros((2, 2, 2)), ("a", "b", "c")), "dimensions a, b, c"),
        (DataArray(1.0, ()), "single number"),
        (Dataset(p=DataArray([1.0], ("day",)), q=DataArray([1.0], ("hour",))), r"'q' has the dimensions \(hour\)"),
        (Dataset(), "no columns"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "more than one column 'a'"),
        (DataArray(np.zeros((2, 2)), ("s", "e"), {"e": ["c", "c"]}), "more than one column 'c'"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, None]}), "row 1, column 'b' is missing"),
        (pd.DataFrame({"b": pd.array([1, None], dtype="Int64")}), "row 1, column 'b' is missing"),
        (pd.DataFrame({"b": [1.0, pd.NA]}, dtype=object), "row 1, column 'b' is missing"),
        (pl.DataFrame({"b": [1, None]}), "row 1, column 'b' is missing"),
        (pl.DataFrame({"b": [1.0, float("inf")]}), "row 1, column 'b' is infinite"),
        (DataArray([[1.0], [np.nan]], ("s", "e"), {"e": ["c"]}), "row 1, column 'c' is missing"),
        (pd.DataFrame({"a": []}), "at least one sample"),
        (pd.DataFrame(), "no columns"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused_by_name(table, says):
    with pytest.raises(ez.InputError, match=says):
        ez.Samples(table)


def test_a_row_outside_the_support_is_told_by_column():
    with pytest.raises(ez.InputError, match=r"row 2 lies outside the support, by 0\.1 in column 'day' \(1 of 3 rows"):
        ez.Samples(TABLES["pandas"], support=ez.sets.Box(0.0, 0.3))
    with pytest.raises(ez.InputError, match=r"row 2 lies outside the support \(1 of 3 rows"):
        ez.Samples(VALUES, support=ez.sets.Box(0.0, 0.3))


def test_the_audit_names_the_column():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"calm": rng.uniform(size=300), "wandering": np.cumsum(rng.normal(size=300))})
    problem = ez.VariationalInequality(lambda x, xi: x - xi, over=ez.sets.Box(-1.0, 1.0, dim=2))
    said = ez.audit(problem, table).assumptions["independent"].evidence
    assert "(column 'wandering')" in said


def test_other_columns_cannot_follow():
    one, other = ez.Samples(VALUES, columns=NAMES), ez.Samples(VALUES, columns=NAMES[::-1])
    with pytest.raises(ez.InputError, match="same columns in the same order"):
        one.followed_by(other)
    assert one.followed_by(ez.Samples(VALUES)).names == NAMES


def test_back_to_a_frame():
    frame = ez.Samples(VALUES, columns=NAMES).to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == list(NAMES)
    np.testing.assert_array_equal(frame.to_numpy(), VALUES)
    np.testing.assert_array_equal(ez.Samples(frame).values, VALUES)
    again = ez.Samples(VALUES).to_frame("pandas")
    assert isinstance(again, pd.DataFrame)
    assert list(again.columns) == ["0", "1"]
    tree = ez.Samples.from_arrays({"P": np.arange(12.0).reshape(3, 2, 2), "q": np.zeros(3)})
    assert tree.to_frame().columns == ["P.0", "P.1", "P.2", "P.3", "q"]
    with pytest.raises(ez.InputError, match="library: must be one of 'polars', 'pandas'"):
        tree.to_frame("excel")
