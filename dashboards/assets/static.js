// Static text, tables and links are most of a page and never change by themselves. Dash keeps a subscription for every
// component and notifies all of them of each new one, which takes seconds for two thousand cells. Here they become
// plain DOM elements instead. Text stays text, and links can only lead to this site.
(function () {
  var regroup = window.regroup;
  var TYPES =
    "A Button Code Dd Details Div Dl Dt Figcaption H1 H2 H3 Li Nav Ol P Pre Section Small Span Strong Summary " +
    "Table Tbody Td Th Thead Tr Ul Link";
  var KNOWN = new Set(TYPES.split(" "));
  var NAMES = { className: "class", htmlFor: "for" };
  var LOCAL = /^(\/(?![/\\])|#|\?|$)/;

  function isObject(value) {
    return value !== null && typeof value === "object";
  }

  function same(one, other) {
    if (!isObject(one) || !isObject(other)) {
      return one === other;
    }
    var keys = Object.keys(one);
    return (
      Array.isArray(one) === Array.isArray(other) &&
      keys.length === Object.keys(other).length &&
      keys.every(function (key) {
        return key in other && same(one[key], other[key]);
      })
    );
  }

  function component(type, props) {
    return { type: type, namespace: "dash_html_components", props: props };
  }

  function rowOf(cells, labels) {
    return component("Tr", {
      children: cells.map(function (cell, at) {
        var props = labels ? { "data-label": labels[at] } : {};
        return typeof cell === "number"
          ? component("Td", Object.assign(props, { children: regroup.number(cell), className: "number", "data-value": String(cell) }))
          : component("Td", Object.assign(props, { children: unfolded(cell), className: "" }));
      }),
    });
  }

  // Converts bare table cells (`data-rows`) from the server into elements.
  function unfolded(node) {
    if (Array.isArray(node)) {
      return node.map(unfolded);
    }
    if (!isObject(node) || !isObject(node.props)) {
      return node;
    }
    var props = Object.assign({}, node.props);
    if (props["data-rows"]) {
      props.children = props["data-rows"].map(function (cells) {
        return rowOf(cells, props["data-labels"]);
      });
      delete props["data-rows"];
      delete props["data-labels"];
    } else if ("children" in props) {
      props.children = unfolded(props.children);
    }
    return Object.assign({}, node, { props: props });
  }

  // Returns the number of components in `node`, or nothing if one of them is interactive.
  function staticSize(node) {
    if (Array.isArray(node)) {
      var sum = 0;
      for (var at = 0; at < node.length; at += 1) {
        var count = staticSize(node[at]);
        if (count === null) {
          return null;
        }
        sum += count;
      }
      return sum;
    }
    if (!isObject(node)) {
      return 0;
    }
    if (!KNOWN.has(node.type) || node.props.id !== undefined) {
      return null;
    }
    var below = staticSize(node.props.children);
    return below === null ? null : below + 1;
  }

  function childrenOf(node) {
    return [].concat(node.props.children).filter(function (child) {
      return child !== null && child !== undefined && typeof child !== "boolean";
    });
  }

  function set(element, name, value) {
    if (name === "style") {
      element.removeAttribute("style");
      Object.assign(element.style, value);
    } else if (value === null || value === undefined || value === false || (name === "href" && !LOCAL.test(value))) {
      element.removeAttribute(NAMES[name] || name);
    } else if (!/^(on|children$|n_clicks|disable_n_clicks$|key$)/i.test(name)) {
      element.setAttribute(NAMES[name] || name, value === true ? "" : value);
    }
  }

  function build(node) {
    if (!isObject(node)) {
      return document.createTextNode(node);
    }
    var element = document.createElement(node.type === "Link" ? "a" : node.type.toLowerCase());
    Object.keys(node.props).forEach(function (name) {
      set(element, name, node.props[name]);
    });
    childrenOf(node).forEach(function (child) {
      element.appendChild(build(child));
    });
    return element;
  }

  // Changes `dom`, which was built from `old`, into `next`, with as few changes as possible, so that the reader keeps
  // focus, selection and expanded parts.
  function patch(dom, old, next) {
    if (!isObject(old) || !isObject(next) || old.type !== next.type) {
      if (old !== next) {
        dom.replaceWith(build(next));
      }
      return;
    }
    Object.keys(Object.assign({}, old.props, next.props)).forEach(function (name) {
      if (name !== "children" && !same(old.props[name], next.props[name])) {
        set(dom, name, next.props[name]);
      }
    });
    patchAll(dom, childrenOf(old), childrenOf(next));
  }

  function patchAll(parent, before, after) {
    var nodes = Array.prototype.slice.call(parent.childNodes, 0, before.length);
    before.forEach(function (old, at) {
      if (at < after.length) {
        patch(nodes[at], old, after[at]);
      } else {
        nodes[at].remove();
      }
    });
    after.slice(before.length).forEach(function (next) {
      parent.appendChild(build(next));
    });
  }

  regroup.isObject = isObject;
  regroup.same = same;
  regroup.unfolded = unfolded;
  regroup.staticSize = staticSize;
  regroup.fill = function (root, old, next) {
    patchAll(root, old ? [old] : [], [next]);
  };

  // The browser follows a link for another tab, of a file, and one with a target; other clicks do not reload the page.
  document.addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest("[data-static] a[href^='/']");
    var isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    var isPage = link && !link.target && !link.hasAttribute("download");
    if (isPage && isPlain && !event.defaultPrevented) {
      event.preventDefault();
      regroup.follow(link.getAttribute("href"));
      window.scrollTo(0, 0);
    }
  });
})();
