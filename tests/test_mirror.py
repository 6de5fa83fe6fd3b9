"""Whoever reads a source file finds its tests: of its name, in a contract suite, or in the file that is named here.

`src/epszero/<room>/<file>.py` is tested by `tests/<room>/test_<file>*.py`. A new source file without tests fails here:
write them, or enter the file in COVERED_BY with those that exercise it.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "epszero"

# Rooms whose members all run through one suite, which fails where one is missing from it.
CONTRACTS = {
    "sets": "tests/contracts/test_sets.py",
    "functions": "tests/contracts/test_functions.py",
    "methods": "tests/contracts/test_methods.py",
    "certificates/mean": "tests/contracts/test_certificates.py",
}

# Files that are tested under another name.
COVERED_BY = {
    "samples/_marks.py": "tests/samples/test_tables.py",
    "datasets/_units.py": "tests/datasets/test_plain.py",
    "samples/_opened.py": "tests/samples/test_tables.py",
    "certificates/_near.py": "tests/certificates/test_at_the_truth.py",
    "certificates/by_terms.py": "tests/certificates/test_terms.py",
    "certificates/local.py": "tests/certificates/test_at_the_truth.py",
    "certificates/pilot.py": "tests/certificates/test_at_the_truth.py",
    "certificates/truth.py": "tests/certificates/test_at_the_truth.py",
    "solve/linear_parts.py": "tests/solve/test_complementarity.py",
    "_trace/polynomials.py": "tests/_trace/test_separated.py",
    "_trace/rules/bends.py": "tests/_trace/test_atoms.py",
    "_trace/rules/curves.py": "tests/_trace/test_atoms.py",
    "_trace/rules/exponentials.py": "tests/_trace/test_atoms.py",
    "_trace/rules/powers.py": "tests/_trace/test_atoms.py",
    "_trace/rules/waves.py": "tests/_trace/test_atoms.py",
    "_trace/rules/expressions.py": "tests/_trace/test_atoms.py",
    "_trace/rules/nested.py": "tests/attacks/test_rules_of_convexity.py",
    "_trace/rules/operations.py": "tests/attacks/test_rules_of_convexity.py",
    "_trace/rules/choices.py": "tests/attacks/test_rules_of_convexity.py",
    "_trace/rules/walk.py": "tests/attacks/test_rules_of_convexity.py",
    "_trace/rules/ranges.py": "tests/attacks/test_rules_of_convexity.py",
    "_trace/rules/forms.py": "tests/attacks/test_rules_of_convexity.py",
    "_trace/rules/maps.py": "tests/attacks/test_rules_of_convexity.py",
    "_trace/rules/groups.py": "tests/facts/test_rules.py",
    "_trace/rules/hubers.py": "tests/facts/test_rules.py",
    "facts/composed.py": "tests/attacks/test_rules_of_convexity.py",
    "facts/composed_slopes.py": "tests/attacks/test_rules_of_convexity.py",
    "facts/composed_sizes.py": "tests/attacks/test_rules_of_convexity.py",
    "facts/composed_total.py": "tests/facts/test_rules.py",
    "facts/ruled.py": "tests/facts/test_rules.py",
    "facts/bounded.py": "tests/facts/test_verified_constants.py",
    "_trace/steps.py": "tests/_trace/test_rolled.py",
    "oracles/batches.py": "tests/oracles/test_alike.py",
    "oracles/matrices.py": "tests/oracles/test_alike.py",
    "oracles/packed.py": "tests/solve/test_packing.py",
    "certificates/plan_rows.py": "tests/certificates/test_plan.py",
    "certificates/responses.py": "tests/certificates/test_sharp.py",
    "certificates/scales.py": "tests/attacks/test_extreme_scales.py",
    "_frames.py": "tests/samples/test_frames.py",
    "_doors.py": "tests/report/test_cells.py",
    "samples/record.py": "tests/report/test_saved.py",
    "samples/_rows.py": "tests/samples/test_samples.py",
    "_lazy.py": "tests/contracts/test_imports.py",
    "problems/given.py": "tests/problems/test_game_input.py",
    "cli/endings.py": "tests/cli/test_command_endings.py",
    "certificates/agreement.py": "tests/attacks/test_forged_records.py",
    "certificates/encoding.py": "tests/certificates/test_record.py",
    "_trace/derivatives.py": "tests/attacks/test_hidden_jumps.py",
    "_trace/intervals/sums.py": "tests/_trace/test_intervals.py",
    "facts/costs.py": "tests/attacks/test_hidden_jumps.py",
    "facts/constraints.py": "tests/attacks/test_bent_constraints.py",
    "facts/corners.py": "tests/facts/test_exact_constants.py",
    "problems/lines.py": "tests/attacks/test_hidden_jumps.py",
    "certificates/reading.py": "tests/attacks/test_forged_records.py",
    "facts/convex.py": "tests/certificates/test_conversions.py",
    "facts/observed.py": "tests/audit/test_audit.py",
    "problems/seen.py": "tests/house/test_one_owner.py",
    "solve/attempt.py": "tests/house/test_same_everywhere.py",
    "solve/request.py": "tests/solve/test_bad_input.py",
    "_checks.py": "tests/sets/test_refusals.py",
    "_double.py": "tests/test_precision.py",
    "_memory.py": "tests/house/test_history.py",
    "_host.py": "tests/solve/test_known_answers.py",
    "_points.py": "tests/solve/test_known_answers.py",
    "_pytree.py": "tests/contracts/test_members.py",
    "_shaped.py": "tests/contracts/test_members.py",
    "_trace/dependence.py": "tests/_trace/test_features.py",
    "_trace/intervals/arithmetic.py": "tests/_trace/test_intervals.py",
    "_trace/intervals/enclosed.py": "tests/_trace/test_interval_limits.py",
    "_trace/intervals/moves.py": "tests/_trace/test_intervals.py",
    "_trace/intervals/program.py": "tests/_trace/test_intervals.py",
    "_trace/intervals/rules.py": "tests/_trace/test_intervals.py",
    "_trace/intervals/shifts.py": "tests/_trace/test_intervals.py",
    "_trace/programs.py": "tests/_trace/test_features.py",
    "_types.py": "tests/solve/test_known_answers.py",
    "audit/findings.py": "tests/audit/test_audit.py",
    "audit/noise.py": "tests/audit/test_audit.py",
    "audit/slopes.py": "tests/audit/test_audit.py",
    "certificates/_base.py": "tests/contracts/test_certificates.py",
    "certificates/_inputs.py": "tests/certificates/test_certify.py",
    "certificates/agents.py": "tests/certificates/test_conversions.py",
    "certificates/anytime.py": "tests/certificates/test_stream.py",
    "certificates/case.py": "tests/certificates/test_certify.py",
    "certificates/certificate.py": "tests/certificates/test_certify.py",
    "certificates/choose.py": "tests/certificates/test_certify.py",
    "certificates/consequences.py": "tests/certificates/test_conversions.py",
    "certificates/e_process.py": "tests/certificates/test_monitor.py",
    "certificates/bagging.py": "tests/certificates/test_replications.py",
    "certificates/bootstrap.py": "tests/certificates/test_asymptotic.py",
    "certificates/faces.py": "tests/certificates/test_piece.py",
    "certificates/gaps.py": "tests/certificates/test_replications.py",
    "certificates/dependent.py": "tests/certificates/test_kinds.py",
    "certificates/evidence.py": "tests/certificates/test_certify.py",
    "certificates/hold_out.py": "tests/certificates/test_kinds.py",
    "certificates/known.py": "tests/contracts/test_certificates.py",
    "certificates/mean_deviation.py": "tests/certificates/test_kinds.py",
    "certificates/noise.py": "tests/certificates/test_kinds.py",
    "certificates/likely.py": "tests/certificates/test_asymptotic.py",
    "certificates/repaired_stability.py": "tests/certificates/test_kinds.py",
    "certificates/residuals.py": "tests/certificates/test_conversions.py",
    "certificates/runs.py": "tests/certificates/test_kinds.py",
    "certificates/shared.py": "tests/certificates/test_conversions.py",
    "certificates/tightest.py": "tests/contracts/test_certificates.py",
    "certificates/uniform_stability.py": "tests/certificates/test_kinds.py",
    "certificates/vector_stability.py": "tests/certificates/test_kinds.py",
    "certificates/verify.py": "tests/certificates/test_record.py",
    "cli/commands.py": "tests/cli/test_wrong_words.py",
    "cli/audit.py": "tests/cli/test_model_commands.py",
    "cli/certify.py": "tests/cli/test_model_commands.py",
    "cli/data.py": "tests/cli/test_model_files.py",
    "cli/prices.py": "tests/cli/test_ev_command.py",
    "cli/ev_files.py": "tests/cli/test_ev_command.py",
    "cli/ev_options.py": "tests/cli/test_ev_command.py",
    "cli/ev_page.py": "tests/cli/test_ev_command.py",
    "cli/ev_plan.py": "tests/cli/test_ev_command.py",
    "cli/ev_words.py": "tests/cli/test_ev_command.py",
    "cli/ev_screen.py": "tests/cli/test_ev_command.py",
    "report/charging.py": "tests/cli/test_ev_command.py",
    "cli/options.py": "tests/cli/test_wrong_words.py",
    "cli/output.py": "tests/cli/test_model_commands.py",
    "cli/plan.py": "tests/cli/test_model_commands.py",
    "cli/run.py": "tests/cli/test_model_commands.py",
    "cli/solve.py": "tests/cli/test_model_commands.py",
    "datasets/_formats.py": "tests/datasets/test_price_files.py",
    "datasets/_inputs.py": "tests/datasets/test_price_input.py",
    "datasets/_mend.py": "tests/datasets/test_price_mending.py",
    "datasets/_prices.py": "tests/datasets/test_embedded_prices.py",
    "datasets/_table.py": "tests/datasets/test_price_files.py",
    "datasets/api.py": "tests/datasets/test_fetch_entsoe.py",
    "datasets/dutch.py": "tests/datasets/test_embedded_prices.py",
    "datasets/readers.py": "tests/datasets/test_price_files.py",
    "experiments/_charging.py": "tests/experiments/test_figures.py",
    "experiments/_contest.py": "tests/experiments/test_likely.py",
    "experiments/_laws.py": "tests/experiments/test_likely.py",
    "experiments/_outcome.py": "tests/experiments/test_reproduce.py",
    "experiments/_run.py": "tests/experiments/test_reproduce.py",
    "experiments/_series.py": "tests/experiments/test_figures.py",
    "experiments/_store.py": "tests/experiments/test_reproduce.py",
    "experiments/convergence.py": "tests/experiments/test_reproduce.py",
    "experiments/coverage.py": "tests/experiments/test_reproduce.py",
    "experiments/dependent.py": "tests/experiments/test_reproduce.py",
    "experiments/fig1.py": "tests/experiments/test_figures.py",
    "experiments/fig2.py": "tests/experiments/test_figures.py",
    "experiments/fig3.py": "tests/experiments/test_figures.py",
    "experiments/fig4.py": "tests/experiments/test_figures.py",
    "experiments/growth.py": "tests/experiments/test_reproduce.py",
    "experiments/splitting.py": "tests/experiments/test_figures.py",
    "experiments/references.py": "tests/experiments/test_reproduce.py",
    "experiments/table2.py": "tests/experiments/test_reproduce.py",
    "experiments/tightness.py": "tests/experiments/test_reproduce.py",
    "facts/affine.py": "tests/facts/test_exact_constants.py",
    "facts/aggregates.py": "tests/facts/test_exact_constants.py",
    "facts/average.py": "tests/solve/test_choice.py",
    "facts/branching.py": "tests/facts/test_verified_constants.py",
    "facts/domains.py": "tests/facts/test_exact_constants.py",
    "facts/enclosed.py": "tests/facts/test_verified_constants.py",
    "facts/facts.py": "tests/facts/test_exact_constants.py",
    "facts/gram.py": "tests/facts/test_exact_constants.py",
    "facts/large.py": "tests/facts/test_exact_constants.py",
    "facts/noise_map.py": "tests/facts/test_exact_constants.py",
    "facts/provenance.py": "tests/facts/test_exact_constants.py",
    "facts/search.py": "tests/facts/test_verified_constants.py",
    "facts/sizes.py": "tests/facts/test_exact_constants.py",
    "facts/steps.py": "tests/solve/test_choice.py",
    "facts/structure.py": "tests/facts/test_gallery.py",
    "models/_assignment.py": "tests/models/test_traffic.py",
    "models/_fleet.py": "tests/models/test_ev_charging.py",
    "models/_link_bands.py": "tests/models/test_traffic.py",
    "models/_roads.py": "tests/models/test_traffic.py",
    "models/_inputs.py": "tests/models/test_model_input.py",
    "models/_map.py": "tests/models/test_routing.py",
    "models/_network.py": "tests/models/test_routing.py",
    "oracles/_base.py": "tests/oracles/test_averages.py",
    "oracles/affine.py": "tests/oracles/test_averages.py",
    "oracles/agents.py": "tests/oracles/test_averages.py",
    "oracles/blocks.py": "tests/oracles/test_averages.py",
    "oracles/coupled.py": "tests/problems/test_games.py",
    "oracles/exact.py": "tests/oracles/test_averages.py",
    "oracles/features.py": "tests/oracles/test_averages.py",
    "oracles/general.py": "tests/oracles/test_averages.py",
    "oracles/recognise.py": "tests/oracles/test_averages.py",
    "oracles/sample_mean.py": "tests/oracles/test_averages.py",
    "problems/_base.py": "tests/problems/test_problems.py",
    "problems/aggregative.py": "tests/problems/test_games.py",
    "problems/backward.py": "tests/problems/test_problems.py",
    "problems/declared.py": "tests/problems/test_problems.py",
    "problems/examination.py": "tests/problems/test_game_input.py",
    "problems/feasible.py": "tests/problems/test_game_input.py",
    "problems/graph.py": "tests/attacks/test_solver_sets.py",
    "problems/refuted.py": "tests/attacks/test_lying_resolvents.py",
    "problems/inclusion.py": "tests/problems/test_problems.py",
    "problems/minimization.py": "tests/problems/test_problems.py",
    "problems/shared.py": "tests/problems/test_games.py",
    "problems/stacked.py": "tests/problems/test_games.py",
    "problems/variational.py": "tests/problems/test_problems.py",
    "problems/viewing.py": "tests/problems/test_games.py",
    "problems/views.py": "tests/problems/test_games.py",
    "report/answer.py": "tests/report/test_report.py",
    "report/bars.py": "tests/report/test_report.py",
    "report/charts.py": "tests/report/test_report.py",
    "report/facts.py": "tests/report/test_report.py",
    "report/files.py": "tests/report/test_report.py",
    "report/forecast.py": "tests/report/test_report.py",
    "report/forecast_view.py": "tests/report/test_report.py",
    "report/style.py": "tests/report/test_report.py",
    "report/words.py": "tests/report/test_report.py",
    "samples/_arrays.py": "tests/samples/test_samples.py",
    "samples/_history.py": "tests/attacks/test_reused_rows.py",
    "samples/_streams.py": "tests/attacks/test_reused_rows.py",
    "samples/_values.py": "tests/attacks/test_reused_rows.py",
    "samples/_read.py": "tests/samples/test_files.py",
    "_trace/kink_signs.py": "tests/_trace/test_kinks_read.py",
    "solve/balance.py": "tests/solve/test_kinks.py",
    "solve/epigraph.py": "tests/solve/test_kinks.py",
    "solve/landing.py": "tests/solve/test_kinks.py",
    "solve/pieces.py": "tests/solve/test_kinks.py",
    "solve/programme.py": "tests/solve/test_kinks.py",
    "solve/recognised.py": "tests/solve/test_kinks.py",
    "solve/tables.py": "tests/solve/test_kinks.py",
    "solve/best_response.py": "tests/problems/test_known_games.py",
    "solve/equilibrium.py": "tests/problems/test_known_games.py",
    "solve/loop.py": "tests/solve/test_endings.py",
    "solve/progress.py": "tests/solve/test_endings.py",
    "solve/setup.py": "tests/solve/test_bad_input.py",
    "solve/slater.py": "tests/solve/test_diagnosis.py",
    "solve/solve.py": "tests/solve/test_known_answers.py",
    "solve/status.py": "tests/solve/test_endings.py",
}


def without_tests(source: Path, root: Path) -> list[str]:
    """The source files for which no test is named."""
    missing = []
    for file in sorted(source.rglob("*.py")):
        inside = file.relative_to(source)
        room = inside.parent.as_posix()
        own = list((root / "tests" / room).glob(f"test_{file.stem.lstrip('_')}*.py"))
        if not (file.name.startswith("__") or own or room in CONTRACTS or inside.as_posix() in COVERED_BY):
            missing.append(inside.as_posix())
    return missing


def test_every_source_file_has_tests():
    assert without_tests(SOURCE, ROOT) == []


@pytest.mark.parametrize("test", sorted({*CONTRACTS.values(), *COVERED_BY.values()}))
def test_what_is_named_exists(test):
    assert (ROOT / test).is_file()


def test_no_entry_is_out_of_date():
    """Each speaks of a file that exists and has no tests of its own name."""
    stale = [name for name in COVERED_BY if not (SOURCE / name).is_file()]
    named = {name: list((ROOT / "tests" / Path(name).parent).glob(f"test_{Path(name).stem.lstrip('_')}*.py"))
             for name in COVERED_BY}  # fmt: skip
    assert stale == []
    assert [name for name, own in named.items() if own] == []
    assert [room for room in CONTRACTS if not (SOURCE / room).is_dir()] == []


def test_a_planted_file_is_found(tmp_path):
    room = tmp_path / "src" / "solve"
    room.mkdir(parents=True)
    (room / "leap.py").touch()
    (room / "bound.py").touch()
    tests = tmp_path / "tests" / "solve"
    tests.mkdir(parents=True)
    (tests / "test_bound_far.py").touch()
    assert without_tests(tmp_path / "src", tmp_path) == ["solve/leap.py"]
