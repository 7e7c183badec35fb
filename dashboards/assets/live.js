// Updates: shows when they are paused, late or missing, so that old data never looks current.
(function () {
  var regroup = window.regroup;
  var SOON = 1000;
  var LONG = 5000;
  var SILENT = 20000;
  var paused = false;
  var heard = Date.now();
  var asked = null;

  function say(id, text) {
    var place = document.getElementById(id);
    if (place && place.textContent !== text) {
      place.textContent = text;
    }
  }

  function since() {
    return regroup.instant(Date.now()).slice(11, 19) + " " + regroup.zone();
  }

  function told() {
    var button = document.querySelector("[data-key=p]");
    button.textContent = paused ? "Resume" : "Pause";
    button.setAttribute("aria-pressed", String(paused));
    document.documentElement.toggleAttribute("data-paused", paused);
    say("paused", paused ? "paused at " + since() : "");
  }

  // Pausing stops only the periodic updates. A followed link still shows its page.
  function pause() {
    paused = !paused;
    heard = Date.now();
    window.dash_clientside.set_props("tick", { disabled: paused });
    told();
  }

  document.addEventListener("click", function (event) {
    if (event.target.closest && event.target.closest("[data-key=p]")) {
      pause();
    }
  });
  ["popstate", "_dashprivate_pushstate"].forEach(function (name) {
    window.addEventListener(name, function () {
      if (paused) {
        told();
      }
    });
  });

  function button(text, parent, run) {
    var made = regroup.make("button", { type: "button", className: "button", textContent: text }, parent);
    made.addEventListener("click", run);
  }

  // If a page does not arrive, say so after one second, and offer a retry after five.
  function wait(answer) {
    var place = document.getElementById("loading");
    asked = answer.hasAttribute("data-dash-is-loading") ? asked || Date.now() : null;
    var lasts = asked ? Date.now() - asked : 0;
    if (lasts < SOON) {
      place.textContent = "";
    } else if (!place.firstChild) {
      regroup.make("span", { textContent: "Loading the page…" }, place);
    } else if (lasts >= LONG && !place.querySelector("button")) {
      button("Try again", place, function () {
        window.location.reload();
      });
      button("Back", place, function () {
        window.history.back();
      });
    }
  }

  function listen() {
    if (paused || document.hidden) {
      heard = Date.now();
    }
    var silent = Date.now() - heard > SILENT;
    document.documentElement.toggleAttribute("data-silent", silent);
    say("silent", silent ? "No response for " + Math.round((Date.now() - heard) / 1000) + " s: this page may be out of date." : "");
  }

  regroup.atStart(function () {
    // Changes with every page, and with every update that finds nothing new.
    var answer = document.getElementById("freshness");
    new MutationObserver(function () {
      heard = Date.now();
      listen();
    }).observe(answer, { subtree: true, attributes: true, attributeFilter: ["data-asked"], childList: true });
    window.setInterval(function () {
      wait(answer);
      listen();
    }, SOON / 4);
  });
})();
