// A figure that has the focus can be read with the keyboard: the arrows go from mark to mark, Enter opens one.
(function () {
  var regroup = window.regroup;
  var HINT = "Left and right arrow keys read this figure. Enter opens what was read, if it is a link.";
  var read = null;

  // Plotly's markup as text. A parsed document runs and loads nothing.
  function plain(markup) {
    var lines = String(markup).replace(/<br>/g, "\n");
    return new DOMParser().parseFromString(lines, "text/html").body.textContent.split("\n").join(" · ");
  }

  function isMark(custom) {
    return Array.isArray(custom) && typeof custom[0] === "string" && custom[0] !== "";
  }

  // The cells of a heatmap in which something happened.
  function cells(trace, add) {
    trace.customdata.forEach(function (row, y) {
      row.forEach(function (tip, x) {
        if (trace.z[y][x] > 0) {
          add(trace.x0 + x * trace.dx, tip, null);
        }
      });
    });
  }

  // The marks of a figure in order of time: what is drawn with an explanation, and the flags.
  function marks(graph) {
    var found = [];
    var seen = new Set();
    function add(x, tip, href) {
      if (!seen.has(tip + x)) {
        seen.add(tip + x);
        found.push({ at: regroup.toInstant(graph, x), tip: tip, href: href });
      }
    }
    graph.data.forEach(function (trace) {
      if (trace.visible === false || !Array.isArray(trace.customdata)) {
        return;
      }
      if (trace.type === "heatmap") {
        cells(trace, add);
        return;
      }
      trace.customdata.forEach(function (custom, at) {
        // The pieces of one bar have the same explanation; the first one begins it.
        if (isMark(custom) && !(at && isMark(trace.customdata[at - 1]) && trace.customdata[at - 1][0] === custom[0])) {
          add((trace.base || trace.x)[at], custom[0], regroup.target({ points: [{ customdata: custom }] }));
        }
      });
    });
    (graph.layout.annotations || []).forEach(function (flag) {
      if (flag.hovertext && flag.xref !== "paper") {
        add(flag.x, flag.hovertext, null);
      }
    });
    return found.sort(order);
  }

  // Marks of one time are ordered by their explanations, of which no two are equal.
  function order(one, other) {
    return one.at - other.at || (one.tip === other.tip ? 0 : one.tip < other.tip ? -1 : 1);
  }

  // The position of the mark to read next. The figure may have changed since the last one.
  function position(all, key) {
    var last = all.length - 1;
    if (key === "Home" || (key === "ArrowRight" && read === null)) {
      return 0;
    }
    if (key === "End" || read === null) {
      return last;
    }
    var before = all.filter(function (mark) {
      return order(mark, read) < 0;
    }).length;
    if (key === "ArrowLeft") {
      return Math.max(before - 1, 0);
    }
    var isThere = before <= last && order(all[before], read) === 0;
    return Math.min(before + (isThere ? 1 : 0), last);
  }

  function status(figure) {
    var line = figure.querySelector(":scope > .read");
    if (!line) {
      line = regroup.make("p", { className: "read" }, figure);
      line.setAttribute("role", "status");
    }
    return line;
  }

  function figureOf(event) {
    return event.target.matches && event.target.matches("#page figure") ? event.target : null;
  }

  document.addEventListener("focusin", function (event) {
    if (figureOf(event)) {
      read = null;
      status(event.target).textContent = HINT;
    }
  });

  document.addEventListener("focusout", function (event) {
    if (figureOf(event)) {
      status(event.target).remove();
      regroup.uncross();
    }
  });

  document.addEventListener("keydown", function (event) {
    var figure = figureOf(event);
    var graph = figure && figure.querySelector(".js-plotly-plot");
    if (!graph || !graph._fullLayout || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.key === "Enter" && read && read.href) {
      regroup.follow(read.href);
    } else if (["ArrowRight", "ArrowLeft", "Home", "End"].indexOf(event.key) >= 0) {
      var all = marks(graph);
      event.preventDefault();
      if (all.length) {
        var at = position(all, event.key);
        read = all[at];
        status(figure).textContent = at + 1 + " of " + all.length + ": " + plain(read.tip);
        regroup.cross(read.at, graph);
      }
    }
  });
})();
