// Theme switch, keyboard, and the grid's cell renderers. Renderers hand text to React, which escapes it.
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

  document.addEventListener("keydown", function (event) {
    var typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.target.isContentEditable;
    if (typing || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.key === "/") {
      var search = document.querySelector("input[type=search]");
      if (search) {
        event.preventDefault();
        search.focus();
      }
    } else if (event.key === "t" || event.key === "T") {
      next();
    }
  });

  new MutationObserver(function (_, observer) {
    if (document.getElementById("theme")) {
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
