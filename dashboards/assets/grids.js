// The grids: their rows in the reader's sorting and filtering, and the step from one rebalance to the next.
(function () {
  var regroup = window.regroup;

  regroup.gridOf = function (element) {
    var id = element.id;
    return window.dash_ag_grid.getApi(id.charAt(0) === "{" ? JSON.parse(id) : id);
  };

  // Resolves to all rows, sorted and filtered. A grid that holds only some rows requests all of them.
  regroup.rowsOf = function (grid) {
    if (grid.getGridOption("rowModelType") !== "infinite") {
      var rows = [];
      grid.forEachNodeAfterFilterAndSort(function (node) {
        rows.push(node.data);
      });
      return Promise.resolve(rows);
    }
    var query = new URLSearchParams(window.location.search);
    var sorted = grid.getColumnState().filter(function (column) {
      return column.sort;
    });
    query.set("request", JSON.stringify({ sortModel: sorted, filterModel: grid.getFilterModel() }));
    return window.fetch("/rows?" + query, { credentials: "same-origin" }).then(function (answer) {
      if (!answer.ok) {
        throw new Error(answer.status);
      }
      return answer.json().then(function (found) {
        return found.rowData;
      });
    });
  };

  // Select the next (1) or previous (-1) rebalance by time, whatever the sorting; Enter opens it.
  function selectNext(step) {
    var element = document.querySelector(".grid[id*='\"generations\"']");
    var grid = element && regroup.gridOf(element);
    if (!grid) {
      return;
    }
    var nodes = [];
    grid.forEachNodeAfterFilterAndSort(function (node) {
      nodes.push(node);
    });
    nodes.sort(function (one, other) {
      return one.data.joined - other.data.joined;
    });
    var focused = grid.getFocusedCell();
    var at = nodes.findIndex(function (node) {
      return focused && node.rowIndex === focused.rowIndex;
    });
    var next = nodes[at < 0 ? (step > 0 ? 0 : nodes.length - 1) : Math.min(Math.max(at + step, 0), nodes.length - 1)];
    if (next) {
      grid.ensureNodeVisible(next);
      grid.setFocusedCell(next.rowIndex, "number");
    }
  }

  document.addEventListener("click", function (event) {
    var button = event.target.closest && event.target.closest("button[data-key]");
    var step = button && { ",": -1, ".": 1 }[button.dataset.key];
    if (step) {
      selectNext(step);
    }
  });
})();
