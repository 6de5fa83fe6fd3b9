"""One stochastic programme in three libraries: how much to order? docs/compare.md shows what it prints.

    python -m benchmarks.compare_stock

The newsvendor with three products: an order costs PRICE a crate, what is left over LEFT, what is missing SHORT. Demand
is uniform between LOW and HIGH, so the best order is a known quantile. 500 days make the order; 1000 others, which it
has not seen, say how good it is. The functions with the names that mpi-sppy asks for make this module its model.
"""

import io
import re
from contextlib import redirect_stderr, redirect_stdout

import jax.numpy as jnp
import numpy as np

import epszero as ez
from benchmarks._absent import peer

PRICE, LEFT, SHORT = np.array([1.0, 1.5, 0.8]), np.array([0.5, 1.0, 0.2]), np.array([4.0, 5.0, 3.0])
LOW, HIGH = np.array([10.0, 5.0, 20.0]), np.array([40.0, 25.0, 50.0])
SEEN, UNSEEN, GROUPS = 500, 1000, 10
DEMAND = np.random.default_rng(0).uniform(LOW, HIGH, size=(SEEN + UNSEEN, 3))
BEST = LOW + (HIGH - LOW) * (SHORT - PRICE) / (SHORT + LEFT)  # where the marginal cost is 0


def cost(order, demand):
    """Of a day."""
    return PRICE @ order + LEFT @ jnp.maximum(order - demand, 0) + SHORT @ jnp.maximum(demand - order, 0)


def expected(order: np.ndarray) -> float:
    """Under the law, in closed form."""
    over, under = (order - LOW) ** 2 / (2 * (HIGH - LOW)), (HIGH - order) ** 2 / (2 * (HIGH - LOW))
    return float(PRICE @ order + LEFT @ over + SHORT @ under)


def scenario_creator(name: str, num_scens: int | None = None):
    """For mpi-sppy: the programme of one day; the number in its name is the row of the data."""
    import pyomo.environ as pyo  # noqa: PLC0415
    from mpisppy.utils import sputils  # noqa: PLC0415

    demand, products = DEMAND[int(re.sub(r"\D", "", name))], range(3)
    model = pyo.ConcreteModel(name)
    model.order = pyo.Var(products, bounds=(0, 60))
    model.left, model.short = pyo.Var(products, bounds=(0, None)), pyo.Var(products, bounds=(0, None))
    model.balance = pyo.Constraint(products, rule=lambda m, i: m.left[i] - m.short[i] == m.order[i] - float(demand[i]))
    model.first = pyo.Expression(expr=sum(PRICE[i] * model.order[i] for i in products))
    second = sum(LEFT[i] * model.left[i] + SHORT[i] * model.short[i] for i in products)
    model.total = pyo.Objective(expr=model.first + second, sense=pyo.minimize)
    sputils.attach_root_node(model, model.first, [model.order])
    model._mpisppy_probability = "uniform" if num_scens is None else 1.0 / num_scens
    return model


def scenario_names_creator(many: int, start: int = 0) -> list[str]:
    """For mpi-sppy."""
    return [f"day{number}" for number in range(start or 0, (start or 0) + many)]


def kw_creator(cfg) -> dict[str, int]:
    """For mpi-sppy."""
    return {"num_scens": cfg.get("num_scens")}


def inparser_adder(cfg) -> None:
    """For mpi-sppy: nothing to ask for."""


def scenario_denouement(rank, name, scenario) -> None:
    """For mpi-sppy: nothing to do in the end."""


def by_mpi_sppy() -> tuple[np.ndarray, float]:
    """The order from the extensive form, and the bound on its gap by multiple replications."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):  # it tells when it starts, and more
        from mpisppy.confidence_intervals.mmw_ci import MMWConfidenceIntervals  # noqa: PLC0415
        from mpisppy.opt.ef import ExtensiveForm  # noqa: PLC0415
        from mpisppy.utils.config import Config  # noqa: PLC0415

        whole = ExtensiveForm({"solver": "appsi_highs"}, scenario_names_creator(SEEN), scenario_creator)
        whole.solve_extensive_form()
        found = whole.get_root_solution()
        order = np.array([found[f"order[{i}]"] for i in range(3)])
        cfg = Config()
        cfg.quick_assign("EF_2stage", bool, True)
        cfg.quick_assign("EF_solver_name", str, "appsi_highs")
        name = "benchmarks.compare_stock"
        ask = MMWConfidenceIntervals(name, cfg, {"ROOT": order}, GROUPS, UNSEEN // GROUPS, start=SEEN, verbose=False)
        return order, float(ask.run(0.95)["gap_inner_bound"])


def by_cvxpy() -> np.ndarray:
    """The order: one linear programme over all days."""
    import cvxpy as cp  # noqa: PLC0415

    order, seen = cp.Variable(3), DEMAND[:SEEN]
    over = cp.pos(cp.reshape(order, (1, 3), order="C") - seen)
    under = cp.pos(seen - cp.reshape(order, (1, 3), order="C"))
    mean = PRICE @ order + (cp.sum(over @ LEFT) + cp.sum(under @ SHORT)) / SEEN
    cp.Problem(cp.Minimize(mean), [order >= 0, order <= 60]).solve(solver=cp.CLARABEL)
    return np.asarray(order.value)


def main() -> None:
    """All of them, and the truth."""

    def found(order) -> str:
        return f"order found; truly {expected(np.asarray(order)) - expected(BEST):.4f} € dearer than the best"

    with peer("CVXPY", "pip install cvxpy"):
        print(f"CVXPY: {found(by_cvxpy())}, of which it says nothing")
    with peer("mpi-sppy", "pip install mpi-sppy highspy"):
        order, gap = by_mpi_sppy()
        print(f"mpi-sppy: {found(order)}. It says: likely at most {gap:.4f}")
    convex = ez.declare(convex=True)  # with kinks, where nothing is proved of derivatives: our word
    problem = ez.Minimization(cost, ez.sets.Box(0.0, 60.0, dim=3), declared=convex)
    samples = ez.Samples(DEMAND, support=ez.sets.Box(LOW, HIGH))
    solution = ez.solve(problem, samples[:SEEN])
    print(f"epszero: {found(solution.x)}. It says:")
    kept = ez.solve(problem, samples, holdout=UNSEEN / (SEEN + UNSEEN))
    guess = ez.certify(kept, using=ez.certificates.MultipleReplications(groups=GROUPS))
    print(f"  {guess.verdict}: likely at most {guess.cost_gap:.4f} for an order from as many days, by {guess.by}")
    slopes = ez.sets.Box(PRICE - SHORT, PRICE + LEFT)  # of every day's cost, whatever the order
    sure = ez.certify(solution, using=ez.certificates.HoldOut(samples=samples[SEEN:], support=slopes))
    said = f"no cost gap: {sure.notes['cost_gap']}" if sure.cost_gap is None else f"at most {sure.cost_gap:.4f}"
    print(f"  {sure.verdict}: {said}; ‖z + B(x)‖ ≤ {sure.epsilon:.4f} €/crate, by {sure.by}")


if __name__ == "__main__":
    main()
