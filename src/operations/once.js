/**
 * Sends each form once. A second click while the first one is under way would make a second key, and show only that one.
 * Runs in the browser.
 */
"use strict"
let sentAt = -Infinity
addEventListener("submit", (event) => {
  if (event.timeStamp - sentAt < 10000) event.preventDefault()
  else sentAt = event.timeStamp
})
// By the back button.
addEventListener("pageshow", () => (sentAt = -Infinity))
