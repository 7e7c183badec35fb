// Plotly is large: it is run while the server makes the page, so that neither waits for the other.
(function () {
  var regroup = window.regroup;
  var path = document.querySelector("link[rel=preload][as=script]").getAttribute("href");

  regroup.callback("draw", function () {
    if (window.Plotly || document.querySelector('script[src="' + path + '"]')) {
      return;
    }
    var script = document.createElement("script");
    script.src = path;
    // No figure is sent anywhere, whatever it is drawn with.
    script.onload = function () {
      window.Plotly.setPlotConfig({ plotlyServerURL: "", showSendToCloud: false });
    };
    document.head.appendChild(script);
  });
})();
