// When a page is rebuilt, only the changed parts are replaced. Dash would rebuild everything, and the reader would lose
// focus, open tables, grid sorting and figure zoom.
(function () {
  var regroup = window.regroup;
  var ROOT = ["components", "props", "children"];
  var SMALL = 8;
  var shown = null;
  var shownAt = null;
  var staticParts = [];
  var filled = new WeakMap();

  function isComponent(node) {
    return regroup.isObject(node) && "props" in node && "type" in node && "namespace" in node;
  }

  // Whether one component can be changed into the other without rebuilding it.
  function alike(one, other) {
    if (!isComponent(one) || !isComponent(other)) {
      return !regroup.isObject(one) && one === other;
    }
    return one.type === other.type && one.namespace === other.namespace && regroup.same(one.props.id, other.props.id);
  }

  function alikeLists(one, other) {
    return (
      Array.isArray(one) &&
      Array.isArray(other) &&
      one.length === other.length &&
      one.every(function (node, at) {
        return alike(node, other[at]);
      })
    );
  }

  // Appends to `changes` the changes that turn the component `old` at `path` into `next`.
  function compare(old, next, path, changes) {
    var props = {};
    Object.keys(Object.assign({}, old.props, next.props)).forEach(function (key) {
      if (key !== "children" && !regroup.same(old.props[key], next.props[key])) {
        props[key] = next.props[key] === undefined ? null : next.props[key];
      }
    });
    var before = old.props.children;
    var after = next.props.children;
    var below = path.concat(["props", "children"]);
    var inside = [];
    if (alikeLists(before, after)) {
      before.forEach(function (node, at) {
        if (isComponent(node)) {
          compare(node, after[at], below.concat([at]), inside);
        }
      });
    } else if (isComponent(before) && alike(before, after)) {
      compare(before, after, below, inside);
    } else if (!regroup.same(before, after)) {
      props.children = after === undefined ? null : after;
    }
    if (Object.keys(props).length) {
      changes.push([path, props]);
    }
    Array.prototype.push.apply(changes, inside);
  }

  // Returns the page with placeholders for its larger static parts, which are appended to `parts`.
  function framed(node, parts) {
    if (Array.isArray(node)) {
      return node.map(function (child) {
        return framed(child, parts);
      });
    }
    if (!isComponent(node) || !("children" in node.props)) {
      return node;
    }
    var size = regroup.staticSize(node);
    if (size === null) {
      var props = Object.assign({}, node.props, { children: framed(node.props.children, parts) });
      return { type: node.type, namespace: node.namespace, props: props };
    }
    if (size < SMALL) {
      return node;
    }
    var placeholder = { "data-static": String(parts.push(node) - 1), className: "static" };
    return { type: "Div", namespace: "dash_html_components", props: placeholder };
  }

  function fillAll() {
    document.querySelectorAll("#page [data-static]").forEach(function (placeholder) {
      var next = staticParts[placeholder.dataset.static];
      var old = filled.get(placeholder);
      if (next && next !== old) {
        filled.set(placeholder, next);
        regroup.fill(placeholder, old, next);
      }
    });
  }

  function pathOf(id) {
    var children = window.dash_component_api.getLayout(ROOT);
    return ROOT.concat([
      children.findIndex(function (child) {
        return child.props.id === id;
      }),
    ]);
  }

  // `made`: the page from the server.
  regroup.callback("update", function (made) {
    if (!made) {
      return;
    }
    staticParts = [];
    var page = { type: "Main", namespace: "", props: { children: framed(regroup.unfolded(made), staticParts) } };
    var path = pathOf("page");
    var changes = [];
    if (shown && shownAt === window.location.pathname) {
      compare(shown, page, path, changes);
    } else {
      changes.push([path, page.props]);
    }
    shown = page;
    shownAt = window.location.pathname;
    changes.forEach(function (change) {
      window.dash_clientside.set_props(change[0], change[1]);
    });
    fillAll();
  });

  // React inserts new placeholders at any time; they are filled before the next paint.
  regroup.atStart(function () {
    new MutationObserver(fillAll).observe(document.getElementById("page"), {
      subtree: true,
      childList: true,
      attributes: true,
      attributeFilter: ["data-static"],
    });
  });
})();
