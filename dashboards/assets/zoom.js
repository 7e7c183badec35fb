// Zoom and pan: dragging over a figure, double-clicking and the keys change the range in the address, for all figures.
// A line at the pointer's time crosses every figure of the page.
(function () {
  var regroup = window.regroup;
  var LAST = 1000;
  var NEAR = 1000;
  var CLICK_PX = 4;
  var moved = 0;
  var pressed = null;

  // A figure's x axis holds timestamps, or values that its `meta` converts.
  function scale(graph) {
    var meta = graph._fullLayout.meta || {};
    return meta.scale ? { origin: meta.origin, factor: meta.scale } : { origin: 0, factor: 1 };
  }

  function toInstant(graph, x) {
    var of = scale(graph);
    return of.origin + graph._fullLayout.xaxis.r2l(x) / of.factor;
  }

  // Every zoom stores the previous view, and a double click goes back to it.
  function zoomed(start, end) {
    var before = (window.history.state && window.history.state.before) || [];
    regroup.show(start, end, { before: before.concat([window.location.search]) });
  }

  function back() {
    var before = (window.history.state && window.history.state.before) || [];
    var view = regroup.view();
    if (before.length) {
      var search = before[before.length - 1];
      regroup.follow(window.location.pathname + search, { before: before.slice(0, -1) });
    } else if (view) {
      regroup.go(view.whole ? { zoom: null } : { from: "all", to: null });
    }
  }

  // Returns the duration of a bar from its data point.
  function lengthOf(point) {
    return point.data.x[point.pointNumber];
  }

  function attend(graph) {
    graph.regroup = true;
    graph.on("plotly_relayout", function (change) {
      var range = change["xaxis.range"] || [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (range[0] !== undefined && range[1] !== undefined) {
        zoomed(toInstant(graph, range[0]), toInstant(graph, range[1]));
      }
    });
    graph.on("plotly_hover", function (event) {
      var point = event.points[0];
      var from = point.base === undefined ? point.x : point.base;
      var of = scale(graph);
      var start = of.origin + graph._fullLayout.xaxis.r2l(from) / of.factor;
      var length = point.base === undefined ? 0 : lengthOf(point) / of.factor;
      regroup.focus = { start: start, end: start + length, path: window.location.pathname };
    });
  }

  function figures() {
    return Array.prototype.filter.call(document.querySelectorAll("#page .js-plotly-plot"), function (graph) {
      return graph._fullLayout && graph._fullLayout.xaxis;
    });
  }

  function line(graph) {
    var figure = graph.closest("figure");
    var found = figure.querySelector(":scope > .crosshair");
    if (!found) {
      found = regroup.make("div", { className: "crosshair" }, figure);
      found.appendChild(document.createElement("span"));
    }
    return found;
  }

  function clear() {
    document.querySelectorAll(".crosshair").forEach(function (each) {
      each.hidden = true;
    });
  }

  function cross(exact, under, finest) {
    var at = Math.round(exact);
    figures().forEach(function (graph) {
      var axis = graph._fullLayout.xaxis;
      var of = scale(graph);
      var x = axis.l2p((at - of.origin) * of.factor);
      var drawn = line(graph);
      drawn.hidden = !(x >= 0 && x <= axis._length);
      drawn.style.left = axis._offset + x + "px";
      drawn.style.top = graph._fullLayout._size.t + "px";
      drawn.style.height = graph._fullLayout._size.h + "px";
      drawn.dataset.at = at;
      drawn.firstChild.textContent =
        graph === under ? regroup.instant(at).slice(0, finest < 1000 ? 23 : 19) + " " + regroup.zone() : "";
      drawn.classList.toggle("late", x > axis._length / 2);
    });
  }

  regroup.toInstant = toInstant;
  regroup.uncross = clear;

  // Draws the line at a time, with its text in one figure, by default the first.
  regroup.cross = function (at, under) {
    cross(at, under || figures()[0], 1);
  };

  // The time under the pointer, with the figure; null outside figures.
  function pointed(event) {
    var graph = event.target.closest && event.target.closest("#page .js-plotly-plot");
    if (!graph || !graph._fullLayout || !graph._fullLayout.xaxis) {
      return null;
    }
    if (!graph.regroup) {
      attend(graph);
    }
    var axis = graph._fullLayout.xaxis;
    var x = event.clientX - graph.getBoundingClientRect().left - axis._offset;
    if (x < 0 || x > axis._length) {
      return null;
    }
    var of = scale(graph);
    return {
      graph: graph,
      at: of.origin + axis.p2l(x) / of.factor,
      finest: Math.abs(axis.p2l(1) - axis.p2l(0)) / of.factor,
    };
  }

  document.addEventListener(
    "pointermove",
    function (event) {
      var found = pointed(event);
      regroup.pointed = found && found.at;
      if (found) {
        cross(found.at, found.graph, found.finest);
      } else {
        clear();
      }
    },
    true
  );
  document.addEventListener("pointerdown", pointed, true);

  // A double click is the browser's dblclick event, by the system's setting. Plotly measures the time when it handles
  // the clicks, and would miss the second one while it draws.
  document.addEventListener(
    "mousedown",
    function (event) {
      pressed = event.button === 0 && event.detail === 2 && pointed(event) ? event : null;
    },
    true
  );
  document.addEventListener(
    "mouseup",
    function (event) {
      if (pressed && Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) < CLICK_PX) {
        back();
      }
      pressed = null;
    },
    true
  );

  var MOVES = {
    w: function (view, at) {
      return [at - (at - view.start) / 2, at + (view.end - at) / 2];
    },
    s: function (view, at) {
      return [at - (at - view.start) * 2, at + (view.end - at) * 2];
    },
    a: function (view) {
      return [view.start - (view.end - view.start) / 4, view.end - (view.end - view.start) / 4];
    },
    d: function (view) {
      return [view.start + (view.end - view.start) / 4, view.end + (view.end - view.start) / 4];
    },
    f: function (view) {
      var on = regroup.focus;
      if (!on || on.path !== window.location.pathname) {
        return null;
      }
      var around = Math.max((on.end - on.start) / 3, NEAR);
      return [on.start - around, on.end + around];
    },
  };

  document.addEventListener("click", function (event) {
    var button = event.target.closest && event.target.closest("[data-key]");
    var move = button && MOVES[button.dataset.key];
    var view = move && regroup.view();
    if (!view) {
      return;
    }
    var at = regroup.pointed > view.start && regroup.pointed < view.end ? regroup.pointed : (view.start + view.end) / 2;
    var span = move(view, at);
    if (!span) {
      return;
    }
    // Holding a key down makes one history entry.
    var repeated = event.timeStamp - moved < LAST;
    moved = event.timeStamp;
    regroup.show(span[0], span[1], window.history.state, repeated);
  });

  regroup.clear = clear;
})();
