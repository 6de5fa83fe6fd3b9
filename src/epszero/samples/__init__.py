"""What the data are: samples, their support, and how to read them from files."""

from epszero.samples._inside import inside_support as inside_support
from epszero.samples._samples import Samples as Samples
from epszero.samples.tables import TextTable as TextTable
from epszero.samples.tables import read_table as read_table
from epszero.samples.tables import table_of as table_of
