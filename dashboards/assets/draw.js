// Plotly is large, so it is loaded while the server builds the page.
(function () {
  var regroup = window.regroup;
  var path = document.querySelector("link[rel=preload][as=script]").getAttribute("href");

  regroup.callback("draw", function () {
    if (window.Plotly) {
      return;
    }
    // The figures of Dash wait for what is here, and load all of Plotly themselves if nothing is. The script replaces it.
    window.Plotly = new Promise(function (resolve, reject) {
      var script = document.createElement("script");
      script.src = path;
      script.onload = function () {
        // Figures are never sent to Plotly's servers, whatever their configuration.
        window.Plotly.setPlotConfig({ plotlyServerURL: "", showSendToCloud: false });
        resolve();
      };
      script.onerror = reject;
      document.head.appendChild(script);
    });
  });
})();
