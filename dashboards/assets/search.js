// Suggestions below the search box. Their text comes from the server and is inserted only as text nodes.
(function () {
  var WAIT_MS = 60;
  var PAUSE_MS = 250;
  var LEAST = 3;
  var MEMBERS = 8;

  function suggest(field, box) {
    var list = document.createElement("ul");
    list.id = "suggestions";
    list.className = "suggestions";
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Groups");
    list.hidden = true;
    field.appendChild(list);
    var status = document.createElement("div");
    status.className = "status";
    status.setAttribute("role", "status");
    field.appendChild(status);
    box.setAttribute("role", "combobox");
    box.setAttribute("aria-autocomplete", "list");
    box.setAttribute("aria-controls", list.id);

    var active = -1;
    var requests = 0;
    var timer = 0;

    function choose(index) {
      active = index;
      Array.prototype.forEach.call(list.children, function (option, position) {
        option.setAttribute("aria-selected", String(position === index));
      });
      if (index < 0) {
        box.removeAttribute("aria-activedescendant");
      } else {
        box.setAttribute("aria-activedescendant", list.children[index].id);
        list.children[index].scrollIntoView({ block: "nearest" });
      }
    }

    function show(isOpen) {
      list.hidden = !isOpen;
      box.setAttribute("aria-expanded", String(isOpen));
      if (!isOpen) {
        requests += 1;
        status.textContent = "";
        choose(-1);
      }
    }

    function open(option) {
      show(false);
      box.blur();
      window.history.pushState({}, "", option.getAttribute("data-href"));
      window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
      window.scrollTo(0, 0);
    }

    function fill(answer) {
      list.replaceChildren();
      add(answer.groups);
      if (answer.groups.length) {
        show(true);
      } else {
        // Not closed: members may follow.
        list.hidden = true;
        box.setAttribute("aria-expanded", "false");
        choose(-1);
      }
      status.textContent = answer.total
        ? regroup.number(answer.groups.length) + " of " + regroup.number(answer.total) + "; Enter lists groups that contain it"
        : "No group has these characters";
    }

    // Members come after the groups, and only if the reader has stopped typing.
    function fillMembers(answer) {
      if (answer.groups.length) {
        var before = list.children.length;
        add(answer.groups.slice(0, MEMBERS));
        list.hidden = false;
        box.setAttribute("aria-expanded", "true");
        status.textContent = regroup.number(before) + " groups, and " +
          regroup.number(list.children.length - before) + " of " + regroup.number(answer.total) + " members and topics";
      }
    }

    function add(groups) {
      groups.forEach(function (group) {
        var option = document.createElement("li");
        option.id = "suggestion-" + list.children.length;
        option.setAttribute("role", "option");
        option.setAttribute("data-href", group.href);
        var name = document.createElement("span");
        name.textContent = group.label;
        var cluster = document.createElement("span");
        cluster.className = "quiet";
        cluster.textContent = group.cluster;
        option.append(name, cluster);
        list.appendChild(option);
      });
    }

    function ask() {
      var number = (requests += 1);
      var address = new URLSearchParams(window.location.search);
      var kept = new URLSearchParams({ q: box.value });
      ["from", "to", "tz"].forEach(function (key) {
        if (address.get(key)) {
          kept.set(key, address.get(key));
        }
      });
      answered("/search?" + kept, number, function (answer) {
        fill(answer);
        if (box.value.trim().length >= LEAST) {
          timer = window.setTimeout(function () {
            answered("/search/members?" + kept, number, fillMembers);
          }, PAUSE_MS);
        }
      });
    }

    // Ignores the response if the text has changed; the new text has its own request.
    function answered(address, number, use) {
      window
        .fetch(address, { credentials: "same-origin" })
        .then(function (response) {
          return response.ok ? response.json() : { groups: [], total: 0 };
        })
        .then(function (answer) {
          if (number === requests && document.activeElement === box) {
            use(answer);
          }
        })
        .catch(function () {
          show(false);
        });
    }

    box.addEventListener("input", function () {
      window.clearTimeout(timer);
      if (box.value.trim()) {
        timer = window.setTimeout(ask, WAIT_MS);
      } else {
        show(false);
      }
    });
    box.addEventListener("keydown", function (event) {
      var count = list.hidden ? 0 : list.children.length;
      if (event.key === "Escape" && count) {
        show(false);
      } else if (event.key === "ArrowDown" && count) {
        choose((active + 1) % count);
      } else if (event.key === "ArrowUp" && count) {
        choose(active <= 0 ? count - 1 : active - 1);
      } else if (event.key === "Enter" && active >= 0) {
        open(list.children[active]);
      } else {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
    });
    box.addEventListener("blur", function () {
      window.clearTimeout(timer);
      show(false);
    });
    // Runs before the box loses the focus, which closes the list.
    list.addEventListener("mousedown", function (event) {
      event.preventDefault();
    });
    list.addEventListener("click", function (event) {
      var option = event.target.closest("[role=option]");
      if (option) {
        open(option);
      }
    });
    show(false);
  }

  new MutationObserver(function (_, observer) {
    var box = document.querySelector("#search input[type=search]");
    if (box) {
      observer.disconnect();
      suggest(box.closest("#search"), box);
    }
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
