// Plotly is large, so it is loaded while the server builds the page.
(function () {
  var regroup = window.regroup;
  var path = document.querySelector("link[rel=preload][as=script]").getAttribute("href");

  regroup.callback("draw", function () {
    if (window.Plotly || document.querySelector('script[src="' + path + '"]')) {
      return;
    }
    var script = document.createElement("script");
    script.src = path;
    // Figures are never sent to Plotly's servers, whatever their configuration.
    script.onload = function () {
      window.Plotly.setPlotConfig({ plotlyServerURL: "", showSendToCloud: false });
    };
    document.head.appendChild(script);
  });
})();
