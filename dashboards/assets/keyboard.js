// Every key belongs to a visible control with the key in `data-key`, and activates that control.
(function () {
  var regroup = window.regroup;
  var KEYS = [
    { key: "/", does: "search groups, hosts, members and topics" },
    { key: "g f", does: "go to Fleet" },
    { key: "g c", does: "go to Causes" },
    { key: "g s", does: "go to Storms" },
    { key: "g d", does: "go to Deploys" },
    { key: "g a", does: "go to Advice" },
    { key: "g r", does: "go to Reassignments" },
    { key: "g h", does: "go to Health" },
    { key: "w", does: "zoom in, around the pointer if it is over a figure" },
    { key: "s", does: "zoom out" },
    { key: "a", does: "move to earlier times" },
    { key: "d", does: "move to later times" },
    { key: "f", does: "focus: show what was pointed at last, with some time around it" },
    { key: "i", does: "inspect: the group at the time under the pointer" },
    { key: "r", does: "choose the time range" },
    { key: "u", does: "times in UTC or in this browser's zone" },
    { key: ",", does: "previous rebalance" },
    { key: ".", does: "next rebalance" },
    { key: "p", does: "pause or resume updates" },
    { key: "l", does: "copy a link to exactly this" },
    { key: "e", does: "export tables, copy as Markdown" },
    { key: "t", does: "theme" },
    { key: "?", does: "this list" },
  ];
  var LONGEST_PAUSE = 1500;
  var pending = null;

  regroup.keys = KEYS;

  function control(key) {
    var found = document.querySelector('[data-key="' + key + '"]');
    return found && (found.matches("a, button, input") ? found : found.querySelector("a, button, input"));
  }

  function press(key) {
    var found = control(key);
    if (found && found.matches("input")) {
      regroup.openMenu(true); // a narrow screen hides the search until then
      found.focus();
      found.select();
    } else if (found) {
      found.click();
    }
    return Boolean(found);
  }

  function known(key) {
    return KEYS.some(function (each) {
      return each.key === key;
    });
  }

  function typing(target) {
    return /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable;
  }

  // Rows are links in a column; the arrow keys move up and down within it.
  function neighbour(link, step) {
    var cell = link.closest("td");
    var row = cell && (step > 0 ? cell.parentElement.nextElementSibling : cell.parentElement.previousElementSibling);
    return row && row.cells[cell.cellIndex] && row.cells[cell.cellIndex].querySelector("a");
  }

  function arrow(event) {
    var step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    var next = step && event.target.matches("td a") && neighbour(event.target, step);
    if (next) {
      event.preventDefault();
      next.focus();
    }
    // In a grid, the focus is on the cell, not on its link.
    var link = event.key === "Enter" && event.target.matches(".ag-cell") && event.target.querySelector("a");
    if (link) {
      link.click();
    }
  }

  // By the times of the key presses: a busy page may handle the second one much later.
  function chord(letter, pressed) {
    var both = pending && pressed - pending.since < LONGEST_PAUSE ? pending.letter + " " + letter : letter;
    pending = letter === "g" && both === letter ? { letter: letter, since: pressed } : null;
    return both;
  }

  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) {
      return;
    }
    if (event.key === "Escape") {
      regroup.clear();
      if (!document.querySelector("dialog[open]") && document.activeElement) {
        document.activeElement.blur();
      }
      return;
    }
    if (typing(event.target) || document.querySelector("dialog[open]")) {
      return;
    }
    arrow(event);
    var key = chord(event.key.toLowerCase(), event.timeStamp);
    if (known(key) && press(key)) {
      event.preventDefault();
    }
  });

  function help() {
    regroup.dialog("help", "Keys", function (dialog) {
      var list = regroup.make("dl", { className: "keys" }, dialog);
      KEYS.concat([
        { key: "↑ ↓", does: "row above or below; Enter opens it", always: true },
        { key: "Esc", does: "close, or leave a field", always: true },
      ]).forEach(function (each) {
        var name = regroup.make("dt", {}, list);
        each.key.split(" ").forEach(function (letter) {
          regroup.make("kbd", { textContent: /^[a-z]$/.test(letter) ? letter.toUpperCase() : letter }, name);
        });
        var away = !each.always && !control(each.key);
        regroup.make("dd", { textContent: each.does + (away ? " (not on this page)" : ""), className: away ? "quiet" : "" }, list);
      });
      regroup.make("p", { className: "quiet", textContent:
        "Drag over a figure to zoom into it; double-click to go back. Keys do nothing while you type." }, dialog);
    });
  }

  document.addEventListener("click", function (event) {
    if (event.target.closest && event.target.closest("[data-key='?']")) {
      help();
    }
  });
})();
