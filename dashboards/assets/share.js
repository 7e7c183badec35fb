// Exports: a link, the page's text as Markdown, its tables as CSV and JSON. All of them contain what is shown.
(function () {
  var regroup = window.regroup;
  // Where a spreadsheet may see the start of a field. With another locale, it splits at semicolons or tabs and treats
  // quotes of other cells as text, so that a new field may begin inside this one.
  var FORMULA = /([,;|"'\t\v\f\r\n\u0085\u2028\u2029]|^)(?=["\s\0]*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
  var BLANK = /^(?=[\t\r\n])/;
  var WORDS = ".crumbs, .when, .about, .notice, .empty h2, .empty p, .sentence, .tile, .summary, .panel h2, .panel h3, .facts dt";

  // Names of groups are untrusted: an apostrophe keeps a spreadsheet from reading any part of them as a formula.
  function cell(value) {
    var text = String(value === null || value === undefined ? "" : value);
    return '"' + text.replace(FORMULA, "$1'").replace(BLANK, "'").replace(/"/g, '""') + '"';
  }

  // Starts with the byte order mark, by which spreadsheets recognize UTF-8.
  regroup.csv = function (head, rows) {
    var lines = [head].concat(rows).map(function (row) {
      return row.map(cell).join(",");
    });
    return "\ufeff" + lines.join("\r\n") + "\r\n";
  };

  // Escapes text so that Markdown shows it unchanged: no element, link, image, emphasis, heading or list.
  regroup.markdown = function (text) {
    return text
      .replace(/\s+/g, " ")
      .trim()
      .replace(/[\\`*_[\]<>|~$&]/g, "\\$&")
      .replace(/:(?=\/\/)|@/g, "\\$&")
      .replace(/\bwww(?=\.)/gi, "$&\\")
      .replace(/^([#+\-=]|[0-9]+(?=[.)]))/, function (sign) {
        return /[0-9]/.test(sign) ? sign + "\\" : "\\" + sign;
      });
  };

  function words(element) {
    return regroup.markdown(element.textContent);
  }

  function line(element) {
    if (element.matches(".tile")) {
      var note = element.querySelector(".note").textContent;
      return "- " + words(element.querySelector(".label")) + ": **" + words(element.querySelector(".value")) + "**" +
        (note ? " (" + regroup.markdown(note) + ")" : "");
    }
    if (element.matches("dt")) {
      return "- " + words(element) + ": " + words(element.nextElementSibling);
    }
    if (element.matches(".panel h2")) {
      return "\n## " + words(element) + "\n";
    }
    return (element.matches("h2, h3") ? "\n### " : "") + words(element) + "\n";
  }

  regroup.summary = function () {
    var parts = ["# " + words(document.querySelector("#page h1")) + "\n"];
    document.querySelectorAll("#page " + WORDS.split(", ").join(", #page ")).forEach(function (element) {
      if (!element.closest("details") && element.textContent.trim()) {
        parts.push(line(element));
      }
    });
    parts.push("\n" + regroup.markdown(document.getElementById("freshness").textContent) + "\n\n<" + regroup.frozen() + ">\n");
    return parts.join("\n").replace(/\n{3,}/g, "\n\n");
  };

  // The last heading before the element in its panel.
  function named(element) {
    var panel = element.closest(".panel") || document.getElementById("page");
    var names = [];
    panel.querySelectorAll("h2, h3").forEach(function (heading) {
      var before = heading.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (before) {
        names[heading.matches("h2") ? 0 : 1] = heading.textContent;
      }
    });
    return names.filter(Boolean).join(": ");
  }

  function ofTable(table) {
    var rows = Array.prototype.map.call(table.tBodies[0].rows, function (row) {
      return Array.prototype.map.call(row.cells, function (each) {
        var text = each.textContent.trim();
        return each.matches(".number") ? Number(each.dataset.value) : text;
      });
    });
    var head = Array.prototype.map.call(table.tHead.rows[0].cells, function (each) {
      return each.textContent;
    });
    return { name: named(table), head: head, rows: rows };
  }

  function ofGrid(element) {
    var grid = regroup.gridOf(element);
    var columns = grid.getAllDisplayedColumns().map(function (column) {
      return column.getColDef();
    });
    var head = columns.map(function (column) {
      return column.headerName;
    });
    return regroup.rowsOf(grid).then(function (found) {
      var rows = found.map(function (data) {
        return columns.map(function (column) {
          return data[(column.cellRendererParams || {}).text || column.field];
        });
      });
      return { name: named(element), head: head, rows: rows };
    });
  }

  // Resolves to the visible tables: `name`, `head`, `rows`.
  regroup.tables = function () {
    return Promise.all(
      Array.prototype.map.call(document.querySelectorAll("#page table, #page .grid"), function (element) {
        return element.matches("table") ? ofTable(element) : ofGrid(element);
      })
    );
  };

  function json(table) {
    return JSON.stringify(
      {
        page: document.querySelector("#page h1").textContent,
        table: table.name,
        address: regroup.frozen(),
        zone: regroup.zone(),
        rows: table.rows.map(function (row) {
          return Object.fromEntries(
            row.map(function (value, at) {
              return [table.head[at], value];
            })
          );
        }),
      },
      null,
      1
    );
  }

  function save(name, ending, text, type) {
    var plain = name.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60);
    var url = URL.createObjectURL(new Blob([text], { type: type }));
    var link = regroup.make("a", { href: url, download: "regroup-" + plain + "." + ending }, document.body);
    link.click();
    link.remove();
    window.setTimeout(function () {
      URL.revokeObjectURL(url);
    }, 10000);
  }

  function copied(what, text) {
    return regroup.copy(text).then(function (done) {
      regroup.notify(done ? what + " copied" : "The browser does not allow copying here.");
    });
  }

  function button(text, label, parent, run) {
    var made = regroup.make("button", { type: "button", className: "button", textContent: text }, parent);
    made.setAttribute("aria-label", label);
    made.addEventListener("click", run);
  }

  function offer() {
    regroup.tables().then(show, function () {
      regroup.notify("The rows could not be loaded: the page Health may show why.");
    });
  }

  function show(tables) {
    regroup.dialog("export", "Export", function (dialog) {
      var first = regroup.make("p", {}, dialog);
      button("Copy as Markdown", "Copy the page as Markdown", first, function () {
        dialog.close();
        copied("Markdown", regroup.summary());
      });
      regroup.make("p", { className: "quiet", textContent:
        "Tables, exactly as they are shown now; tables of figures are under “Show as table”." }, dialog);
      var list = regroup.make("ul", { className: "exports" }, dialog);
      tables.forEach(function (table) {
        var item = regroup.make("li", {}, list);
        regroup.make("span", { textContent: table.name }, item);
        regroup.make("span", { className: "quiet", textContent: table.rows.length + " rows" }, item);
        button("CSV", "CSV of " + table.name, item, function () {
          save(table.name, "csv", regroup.csv(table.head, table.rows), "text/csv");
        });
        button("JSON", "JSON of " + table.name, item, function () {
          save(table.name, "json", json(table), "application/json");
        });
      });
      document.querySelectorAll("#page .js-plotly-plot").forEach(function (graph) {
        var item = regroup.make("li", {}, list);
        var name = named(graph);
        regroup.make("span", { textContent: name }, item);
        regroup.make("span", { className: "quiet", textContent: "figure" }, item);
        button("PNG", "Picture of " + name, item, function () {
          window.Plotly.downloadImage(graph, { format: "png", scale: 2, filename: "regroup-figure" });
        });
      });
    });
  }

  document.addEventListener("click", function (event) {
    var pressed = event.target.closest && event.target.closest("[data-key]");
    if (pressed && pressed.dataset.key === "l") {
      copied("Link", regroup.frozen());
    } else if (pressed && pressed.dataset.key === "e") {
      offer();
    }
  });
})();
