"""The command `epszero`: thin files over the public names, one per command."""

from epszero.cli.app import app as app
from epszero.cli.app import main as main
