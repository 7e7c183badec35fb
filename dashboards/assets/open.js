// A click on a point of a figure opens what the point stands for. It waits for a second click, which undoes a zoom.
(function () {
  var regroup = window.regroup;
  var SECOND_CLICK = 300;
  var PAGES = ["/group?", "/rebalance?", "/storms?", "/causes?"];
  var presses = 0;

  document.addEventListener(
    "mousedown",
    function (event) {
      presses = event.detail;
    },
    true
  );

  // The address of the clicked point, or else of its row (`links`: address by row); null if it is not of these pages.
  function target(click, links) {
    var point = click && click.points && click.points[0];
    if (!point) {
      return null;
    }
    var custom = point.customdata;
    var href = Array.isArray(custom) ? custom[custom.length - 1] : links && links[point.y];
    var known = PAGES.some(function (page) {
      return typeof href === "string" && href.startsWith(page);
    });
    return known ? href : null;
  }

  regroup.callback("open", function (_, links) {
    var triggered = window.dash_clientside.callback_context.triggered[0];
    var href = target(triggered && triggered.value, links[0]);
    if (href) {
      window.setTimeout(function () {
        if (presses < 2) {
          regroup.follow(href);
        }
      }, SECOND_CLICK);
    }
  });

  regroup.target = target;
})();
