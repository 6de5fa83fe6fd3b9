"""What a nightly job does with a certificate: take the new order if it is sure enough, else keep the old one.

    python examples/operator/pipeline.py

It solves and certifies the model of stock.py on demand.csv. Where the order is sure enough, it is printed, and
certificate.json is written, which `ez.verify` recomputes whenever somebody asks; else it says why not, and ends with 1.
"""

import importlib.util
import sys
from pathlib import Path

import epszero as ez

HERE = Path(__file__).parent
ENOUGH = 3.0  # crates: the order may be that far from the best one, all products together


def model() -> ez.Minimization:
    """The problem of stock.py."""
    spec = importlib.util.spec_from_file_location("stock", HERE / "stock.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.orders


def main() -> int:
    """Decide."""
    demand = ez.Samples.from_csv(HERE / "demand.csv", support=ez.sets.Box(0.0, 60.0))
    solution = ez.solve(model(), demand)
    certificate = ez.certify(solution)
    if certificate.verdict not in ("guaranteed", "conditional"):
        print(f"Not sure at all, so the old order stays: {certificate.verdict}. {certificate.reason}")
        return 1
    if certificate.distance is None or certificate.distance > ENOUGH:
        print(f"Not sure enough, so the old order stays: within {certificate.distance} crates.")
        return 1
    Path("certificate.json").write_text(certificate.to_json(), encoding="utf-8")
    print("Order", ", ".join(f"{crates:.1f}" for crates in solution.x), "crates;")
    print(f"with 95 % confidence that is within {certificate.distance:.2f} crates of the best order,")
    print(f"and at most {certificate.cost_gap:.3f} € a day dearer.")
    return 0


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
