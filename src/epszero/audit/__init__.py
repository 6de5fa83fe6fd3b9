"""Which assumption holds, which is declared and which is violated, with evidence."""

from epszero.audit.audit import Audit as Audit
from epszero.audit.audit import audit as audit
from epszero.audit.findings import Assumption as Assumption
from epszero.audit.findings import Standing as Standing
