// Updates: shows when they are paused, late or missing, so that old data never looks current.
(function () {
  var regroup = window.regroup;
  var SOON = 1000;
  var LONG = 5000;
  var SILENT = 20000;
  var paused = false;
  var respondedAt = Date.now();
  var waitingSince = null;

  function setText(id, text) {
    var element = document.getElementById(id);
    if (element && element.textContent !== text) {
      element.textContent = text;
    }
  }

  function since() {
    return regroup.instant(Date.now()).slice(11, 19) + " " + regroup.zone();
  }

  function showPause() {
    var button = document.querySelector("[data-key=p]");
    button.textContent = paused ? "Resume" : "Pause";
    button.setAttribute("aria-pressed", String(paused));
    document.documentElement.toggleAttribute("data-paused", paused);
    setText("paused", paused ? "paused at " + since() : "");
  }

  // Pausing stops only the periodic updates. A followed link still shows its page.
  function pause() {
    paused = !paused;
    respondedAt = Date.now();
    window.dash_clientside.set_props("tick", { disabled: paused });
    showPause();
  }

  document.addEventListener("click", function (event) {
    if (event.target.closest && event.target.closest("[data-key=p]")) {
      pause();
    }
  });
  ["popstate", "_dashprivate_pushstate"].forEach(function (name) {
    window.addEventListener(name, function () {
      if (paused) {
        showPause();
      }
    });
  });

  function button(text, parent, run) {
    var made = regroup.make("button", { type: "button", className: "button", textContent: text }, parent);
    made.addEventListener("click", run);
  }

  // If a page does not arrive, say so after one second, and offer a retry after five.
  function wait(answer) {
    var element = document.getElementById("loading");
    waitingSince = answer.hasAttribute("data-dash-is-loading") ? waitingSince || Date.now() : null;
    var waited = waitingSince ? Date.now() - waitingSince : 0;
    if (waited < SOON) {
      element.textContent = "";
    } else if (!element.firstChild) {
      regroup.make("span", { textContent: "Loading the page…" }, element);
    } else if (waited >= LONG && !element.querySelector("button")) {
      button("Try again", element, function () {
        window.location.reload();
      });
      button("Back", element, function () {
        window.history.back();
      });
    }
  }

  function listen() {
    if (paused || document.hidden) {
      respondedAt = Date.now();
    }
    var silent = Date.now() - respondedAt > SILENT;
    document.documentElement.toggleAttribute("data-silent", silent);
    setText("silent", silent ? "No response for " + Math.round((Date.now() - respondedAt) / 1000) + " s: this page may be out of date." : "");
  }

  regroup.atStart(function () {
    // Changes with every page, and with every update that finds nothing new.
    var answer = document.getElementById("freshness");
    new MutationObserver(function () {
      respondedAt = Date.now();
      listen();
    }).observe(answer, { subtree: true, attributes: true, attributeFilter: ["data-asked"], childList: true });
    window.setInterval(function () {
      wait(answer);
      listen();
    }, SOON / 4);
  });
})();
