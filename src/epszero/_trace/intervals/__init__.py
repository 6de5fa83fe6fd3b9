"""Rigorous enclosures of what traced functions return while their inputs range over boxes."""

from epszero._trace.intervals.arithmetic import Interval as Interval
from epszero._trace.intervals.arithmetic import NoEnclosure as NoEnclosure
from epszero._trace.intervals.enclosed import Enclosed as Enclosed
from epszero._trace.intervals.enclosed import without_custom_rules as without_custom_rules
