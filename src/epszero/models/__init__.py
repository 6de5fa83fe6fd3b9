"""Ready-made games: each function returns a problem that `ez.solve` takes and that can draw its own solutions."""

from epszero.models._fleet import Fleet as Fleet
from epszero.models._link_bands import LinkBands as LinkBands
from epszero.models._network import Edge as Edge
from epszero.models.cournot import Firms as Firms
from epszero.models.cournot import cournot as cournot
from epszero.models.ev_charging import ev_charging as ev_charging
from epszero.models.routing import Traffic as Traffic
from epszero.models.routing import routing as routing
from epszero.models.schedules import charging_at_once as charging_at_once
from epszero.models.schedules import cheapest_charging as cheapest_charging
from epszero.models.schedules import equally_cheap as equally_cheap
from epszero.models.schedules import even_charging as even_charging
from epszero.models.schedules import most_together as most_together
from epszero.models.traffic import TrafficModel as TrafficModel
from epszero.models.traffic import traffic as traffic
from epszero.models.zero_sum import zero_sum as zero_sum
