// Prepares a process before its entry point is loaded: as `node -r`, or imported first. In a language that an old Node
// runs, which would fail at the first line of the rest, or at an option of `npm start`.
"use strict"

/** Ends a Node that is older than `engines` of the package. */
function refuseOldNode() {
  var needed = require("../package.json").engines.node.match(/\d+/g).map(Number)
  var present = process.versions.node.split(".").map(Number)
  if (present[0] > needed[0] || (present[0] === needed[0] && present[1] >= needed[1])) return
  // The package `node` downloads its Node in a script, which `ignore-scripts` leaves out, of `npm rebuild` too.
  var hasPackage = require("fs").existsSync(__dirname + "/../node_modules/node")
  process.stderr.write(
    "practice-data needs Node " +
      needed.slice(0, 2).join(".") +
      " or later, and this is " +
      process.versions.node +
      ". Install a newer one (https://nodejs.org/en/download), or, in a clone, run `" +
      (hasPackage
        ? "npm rebuild node --ignore-scripts=false`, which downloads"
        : "npm ci` without --omit=dev, which brings") +
      " its own.\n"
  )
  process.exit(1)
}

/** Keeps compiled code for the next start. Before the entry point, it saves 15 MiB: no TypeScript is parsed. */
function cacheCompiledCode() {
  require("module").enableCompileCache()
}

function tuneHeap() {
  // Imports make many objects that stay, such as schemas. V8 then expects those of requests to stay too, and allocates them
  // in the old generation, where each keeps what it refers to until a full collection: a quarter of a single record's CPU time.
  require("v8").setFlagsFromString("--no-allocation-site-pretenuring")

  // Once a service is idle, V8 collects its heap and lets it grow by a few MiB only. The next load then had six full
  // collections a second, for up to half a minute, and each request cost three times its CPU time.
  require("v8").setFlagsFromString("--heap-growing-percent=100")
}

refuseOldNode()
cacheCompiledCode()
tuneHeap()
