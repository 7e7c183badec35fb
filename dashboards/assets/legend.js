// A click on a style in a legend hides it in the figures of the same panel, another one shows it again.
(function () {
  function hidden(panel) {
    return Array.prototype.map.call(panel.querySelectorAll('.legend button[aria-pressed="false"]'), function (button) {
      return button.dataset.style;
    });
  }

  function apply(panel) {
    var off = hidden(panel);
    panel.querySelectorAll(".js-plotly-plot").forEach(function (graph) {
      if (!graph.data) {
        return;
      }
      if (!graph.hasLegend) {
        graph.hasLegend = true;
        // An update of the page draws all traces again.
        graph.on("plotly_afterplot", function () {
          apply(panel);
        });
      }
      [true, false].forEach(function (isShown) {
        var changed = [];
        graph.data.forEach(function (trace, at) {
          var style = trace.meta && trace.meta.style;
          if (style && (trace.visible !== false) !== isShown && (off.indexOf(style) < 0) === isShown) {
            changed.push(at);
          }
        });
        if (changed.length) {
          window.Plotly.restyle(graph, { visible: isShown }, changed);
        }
      });
    });
  }

  document.addEventListener("click", function (event) {
    var button = event.target.closest && event.target.closest(".legend button");
    if (button) {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "true" ? "false" : "true");
      apply(button.closest(".panel"));
    }
  });
})();
