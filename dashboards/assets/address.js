// The address is the state: every change by the reader is written to the address, and the page follows it.
(function () {
  var regroup = (window.regroup = window.regroup || {});
  var SPANS = { m: 60000, h: 3600000, d: 86400000 };

  // Calls `run` when the layout around the pages exists.
  regroup.atStart = function (run) {
    new MutationObserver(function (_, observer) {
      if (document.getElementById("tools")) {
        observer.disconnect();
        run();
      }
    }).observe(document.documentElement, { childList: true, subtree: true });
  };

  // Clientside callbacks of Dash are registered under this name (dashboards/app.py).
  regroup.callback = function (name, run) {
    window.dash_clientside = window.dash_clientside || {};
    window.dash_clientside.regroup = window.dash_clientside.regroup || {};
    window.dash_clientside.regroup[name] = run;
  };

  function query() {
    return new URLSearchParams(window.location.search);
  }

  // `changes`: key → value; null removes the key. `state` is stored with the history entry.
  regroup.go = function (changes, state, replaces) {
    var now = query();
    Object.keys(changes).forEach(function (key) {
      if (changes[key] === null) {
        now.delete(key);
      } else {
        now.set(key, changes[key]);
      }
    });
    regroup.follow(window.location.pathname + (now.size ? "?" + now : ""), state, replaces);
  };

  regroup.follow = function (href, state, replaces) {
    window.history[replaces ? "replaceState" : "pushState"](state || {}, "", href);
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
  };

  function digits(text) {
    return /^[0-9]{1,15}$/.test(text || "") ? Number(text) : null;
  }

  // The visible span: from the address if it has one, since the page may be older than the address, else from the page.
  // `whole` is null on a page with a selectable range; on other pages it is the span of the page's subject.
  regroup.view = function () {
    var range = document.querySelector("#page .moves");
    if (!range) {
      return null;
    }
    var whole = range.dataset.whole && range.dataset.whole.split("-").map(Number);
    var zoom = (query().get("zoom") || "").split("-");
    var start = digits(whole ? zoom[0] : query().get("from"));
    var end = digits(whole ? zoom[1] : query().get("to"));
    if (start === null || end === null || start >= end) {
      start = whole ? whole[0] : Number(range.dataset.start);
      end = whole ? whole[1] : Number(range.dataset.end);
    }
    return { start: start, end: end, whole: whole || null };
  };

  // Show this span (milliseconds).
  regroup.show = function (start, end, state, replaces) {
    var view = regroup.view();
    var first = Math.max(0, Math.round(start));
    var last = Math.max(first + 1, Math.round(end));
    if (!view) {
      return;
    }
    if (!view.whole) {
      regroup.go({ from: first, to: last }, state, replaces);
    } else if (last - first >= view.whole[1] - view.whole[0]) {
      regroup.go({ zoom: null }, state, replaces);
    } else {
      regroup.go({ zoom: first + "-" + last }, state, replaces);
    }
  };

  // The address of the current view. A range that ends now is replaced by the fixed range that was shown.
  regroup.frozen = function () {
    var now = query();
    var view = regroup.view();
    var moving = /^now-([0-9]+)([mhd])$/.exec(now.get("from") || "");
    if (view && !view.whole) {
      now.set("from", view.start);
      now.set("to", view.end);
    } else if (moving) {
      var end = Date.now();
      now.set("from", end - Number(moving[1]) * SPANS[moving[2]]);
      now.set("to", end);
    }
    return window.location.origin + window.location.pathname + (now.size ? "?" + now : "");
  };
})();
