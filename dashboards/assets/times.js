// The zone of all times, and the dialog for typing a range. Only the browser knows the reader's zone.
(function () {
  var regroup = window.regroup;
  var DAY = 86400000;

  regroup.zone = function () {
    var zone = new URLSearchParams(window.location.search).get("tz");
    try {
      return new Intl.DateTimeFormat("en", { timeZone: zone || "UTC" }).resolvedOptions().timeZone && (zone || "UTC");
    } catch (unknown) {
      return "UTC"; // as on the server
    }
  };

  // Returns a timestamp as `2026-11-21 12:03:07.123`, in local time of the zone.
  regroup.instant = function (ms) {
    var parts = {};
    new Intl.DateTimeFormat("en-GB", {
      timeZone: regroup.zone(),
      year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
      hourCycle: "h23",
    })
      .formatToParts(new Date(ms))
      .forEach(function (part) {
        parts[part.type] = part.value;
      });
    var rest = String(((Math.floor(ms) % 1000) + 1000) % 1000).padStart(3, "0");
    return (
      parts.year.padStart(4, "0") + "-" + parts.month + "-" + parts.day + " " +
      parts.hour + ":" + parts.minute + ":" + parts.second + "." + rest
    );
  };

  function toggle() {
    var here = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (regroup.zone() !== "UTC") {
      regroup.go({ tz: null });
    } else if (!here || here === "UTC") {
      regroup.notify("This browser's own zone is UTC.");
    } else {
      regroup.go({ tz: here });
    }
  }

  function label() {
    var button = document.querySelector("[data-key=u]");
    if (button) {
      button.textContent = regroup.zone();
    }
  }

  function field(form, name, text, ms) {
    var label = regroup.make("label", { textContent: text + " (" + regroup.zone() + ") " }, form);
    var input = regroup.make("input", { type: "datetime-local", name: name, required: true, step: 1 }, label);
    input.value = regroup.instant(ms).replace(" ", "T").slice(0, 19);
    return input;
  }

  // A plain form that sets the address: the server handles local times of the zone better than a browser.
  function choose() {
    var view = regroup.view();
    if (!view || view.whole) {
      return;
    }
    regroup.dialog("choose", "Time range", function (dialog) {
      var form = regroup.make("form", { method: "dialog" }, dialog);
      var from = field(form, "from", "From", view.start);
      // With a range typed to the second, the fields must include seconds.
      var to = field(form, "to", "To", Math.ceil(view.end / 1000) * 1000);
      var around = regroup.make("button", { type: "button", className: "button", textContent: "30 min around" }, form);
      around.title = "From 30 minutes before “From” to 30 minutes after “To”";
      regroup.make("button", { className: "button loud", textContent: "Show" }, form);
      function check() {
        to.setCustomValidity(from.value < to.value ? "" : "“To” must be after “From”.");
      }
      function moved(input, by) {
        // The fields hold local times; arithmetic on them is done as if they were UTC.
        input.value = new Date(Date.parse(input.value + "Z") + by).toISOString().slice(0, 19);
      }
      around.addEventListener("click", function () {
        moved(from, -DAY / 48);
        moved(to, DAY / 48);
        check();
      });
      from.addEventListener("input", check);
      to.addEventListener("input", check);
      form.addEventListener("submit", function () {
        regroup.go({ from: from.value, to: to.value });
      });
    });
  }

  document.addEventListener("click", function (event) {
    var button = event.target.closest && event.target.closest("[data-key]");
    if (button && button.dataset.key === "u") {
      toggle();
    } else if (button && button.dataset.key === "r") {
      choose();
    }
  });
  window.addEventListener("popstate", label);
  window.addEventListener("_dashprivate_pushstate", label);
  regroup.atStart(label);
})();
