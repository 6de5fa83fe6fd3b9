"""Games stated wrongly are refused in a sentence, before any iteration: the argument, the rule, the remedy."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import epszero as ez

pytestmark = pytest.mark.some(2)

BOX = ez.sets.Box(-1.0, 1.0, dim=2)
BOXES = [BOX, BOX]
ONE_ROW = np.ones((1, 4))
TWO_PLACES = np.array([[1.0], [-1.0]])
SAMPLES = ez.Samples(np.random.default_rng(0).normal(size=(10, 2)))


def near(i, target=1.0):
    return lambda x: jnp.sum((x[i] - target) ** 2)


def near_sample(i):
    return lambda x, xi: jnp.sum((x[i] - xi) ** 2)


COSTS = [near(0), near(1)]
UNCERTAIN = [near_sample(0), near_sample(1)]


def bowl(own, average, car):
    return car["wear"] * own @ own + average @ own - own.sum()


CARS = {"wear": np.array([1.0, 2.0, 3.0])}


# -- what a game is made of --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("costs", "strategies", "words"),
    [
        (near(0), BOXES, r"^costs: must be a list of functions, one per agent, .*AggregativeGame"),
        ([], [], r"^costs: must be a list"),
        ([near(0)], BOXES, r"^costs, strategies: 1 costs for 2 strategy sets\. Give one of each"),
        ([near(0), near(1), near(0)], BOXES, r"^costs, strategies: 3 costs for 2"),
        ([near(0), 3], BOXES, r"^costs\[1\]: must be a function of x, or of x and a sample, but it is a int"),
        ([near(0), lambda: 0.0], BOXES, r"^costs\[1\]: must take x, or x and a sample, but it takes 0"),
        ([near(0), [near(1)]], BOXES, r"^costs\[1\]: must be one function\. Add its parts up"),
        (COSTS, BOX, r"^strategies: must be a list of sets or functions, one per agent, but it is a Box"),
        (COSTS, [BOX, 3], r"^strategies: must be a set, a function or an object with resolvent"),
        (COSTS, None, r"^strategies: must be a list"),
    ],
)
def test_a_game_that_does_not_add_up_is_refused_at_construction(costs, strategies, words):
    with pytest.raises(ez.InputError, match=words):
        ez.Game(costs, strategies)


@pytest.mark.parametrize("nothing", [None, [], {}])
def test_an_agent_without_a_strategy_is_refused(nothing):
    with pytest.raises(ez.InputError, match="^strategies"):
        ez.Game(COSTS, [nothing, BOX])


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (lambda x: x[0], r"^costs\[0\]: must return one number, but it returns an array of shape \(2,\)\. Sum over"),
        (lambda x: x[0][:1], r"^costs\[0\]: must return one number, .* \(1,\)"),
        (lambda x: x[0][0] if x[0][0] > 0 else 0.0, r"^costs\[0\]: decides in Python on a value.*jnp\.where"),
        (lambda x: np.sum(np.sin(x[0])), r"^costs.*numpy\.ndarray conversion.*jax\.numpy"),
        (lambda x: x[0] @ np.ones(3), r"^costs\[0\]: cannot be evaluated at arguments of shape \[\(2,\), \(2,\)\]"),
    ],
)
def test_a_cost_that_is_no_number_is_refused_before_any_iteration(first, words):
    with pytest.raises(ez.InputError, match=words):
        ez.solve(ez.Game([first, near(1)], BOXES))


@pytest.mark.parametrize(
    "first", [lambda x: 1, lambda x: None, lambda x: [x[0].sum()], lambda x: jnp.sum(x[0] > 0)],
    ids=["integer", "nothing", "list", "count"],
)  # fmt: skip
def test_a_cost_of_another_kind_is_refused_by_name(first):
    with pytest.raises(ez.InputError, match=r"^costs\[0\]: must return one (real )?number") as caught:
        ez.solve(ez.Game([first, near(1)], BOXES))
    assert "None" not in str(caught.value).replace("NoneType", "")


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"parameters": {"wear": 1.0}}, r"^parameters\['wear'\]: is one number, .*Give one entry per agent"),
        ({"parameters": {"wear": np.ones(3), "need": np.ones(4)}}, r"leading axes count agents, but they are \d and"),
        ({"strategies": ez.sets.Box(np.zeros((5, 2)), 1.0)}, r"\['wear'\], strategies: .* are 3 and 5"),
        ({"agents": 7}, r"^agents, parameters\['wear'\]: .*they are 7 and 3\. Give each one row per agent"),
        ({"agents": 0}, "^agents: must be at least 1"),
        ({"parameters": {"wear": [1.0, np.nan, 2.0]}}, "^parameters.*finite"),
        ({"parameters": {"wear": np.array(["a", "b"])}}, "^parameters.*real numbers"),
        ({"parameters": None}, r"^(agents|cost): "),
        ({"cost": lambda own: own @ own}, r"^cost: must take \(own, average, xi, own_parameters\), .*takes 1"),
        ({"cost": 3}, "^cost: must be a function, but it is a int"),
        ({"strategies": 3}, "^strategies: must be a set, a function"),
        ({"agent": 3}, "^agent: AggregativeGame has no such argument. Did you mean 'agents'"),
    ],
)  # fmt: skip
def test_agents_alike_that_do_not_add_up_are_refused_at_construction(keywords, words):
    stated = {"cost": bowl, "parameters": CARS, "strategies": BOX, **keywords}
    with pytest.raises(ez.InputError, match=words):
        ez.AggregativeGame(**stated)


def test_how_many_agents_there_are_must_be_said():
    with pytest.raises(ez.InputError, match="^agents: how many there are is said nowhere. Pass agents=N"):
        ez.AggregativeGame(lambda own, average: own @ own, None, BOX)


def test_a_cost_of_agents_alike_that_is_a_vector_is_refused():
    with pytest.raises(ez.InputError, match=r"^cost: must return one number, but it returns an array of shape \(2,\)"):
        ez.solve(ez.AggregativeGame(lambda own, average, car: car["wear"] * own, CARS, BOX))


@pytest.mark.parametrize("x0", [np.zeros((4, 2)), np.zeros(2), np.zeros((2, 3, 2))], ids=["four", "one", "batch"])
def test_a_start_for_another_number_of_agents_is_refused_by_name(x0):
    with pytest.raises(ez.InputError, match=r"^x0: .*3"):
        ez.solve(ez.AggregativeGame(bowl, CARS, BOX), x0=x0)


@pytest.mark.long
def test_parameters_in_a_plain_list_are_understood_or_explained():
    game = ez.AggregativeGame(lambda own, average, wear: wear * own @ own - own.sum(), [1.0, 2.0], BOX)
    np.testing.assert_allclose(ez.solve(game).x, [[0.5, 0.5], [0.25, 0.25]], atol=1e-8)


def test_a_list_of_sets_for_agents_alike_is_refused_by_name():
    with pytest.raises(ez.InputError, match=r"^strategies: .*(batch|Game)"):
        ez.solve(ez.AggregativeGame(bowl, CARS, [BOX] * 3))


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (None, "^samples: are needed"),
        ([SAMPLES] * 3, "^samples: 3 data sets for 2 agents"),
        ([SAMPLES, SAMPLES.values], "^samples: in a list must all be ez.Samples"),
    ],
)
def test_samples_that_do_not_fit_the_agents(samples, words):
    with pytest.raises(ez.InputError, match=words):
        ez.solve(ez.Game(UNCERTAIN, BOXES), samples)
    with pytest.raises(ez.InputError, match="^samples: are given, but nothing"):
        ez.solve(ez.Game(COSTS, BOXES), SAMPLES)


# -- convexity ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "concave", [lambda x: -jnp.sum(x[0] ** 2), lambda x: x[0][0] * x[0][1], lambda x: -1e-6 * jnp.sum(x[0] ** 2)]
)
def test_a_cost_that_is_provably_not_convex_in_the_own_strategy_is_refused(concave):
    with pytest.raises(ez.InputError, match=r"^costs\[0\]: must be convex in the own strategy of agent 0, .*−payoff"):
        ez.solve(ez.Game([concave, near(1)], BOXES))


def test_the_agent_that_is_not_convex_is_named():
    cars = {"wear": np.array([1.0, 1.0, -5.0])}
    with pytest.raises(ez.InputError, match="^cost: must be convex in the own strategy of agent 2"):
        ez.solve(ez.AggregativeGame(bowl, cars, BOX))


@pytest.mark.parametrize(
    ("seen", "evidence"),
    [
        (lambda x: jnp.sum(jnp.sin(3 * x[0])), "curvature there is -"),
        (lambda x: -jnp.sum(jnp.abs(x[0])), "slope falls"),
    ],
)
def test_a_cost_seen_not_to_be_convex_is_warned_of_with_the_evidence(seen, evidence):
    with pytest.warns(ez.ConvexityWarning, match=rf"^costs\[0\]: .*agent 0 .*{evidence}.*check_equilibrium") as caught:
        solution = ez.solve(ez.Game([seen, near(1)], BOXES), None, ez.ForwardBackward(), iterations=0)
    assert caught[0].filename == __file__
    assert any("not convex" in note for note in solution.notes)


@pytest.mark.long
def test_what_is_convex_on_the_strategies_is_neither_refused_nor_warned_of():
    costs = [
        lambda x: 2 * jnp.sum(x[0] ** 2) - 3 * jnp.sum(x[0]) ** 2,  # on the simplex the sum is constant
        lambda x: -jnp.sum(x[1] ** 2),  # at one point only
        lambda x: jnp.sum(jnp.maximum(x[2], 0.0) ** 2),
        lambda x: 1e8 * x[3][0] ** 2 + 1e-3 * x[3][1],
        lambda x: x[4].sum() * x[0].sum(),  # linear in the own strategy
    ]
    sets = [ez.sets.Simplex(dim=2), ez.sets.Singleton([0.1, 0.2]), BOX, BOX, BOX]
    assert ez.solve(ez.Game(costs, sets, declared=ez.declare(monotone=True)), iterations=0).notes == ()
    flat = ez.Game([costs[0], lambda x: -jnp.sum(x[1] ** 2)], sets[:2])  # monotone between points of the domain
    assert ez.solve(flat).notes == ()


@pytest.mark.long
def test_convexity_is_judged_for_the_samples_at_hand():
    game = ez.Game([lambda x, xi: xi[0] * jnp.sum(x[0] ** 2), near(1)], BOXES)
    ez.solve(game, np.array([[3.0], [1.0]]), iterations=0)
    with pytest.raises(ez.InputError, match=r"^costs\[0\]: must be convex"):
        ez.solve(game, np.array([[-3.0], [-1.0]]), iterations=0)


@pytest.mark.parametrize(
    "x0",
    [
        None,
        [np.ones(2), np.ones(2)],
    ],
)
def test_a_shared_constraint_that_is_not_convex_is_warned_of(x0):
    game = ez.Game(COSTS, BOXES, shared=lambda x: jnp.stack([x[0][0] - 5.0, 0.1 - x[1] @ x[1] - x[0].sum()]))
    with pytest.warns(ez.ConvexityWarning, match="^shared: constraint 1 is not convex: halfway"):
        ez.solve(game, x0=x0, iterations=0)


@pytest.mark.long
def test_a_shared_constraint_that_is_not_convex_is_not_called_infeasible():
    with pytest.warns(ez.ConvexityWarning, match="^shared: constraint 0 is not convex"):
        ez.solve(ez.Game(COSTS, BOXES, shared=lambda x: 1.0 - x[0] @ x[0]), iterations=0)


# -- shared constraints ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shared", "words"),
    [
        ((np.ones((1, 5)), [1.0]), r"^shared: G has 5 columns, but x has 4 entries\. Give one column per entry"),
        ((sp.eye(3), 1.0), "^shared: G has 3 columns, but x has 4"),
        (([np.ones((1, 2))], [1.0]), "^shared: G has 2 columns, but x has 4"),
        (([np.ones((1, 2)), np.ones((2, 2))], [1.0]), r"^G: its blocks have \[1, 2\] rows"),
        ((ONE_ROW, [1.0, 2.0]), r"^b: has 2 entries for 1 rows of G\. Give one bound per row"),
        ((ONE_ROW, [np.inf]), r"^b\[0\]: must be finite"),
        ((ONE_ROW * np.nan, [1.0]), r"^G\[0, 0\]: must be finite"),
        ((sp.csr_matrix(ONE_ROW * np.inf), [1.0]), "^G: must be finite"),
        ((np.ones((1, 2, 2)), [1.0]), "^G: must be a matrix"),
        ((lambda x: x[0] + x[1], np.ones(3)), r"^shared: G\(x\) has shape \(2,\), but b has shape \(3,\)"),
        ("x < 1", r"^shared: must be a pair \(G, b\), a function h .*but it is a str"),
        (3, "^shared: must be a pair .*but it is a int"),
        ({"G": ONE_ROW}, "^shared: must be a pair .*but it is a dict"),
        (ONE_ROW, "^shared: must be a pair .*Write shared=.G, b."),
        ([3, (ONE_ROW, 1.0)], "^shared: must be a pair"),
        (lambda x: jnp.outer(x[0], x[1]), r"^shared: must return a number or a vector, but its shape is \(2, 2\)"),
        (lambda x: x[5], "^shared: cannot be evaluated at x: list index out of range"),
        (lambda x, xi: x[0].sum(), "^shared: cannot be evaluated at x: .*xi"),
    ],
)
def test_shared_constraints_that_do_not_fit_are_refused_at_construction(shared, words):
    with pytest.raises(ez.InputError, match=words):
        ez.Game(COSTS, BOXES, shared=shared)


@pytest.mark.parametrize(
    "G", [lambda x: x[0] ** 2 + x[1], lambda x: x[0] + x[1] - 3.0, lambda x: jnp.abs(x[0]) + x[1]],
    ids=["square", "constant", "absolute"],
)  # fmt: skip
def test_a_function_that_is_not_linear_is_refused_as_G(G):
    with pytest.raises(ez.InputError, match=r"linear.*ConvexConstraint|linear.*h"):
        ez.solve(ez.Game(COSTS, BOXES, shared=(G, [1.0, 1.0])), iterations=0)


def test_a_constraint_that_is_a_comparison_is_refused_in_a_sentence():
    with pytest.raises(ez.InputError, match="^shared: "):
        ez.Game(COSTS, BOXES, shared=lambda x: x[0].sum() < 1.0)


@pytest.mark.parametrize("shared", [(ONE_ROW, None), [None, (ONE_ROW, 1.0)]])
def test_a_missing_part_of_shared_is_named(shared):
    with pytest.raises(ez.InputError, match=r"^(b|shared\S*): .*None"):
        ez.Game(COSTS, BOXES, shared=shared)


@pytest.mark.parametrize(
    ("shared", "named"),
    [
        ((np.vstack([ONE_ROW, -ONE_ROW, -ONE_ROW]), [1.0, 1.0, -4.01]), ["constraint 2 by"]),
        ((np.vstack([ONE_ROW * 0, ONE_ROW]), [-0.5, 9.0]), ["constraint 0 by"]),
        ((sp.csr_matrix(1e6 * np.eye(4)), -1.1e6), [f"constraint {row} by" for row in range(4)]),
        ((lambda x: jnp.stack([x[0].sum(), -x[1].sum()]), [1.0, -2.1]), ["constraint 1 by"]),
        (lambda x: jnp.stack([x[0] @ x[0] - 1.0, jnp.sum((x[1] - 3.0) ** 2) - 7.9]), ["constraint 1 by"]),
        (lambda x: jnp.sum((x[0] - TWO_PLACES) ** 2, axis=1) - 0.1, ["constraint 0 by", "constraint 1 by"]),
        ([(ONE_ROW, 1.0), lambda x: jnp.exp(x[1][0]) - 0.36], ["constraint 1 by"]),
    ],
    ids=["affine", "zero row", "sparse", "linear function", "convex", "two balls apart", "both kinds"],
)  # fmt: skip
def test_infeasible_shared_constraints_are_refused_and_named(shared, named):
    with pytest.raises(ez.InputError, match="^shared: no strategies meet all the constraints.*Relax") as caught:
        ez.Game(COSTS, BOXES, shared=shared)
    for words in named:
        assert words in str(caught.value)
    assert str(caught.value).count("constraint ") == len(named)


def test_infeasible_constraints_are_refused_where_only_x0_tells_the_shapes():
    game = ez.Game(COSTS, [ez.sets.Box(0.0, 1.0)] * 2, shared=(ONE_ROW, -1.0))
    with pytest.raises(ez.InputError, match="^shared: no strategies meet"):
        ez.solve(game, x0=[np.zeros(2), np.zeros(2)])


@pytest.mark.parametrize(
    "shared",
    [
        (ONE_ROW, -4.0),
        (1e6 * ONE_ROW, -4e6),
        (np.vstack([ONE_ROW, -ONE_ROW]), [1.0, -1.0]),
        (np.zeros((2, 4)), 0.0),
        lambda x: x[0] @ x[0] + x[1] @ x[1],
        lambda x: jnp.sum((x[0] - 2.0) ** 2) - 2.0,
        lambda x: 1e-3 * (x[0] @ x[0]),
    ],
    ids=["a corner", "a large corner", "an equation", "nothing", "the centre", "a touching ball", "the centre, small"],
)
def test_constraints_that_only_just_have_a_solution_are_not_refused(shared):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ez.Game(COSTS, BOXES, shared=shared)
