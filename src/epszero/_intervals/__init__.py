"""Rigorous enclosures of what traced functions return while their inputs range over boxes."""

from epszero._intervals.arithmetic import Interval as Interval
from epszero._intervals.arithmetic import NoEnclosure as NoEnclosure
from epszero._intervals.enclosed import Enclosed as Enclosed
from epszero._intervals.enclosed import without_custom_rules as without_custom_rules
