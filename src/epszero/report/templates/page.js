// Two sliders read a table that the page carries; a button saves the certificate's record. Without this all stays readable.
(function () {
  "use strict";
  var byId = function (id) { return document.getElementById(id); };

  var short = function (value) {
    if (value === null) { return "no bound"; }
    var size = Math.abs(value);
    if (value !== 0 && (size < 1e-4 || size >= 1e7)) { return value.toExponential(2); }
    return value.toLocaleString("en", { maximumSignificantDigits: 4 }).replace(/,/g, "\u202f");
  };

  var forecast = function () {
    var table = JSON.parse(byId("forecast-numbers").textContent);
    var delta = byId("delta"), size = byId("size"), chart = byId("forecast-chart");
    var line = chart.querySelector("path.line"), chosen = chart.querySelector(".chosen");
    var dots = Array.prototype.slice.call(chart.querySelectorAll("circle:not(.chosen)"));

    var show = function () {
      var d = delta ? Number(delta.value) : table.own, s = size ? Number(size.value) : table.here;
      var risk = table.deltas[d], samples = table.sizes[s], values = table.values[s][d];
      var said = table.shown.map(function (name, i) { return name + (values[i] === null ? ": " : " ≤ ") + short(values[i]); });
      byId("now").textContent = said.join(", ");
      var sure = short(100 * (1 - risk)) + " % confidence, " + short(samples) + " samples";
      byId("what").textContent = s !== table.here ? sure + ": " + table.how[s] + "."
        : d === table.own ? sure + ": the certificate of this page."
        : sure + ": a certificate if this δ was fixed before the data were looked at.";
      if (delta) { delta.setAttribute("aria-valuetext", "δ = " + short(risk) + ", confidence " + short(100 * (1 - risk)) + " %"); }
      if (size) { size.setAttribute("aria-valuetext", short(samples) + " samples, " + table.how[s]); }
      draw(d, s);
    };

    var draw = function (d, s) {
      var points = [];
      table.x.forEach(function (x, i) { if (table.y[i][d] !== null) { points.push(x + " " + table.y[i][d]); } });
      line.setAttribute("d", points.length ? "M" + points.join("L") : "");
      var drawn = 0;
      table.x.forEach(function (x, i) {
        if (table.y[i][table.own] === null) { return; }
        var dot = dots[drawn++], y = table.y[i][d];
        dot.style.display = y === null ? "none" : "";
        if (y !== null) { dot.setAttribute("cy", y); }
      });
      if (!chosen) { return; }
      chosen.style.display = table.y[s][d] === null ? "none" : "";
      if (table.y[s][d] !== null) {
        chosen.setAttribute("cx", table.x[s]);
        chosen.setAttribute("cy", table.y[s][d]);
      }
    };

    [delta, size].forEach(function (one) { if (one) { one.addEventListener("input", show); } });
    byId("controls").hidden = false;
    show();
  };

  var saving = function () {
    var button = byId("save");
    button.hidden = false;
    button.addEventListener("click", function () {
      var text = JSON.stringify(JSON.parse(byId("certificate-record").textContent), null, 1);
      var link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
      link.download = "certificate.json";
      link.click();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
    });
  };

  if (byId("controls")) { forecast(); }
  if (byId("save")) { saving(); }
})();
