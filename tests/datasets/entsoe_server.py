"""A server on loopback that answers like the Transparency Platform: documents of type A44, or an acknowledgement."""

import contextlib
import datetime
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

NONE = """<?xml version="1.0" encoding="UTF-8"?>
<Acknowledgement_MarketDocument xmlns="urn:iec62325.351:tc57wg16:451-1:acknowledgementdocument:7:0">
  <mRID>0</mRID>
  <Reason><code>999</code><text>No matching data found for Data item Day-ahead Prices [12.1.D]</text></Reason>
</Acknowledgement_MarketDocument>"""


def document(*series: str) -> str:
    inner = "\n".join(series)
    return f"""<?xml version="1.0" encoding="utf-8"?>
<Publication_MarketDocument xmlns="urn:iec62325.351:tc57wg16:451-3:publicationdocument:7:3">
  <mRID>1</mRID><type>A44</type>
  {inner}
</Publication_MarketDocument>"""


def series(start: str, prices: dict[int, float] | list[float], minutes: int = 60, *, count: int | None = None,
           money: str = "EUR", curve: str = "A03") -> str:  # fmt: skip
    """One TimeSeries from `start` (UTC, minutes); with curve A03 a position that is left out repeats the one before."""
    points = dict(enumerate(prices, 1)) if isinstance(prices, list) else prices
    begin = datetime.datetime.fromisoformat(start)
    end = begin + datetime.timedelta(minutes=minutes * (count or len(points)))
    inner = "".join(
        f"<Point><position>{place}</position><price.amount>{price}</price.amount></Point>"
        for place, price in points.items()
    )
    return f"""<TimeSeries><mRID>1</mRID><businessType>A62</businessType>
  <in_Domain.mRID codingScheme="A01">10YNL----------L</in_Domain.mRID>
  <currency_Unit.name>{money}</currency_Unit.name><price_Measure_Unit.name>MWH</price_Measure_Unit.name>
  <curveType>{curve}</curveType>
  <Period><timeInterval><start>{begin:%Y-%m-%dT%H:%MZ}</start><end>{end:%Y-%m-%dT%H:%MZ}</end></timeInterval>
  <resolution>PT{minutes}M</resolution>{inner}</Period></TimeSeries>"""


@contextlib.contextmanager
def serving(answer):
    """`answer(query)` gives (status, text); yields the address and the list of queries that came."""
    queries = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            query = {name: values[0] for name, values in parse_qs(urlparse(self.path).query).items()}
            queries.append(query)
            status, text = answer(query)
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/api", queries
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
