// The numbers are live: the page is loaded again every ten seconds while somebody looks at it.
"use strict";

setInterval(() => {
  const isSelecting = String(document.getSelection()) !== "";
  if (document.visibilityState === "visible" && !isSelecting) location.reload();
}, 10000);
