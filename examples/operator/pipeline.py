"""What a nightly job does with a certificate: take the new order if it is sure enough, else keep the old one.

    epszero certify … --json > certificate.json
    python examples/operator/pipeline.py

It reads certificate.json, recomputes it from the model and the data, and prints the order or why there is none. Nothing
of this needs more than the public names.
"""

import importlib.util
import json
import sys
from pathlib import Path

import epszero as ez

HERE = Path(__file__).parent
ENOUGH = 3.0  # crates: no product may be further from the truth than that, nor all of them together


def model():
    """The problem of stock.py."""
    spec = importlib.util.spec_from_file_location("stock", HERE / "stock.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.orders


def main() -> int:
    """Decide."""
    record = Path("certificate.json").read_text(encoding="utf-8")
    demand = ez.Samples.from_csv(HERE / "demand.csv", support=ez.sets.Box(0.0, 60.0))
    checked = ez.verify(record, model(), demand)
    if not checked:
        print(f"The record is not what the data say. {checked}")
        return 1
    told = json.loads(record)
    if told["verdict"] not in ("guaranteed", "conditional") or told["distance"] > ENOUGH:
        print(f"Not sure enough: {told['verdict']}, within {told['distance']} crates. The old order stays.")
        return 1
    certificate = ez.Certificate.from_json(record)
    print("Order", ", ".join(f"{crates:.1f}" for crates in certificate.x), "crates;")
    print(f"with 95 % confidence that is within {certificate.distance:.2f} crates of the best order, and at most")
    print(f"{certificate.cost_gap:.2f} € a day dearer.")
    return 0


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
