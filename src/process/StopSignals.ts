/** The second stop signal ends the process at once; the first one stops it gracefully. */
import { constants } from "node:os"

/**
 * Milliseconds. A signal that comes sooner after the first is a copy of it: Ctrl-C reaches every process of a terminal,
 * and npm forwards its signals to a program that has received them, too.
 */
const duplicateWindow = 300

/** Ends the process at once at the second stop signal, with the exit code of that signal. */
export const endAtTheSecond = () => {
  let first: number | undefined
  const received = (signal: "SIGINT" | "SIGTERM") => {
    const now = performance.now()
    first ??= now
    if (now - first > duplicateWindow) process.exit(128 + constants.signals[signal])
  }
  process.on("SIGINT", received)
  process.on("SIGTERM", received)
}
