// In a language that a Node from long ago still runs: it would fail at the first line of the rest.
"use strict"

var needed = require("../package.json").engines.node.match(/\d+/g).map(Number)
var present = process.versions.node.split(".").map(Number)

if (present[0] < needed[0] || (present[0] === needed[0] && present[1] < needed[1])) {
  process.stderr.write(
    "practice-data needs Node " +
      needed.slice(0, 2).join(".") +
      " or later, and this is " +
      process.versions.node +
      ". Install a newer one (https://nodejs.org/en/download), or, in a clone, run `npm ci` without --omit=dev, which brings its own.\n"
  )
  process.exit(1)
}
