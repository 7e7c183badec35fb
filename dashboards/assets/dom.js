// Functions that several files need: a dialog, a short message to the reader, the clipboard.
(function () {
  var regroup = (window.regroup = window.regroup || {});

  regroup.make = function (name, properties, parent) {
    var element = Object.assign(document.createElement(name), properties || {});
    return parent ? parent.appendChild(element) : element;
  };

  // Returns a number with thousands separators and a real minus sign, as `schemas/written.py` does.
  regroup.number = function (value) {
    return value.toLocaleString("en").replace("-", "\u2212");
  };

  // A modal dialog: Esc closes it, and the focus returns to where it was. `fill` creates its content.
  regroup.dialog = function (id, title, fill) {
    var old = document.getElementById(id);
    if (old) {
      old.remove();
    }
    var element = regroup.make("dialog", { id: id, className: "dialog" }, document.body);
    var head = regroup.make("header", {}, element);
    var heading = regroup.make("h2", { id: id + "-title", textContent: title }, head);
    element.setAttribute("aria-labelledby", heading.id);
    var close = regroup.make("button", { type: "button", className: "button", textContent: "Close (Esc)" }, head);
    close.addEventListener("click", function () {
      element.close();
    });
    element.addEventListener("click", function (event) {
      if (event.target === element) {
        element.close();
      }
    });
    element.addEventListener("close", function () {
      element.remove();
    });
    fill(element);
    element.showModal();
    return element;
  };

  var timer;
  regroup.notify = function (text) {
    var status = document.getElementById("notification");
    if (!status) {
      status = regroup.make("div", { id: "notification" }, document.body);
      status.setAttribute("role", "status");
    }
    status.textContent = text;
    window.clearTimeout(timer);
    timer = window.setTimeout(function () {
      status.textContent = "";
    }, 4000);
  };

  // Without a secure origin, browsers have no clipboard API but can copy the selection. `block`, which the reader may
  // have to copy by hand, stays selected.
  function copySelected(text, block) {
    if (block) {
      window.getSelection().selectAllChildren(block);
      return document.execCommand("copy");
    }
    var focused = document.activeElement;
    var within = document.querySelector("dialog[open]") || document.body;
    var field = regroup.make("textarea", { value: text, className: "copied" }, within);
    field.select();
    var done = document.execCommand("copy");
    field.remove();
    focused.focus();
    return done;
  }

  // Resolves to whether copying succeeded.
  regroup.copy = function (text, block) {
    if (!navigator.clipboard) {
      return Promise.resolve(copySelected(text, block));
    }
    return navigator.clipboard.writeText(text).then(
      function () {
        return true;
      },
      function () {
        return copySelected(text, block);
      }
    );
  };
})();
