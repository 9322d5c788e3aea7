/** What stop signals do beyond the first, which stops the program in an orderly way. */
import { constants } from "node:os"

/**
 * Signals that come so soon after the first are the same wish, in milliseconds: Ctrl-C reaches every process of a
 * terminal, and npm passes on what it gets to a program that has got it, too.
 */
const oneWish = 300

/** Ends the process at once when it is told to stop for the second time, with the exit code of that signal. */
export const endAtTheSecond = () => {
  let first: number | undefined
  const received = (signal: "SIGINT" | "SIGTERM") => {
    const now = performance.now()
    first ??= now
    if (now - first > oneWish) process.exit(128 + constants.signals[signal])
  }
  process.on("SIGINT", received)
  process.on("SIGTERM", received)
}
