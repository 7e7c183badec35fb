// Functions that several files need: a dialog, a short message to the reader, the clipboard.
(function () {
  var regroup = (window.regroup = window.regroup || {});

  regroup.make = function (name, properties, parent) {
    var made = Object.assign(document.createElement(name), properties || {});
    return parent ? parent.appendChild(made) : made;
  };

  // A modal dialog: Esc closes it, and the focus returns to where it was. `fill` creates its content.
  regroup.dialog = function (id, title, fill) {
    var old = document.getElementById(id);
    if (old) {
      old.remove();
    }
    var made = regroup.make("dialog", { id: id, className: "dialog" }, document.body);
    var head = regroup.make("header", {}, made);
    var heading = regroup.make("h2", { id: id + "-title", textContent: title }, head);
    made.setAttribute("aria-labelledby", heading.id);
    var close = regroup.make("button", { type: "button", className: "button", textContent: "Close (Esc)" }, head);
    close.addEventListener("click", function () {
      made.close();
    });
    made.addEventListener("click", function (event) {
      if (event.target === made) {
        made.close();
      }
    });
    made.addEventListener("close", function () {
      made.remove();
    });
    fill(made);
    made.showModal();
    return made;
  };

  var forget;
  regroup.tell = function (text) {
    var place = document.getElementById("told");
    if (!place) {
      place = regroup.make("div", { id: "told" }, document.body);
      place.setAttribute("role", "status");
    }
    place.textContent = text;
    window.clearTimeout(forget);
    forget = window.setTimeout(function () {
      place.textContent = "";
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
