"""The style sheet of a report: light and dark, on paper and on a phone. Nothing is loaded from anywhere."""

CSS = """
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5a6069; --ground: #ffffff; --card: #f5f6f8;
  --line: #d5d9df;
  --full: #2563a8; --compressed: #1f8a7d; --structured: #c98a12; --pointer: #a9afb8; --before: #8a919c;
  --after: #1f8a7d; --fold: #7a2ea0; --miss: #c0341d; --fault: #8f1d4f; --good: #1f8a7d; --shade: #1f8a7d18; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a3aab5; --ground: #14161a; --card: #1d2025;
  --line: #363b44; --full: #6aa7ee; --compressed: #4cc4b4; --structured: #e6b450; --pointer: #5a616c;
  --before: #8a919c; --after: #4cc4b4; --fold: #c891ea; --miss: #ff8466; --fault: #ff8fbd; --good: #4cc4b4;
  --shade: #4cc4b422; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 24px 16px 64px; }
h1 { font-size: 1.5rem; margin: 0 0 4px; } h2 { font-size: 1.15rem; margin: 40px 0 8px; }
p, li { max-width: 76ch; } .soft { color: var(--soft); }
a { color: inherit; } a:focus-visible, summary:focus-visible, .scroll:focus-visible { outline: 3px solid var(--full);
  outline-offset: 2px; }
.skip { position: absolute; left: -999px; } .skip:focus { left: 16px; top: 8px; background: var(--ground);
  padding: 8px; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: 12px;
  margin: 20px 0; padding: 0;
  list-style: none; }
.cards li { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; }
.cards b { display: block; font-size: 1.6rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.cards .good b { color: var(--good); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 0.92rem; }
caption { text-align: left; color: var(--soft); padding-bottom: 4px; }
th, td { text-align: right; padding: 5px 10px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere;
  min-width: 9rem; padding-left: 0; }
thead th { color: var(--soft); font-weight: 600; }
td.bars { width: 22%; min-width: 90px; }
svg { display: block; width: 100%; height: auto; } svg.bar { height: 10px; }
.was { fill: var(--before); opacity: 0.45; } .is { fill: var(--after); }
.full { fill: var(--full); background: var(--full); } .compressed { fill: var(--compressed);
  background: var(--compressed); }
.structured { fill: var(--structured); background: var(--structured); } .pointer { fill: var(--pointer);
  background: var(--pointer); }
.axis { fill: var(--soft); font-size: 12px; } .rule { stroke: var(--line); }
.window { stroke: var(--soft); stroke-dasharray: 4 4; }
.fold line { stroke: var(--fold); stroke-width: 2; } .fold.key { background: var(--fold); }
.miss circle { fill: var(--miss); } .miss.key { background: var(--miss); } .fault circle { fill: var(--fault); }
.fault.key { background: var(--fault); } .recall path { fill: var(--ink); }
polyline { fill: none; stroke-width: 2; } .before { stroke: var(--before); } .after { stroke: var(--after); }
.eligible { fill: var(--shade); } .point text { fill: var(--ink); font-size: 13px;
  } .point.other circle { fill: var(--before); }
.point.best circle { fill: var(--after); } .point.best text { font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; list-style: none; padding: 0; margin: 8px 0;
  font-size: 0.9rem; }
.key { display: inline-block; width: 14px; height: 14px; border-radius: 3px; margin-right: 6px;
  vertical-align: -2px; }
.key.line { width: 4px; }
details { border: 1px solid var(--line); border-radius: 8px; margin: 8px 0; background: var(--card); }
summary { padding: 8px 12px; cursor: pointer; overflow-wrap: anywhere; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr)); gap: 12px; padding: 0 12px 12px; }
.pair h3 { font-size: 0.9rem; margin: 0; color: var(--soft); }
pre { margin: 4px 0 0; padding: 10px; background: var(--ground); border: 1px solid var(--line); border-radius: 6px;
  overflow: auto; max-height: 20rem; font: 12px/1.45 ui-monospace, "SF Mono", Consolas, monospace;
  white-space: pre-wrap;
  overflow-wrap: anywhere; }
@media print { details > .pair { display: none; } }
""".strip()
