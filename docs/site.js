// What the theme leaves out for screen readers and keyboards: the name of its search, and tables wider than the page.
document$.subscribe(() => setTimeout(() => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((frame, at) => {
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", `Table ${at + 1}`);
  });
}));
