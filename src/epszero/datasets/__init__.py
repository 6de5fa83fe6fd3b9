"""Prices: ten years of the Dutch day-ahead market inside the package, and readers for a user's own."""

from epszero.datasets._inputs import Form as Form
from epszero.datasets._inputs import Options as Options
from epszero.datasets._prices import Prices as Prices
from epszero.datasets.api import fetch_entsoe as fetch_entsoe
from epszero.datasets.dutch import day_ahead_prices as day_ahead_prices
from epszero.datasets.dutch import dutch_prices as dutch_prices
from epszero.datasets.fleets import FleetTable as FleetTable
from epszero.datasets.fleets import read_fleet as read_fleet
from epszero.datasets.readers import read_ember as read_ember
from epszero.datasets.readers import read_entsoe as read_entsoe
from epszero.datasets.readers import read_prices as read_prices
