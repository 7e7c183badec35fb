// Theme switch, search, and the grid's cell renderers. Renderers pass text to React, which escapes it.
(function () {
  var regroup = window.regroup;
  var order = ["system", "light", "dark"];

  function current() {
    return document.documentElement.getAttribute("data-theme") || "system";
  }

  function label() {
    var button = document.querySelector("[data-key=t]");
    if (button) {
      button.textContent = "Theme: " + current();
    }
  }

  function next() {
    var choice = order[(order.indexOf(current()) + 1) % order.length];
    if (choice === "system") {
      document.documentElement.removeAttribute("data-theme");
    } else {
      document.documentElement.setAttribute("data-theme", choice);
    }
    try {
      window.localStorage.setItem("regroup-theme", choice);
    } catch (blocked) {
      // Without storage, the choice lasts for this page only.
    }
    label();
  }

  document.addEventListener("click", function (event) {
    if (event.target.closest && event.target.closest("[data-key=t]")) {
      next();
    }
  });

  function showResult(button, text) {
    button.textContent = text;
    window.setTimeout(function () {
      button.textContent = "Copy";
    }, 2000);
  }

  document.addEventListener("click", function (event) {
    var button = event.target.closest && event.target.closest("button.copy");
    var block = button && button.closest(".paste").querySelector("pre");
    if (block) {
      regroup.copy(block.textContent, block).then(function (done) {
        showResult(button, done ? "Copied" : "Select and copy by hand");
      });
    }
  });

  // The search is a plain HTML form that changes the address. Page updates therefore do not disturb the reader while
  // typing; a field controlled by React could be disturbed.
  function field(form, type, name) {
    var input = document.createElement("input");
    input.type = type;
    input.name = name;
    return form.appendChild(input);
  }

  function search(parent) {
    var form = parent.appendChild(document.createElement("form"));
    form.action = "/";
    form.method = "get";
    form.setAttribute("role", "search");
    var text = field(form, "search", "q");
    text.placeholder = "Search groups, hosts, topics";
    text.setAttribute("aria-label", "Search groups, hosts, members and topics");
    text.autocomplete = "off";
    text.dataset.key = "/";
    var kept = ["from", "to", "tz"].map(function (name) {
      return field(form, "hidden", name);
    });
    function follow() {
      var address = new URLSearchParams(window.location.search);
      text.value = address.get("q") || "";
      keep();
    }
    function keep() {
      kept.forEach(function (each) {
        each.value = new URLSearchParams(window.location.search).get(each.name) || "";
        each.disabled = !each.value;
      });
    }
    form.addEventListener("submit", keep);
    window.addEventListener("popstate", follow);
    window.addEventListener("_dashprivate_pushstate", follow);
    follow();
  }

  regroup.atStart(function () {
    search(document.getElementById("search"));
    label();
  });

  var functions = (window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {});

  function element() {
    return window.React.createElement.apply(null, arguments);
  }

  functions.RegroupLink = function (props) {
    // A row that is still being loaded has no data.
    if (!props.data) {
      return null;
    }
    var href = props.data.href;
    function go(event) {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) {
        return;
      }
      event.preventDefault();
      regroup.follow(href);
      window.scrollTo(0, 0);
    }
    return element("a", { href: href, onClick: go }, String(props.value));
  };

  functions.RegroupText = function (props) {
    if (!props.data) {
      return null;
    }
    return element("span", null, props.data[props.text]);
  };

  functions.RegroupState = function (props) {
    if (!props.data) {
      return null;
    }
    return element(
      "span",
      { className: "state", title: props.data.kafka_state },
      element("span", { className: "swatch " + props.data.style, "aria-hidden": "true" }),
      element("span", null, props.value)
    );
  };

  functions.RegroupEvidence = function (props) {
    if (!props.data) {
      return null;
    }
    return element("span", { className: "evidence " + props.value }, props.value);
  };
})();
