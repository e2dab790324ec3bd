// Exchanges the content of the page for a new one now and then, without losing the place. Without it the page reloads itself.
"use strict";
(function () {
  const every_ms = Number(document.body.dataset.refresh) * 1000;
  const stale = document.getElementById("stale");
  let isAsking = false;

  function isRead() {
    const chosen = document.getSelection();
    return document.hidden || (chosen !== null && !chosen.isCollapsed);
  }

  function exchange(fresh) {
    const main = document.getElementById("main");
    const focused = document.activeElement;
    const link = main.contains(focused) ? focused.getAttribute("href") : null;
    main.replaceWith(fresh);
    if (link !== null) {
      const again = Array.from(fresh.querySelectorAll("a")).find((one) => one.getAttribute("href") === link);
      if (again !== undefined) {
        again.focus({ preventScroll: true });
      }
    }
  }

  function ask() {
    if (isAsking || isRead()) {
      return;
    }
    isAsking = true;
    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document";
    request.timeout = 20000;
    request.onloadend = function () {
      isAsking = false;
      const answer = request.status === 200 ? request.response : null;
      const fresh = answer === null ? null : answer.getElementById("main");
      stale.hidden = fresh !== null;
      if (fresh !== null && !isRead()) {
        exchange(fresh);
      }
    };
    request.send();
  }

  if (every_ms > 0) {
    setInterval(ask, every_ms);
    document.addEventListener("visibilitychange", ask);
  }
})();
