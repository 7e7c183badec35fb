// Theme switch, keyboard, search, and the grid's cell renderers. Renderers hand text to React, which escapes it.
(function () {
  var order = ["system", "light", "dark"];

  function current() {
    return document.documentElement.getAttribute("data-theme") || "system";
  }

  function label() {
    var button = document.getElementById("theme");
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
      // The choice then holds for this page only.
    }
    label();
  }

  document.addEventListener("click", function (event) {
    if (event.target.closest && event.target.closest("#theme")) {
      next();
    }
  });

  // Without a secure origin browsers have no clipboard, but copy what is selected.
  function copySelected(block) {
    var range = document.createRange();
    range.selectNodeContents(block);
    var selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    return document.execCommand("copy");
  }

  function told(button, text) {
    button.textContent = text;
    window.setTimeout(function () {
      button.textContent = "Copy";
    }, 2000);
  }

  document.addEventListener("click", function (event) {
    var button = event.target.closest && event.target.closest("button.copy");
    var block = button && button.closest(".paste").querySelector("pre");
    if (!block) {
      return;
    }
    if (!navigator.clipboard) {
      told(button, copySelected(block) ? "Copied" : "Select and copy by hand");
      return;
    }
    navigator.clipboard.writeText(block.textContent).then(
      function () {
        told(button, "Copied");
      },
      function () {
        told(button, copySelected(block) ? "Copied" : "Select and copy by hand");
      }
    );
  });

  document.addEventListener("keydown", function (event) {
    var typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.target.isContentEditable;
    if (typing || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.key === "/") {
      var box = document.querySelector("input[type=search]");
      if (box) {
        event.preventDefault();
        box.focus();
      }
    } else if (event.key === "t" || event.key === "T") {
      next();
    }
  });

  // The search is a plain form of the browser's own: its address is the answer, and no update of the page disturbs
  // who is typing, which a field that React controls cannot promise.
  function field(form, type, name) {
    var input = document.createElement("input");
    input.type = type;
    input.name = name;
    return form.appendChild(input);
  }

  function search(place) {
    var form = place.appendChild(document.createElement("form"));
    form.action = "/";
    form.method = "get";
    form.setAttribute("role", "search");
    var text = field(form, "search", "q");
    text.placeholder = "Search groups";
    text.setAttribute("aria-label", "Search groups");
    text.autocomplete = "off";
    var from = field(form, "hidden", "from");
    function follow() {
      var address = new URLSearchParams(window.location.search);
      text.value = address.get("q") || "";
      from.value = address.get("from") || "";
      from.disabled = !from.value;
    }
    form.addEventListener("submit", function () {
      from.value = new URLSearchParams(window.location.search).get("from") || "";
      from.disabled = !from.value;
    });
    window.addEventListener("popstate", follow);
    window.addEventListener("_dashprivate_pushstate", follow);
    follow();
  }

  new MutationObserver(function (_, observer) {
    var place = document.getElementById("search");
    if (place && document.getElementById("theme")) {
      search(place);
      label();
      observer.disconnect();
    }
  }).observe(document.documentElement, { childList: true, subtree: true });

  var functions = (window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {});

  function element() {
    return window.React.createElement.apply(null, arguments);
  }

  functions.RegroupLink = function (props) {
    var href = props.data.href;
    function go(event) {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) {
        return;
      }
      event.preventDefault();
      window.history.pushState({}, "", href);
      window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
      window.scrollTo(0, 0);
    }
    return element("a", { href: href, onClick: go }, String(props.value));
  };

  functions.RegroupText = function (props) {
    return element("span", null, props.data[props.text]);
  };

  functions.RegroupState = function (props) {
    return element(
      "span",
      { className: "state", title: props.data.kafka_state },
      element("span", { className: "swatch " + props.data.look, "aria-hidden": "true" }),
      element("span", null, props.value)
    );
  };

  functions.RegroupEvidence = function (props) {
    return element("span", { className: "evidence " + props.value }, props.value);
  };
})();
