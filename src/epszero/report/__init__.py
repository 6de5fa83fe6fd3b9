"""Text, figures and pages for people: what the outer rooms draw and write with."""

from epszero.report.charging import Charging as Charging
from epszero.report.charging import charging_page as charging_page
from epszero.report.files import WRITING as WRITING
from epszero.report.files import write_file as write_file
from epszero.report.pictures import error_bars as error_bars
from epszero.report.pictures import note as note
from epszero.report.pictures import with_bands as with_bands
from epszero.report.report import Page as Page
from epszero.report.report import report as report
from epszero.report.saved import load as load
from epszero.report.style import BLUE as BLUE
from epszero.report.style import COLOURS as COLOURS
from epszero.report.style import FORMS as FORMS
from epszero.report.style import GREEN as GREEN
from epszero.report.style import GREY as GREY
from epszero.report.style import ORANGE as ORANGE
from epszero.report.style import PURPLE as PURPLE
from epszero.report.style import RED as RED
from epszero.report.style import SKY as SKY
from epszero.report.style import SPREAD as SPREAD
from epszero.report.style import beside as beside
from epszero.report.style import drawn as drawn
from epszero.report.style import figure as figure
from epszero.report.style import tidy as tidy
from epszero.report.style import whole as whole
from epszero.report.words import bound as bound
