/** Printed lines. Text from elsewhere is escaped, so that it is never a command to the terminal. */
import { Console, Duration, Effect, Logger } from "effect"

// Controls, lone surrogates, line ends, changes of direction, and what has no width. Emoji need their joiners.
const hidden = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_C}\u200b\u2060\ufeff]/gu

const short: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }

/** Escapes everything hidden as JSON does: the text is one line, and JSON keeps its meaning. */
export const printable = (text: string): string =>
  text.replace(hidden, (character) => short[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** Prints a line, or several, to standard output. */
export const print = (text: string | ReadonlyArray<string>) => Console.log([text].flat().map(printable).join("\n"))

/** Waits until standard output has all that was printed: a pipe takes 64 KiB at a time. An error of it ends the process. */
export const written = Effect.callback<void>((resume) => {
  process.stdout.write("", (error) => {
    if (!error) resume(Effect.void)
  })
})

/** Prints a line, or several, to standard error. */
export const note = (text: string | ReadonlyArray<string>) => Console.error([text].flat().map(printable).join("\n"))

/**
 * Runs a step that a person waits for. Prints to standard error how long it has taken: every ten seconds, and at its end,
 * unless its result says that nothing had to be done.
 */
export const step = Effect.fnUntraced(function* <A, E, R>(
  name: string,
  effect: Effect.Effect<A, E, R>,
  isNeeded: (result: A) => boolean
) {
  const waiting = Effect.gen(function* () {
    for (let passed = 10; ; passed += 10) {
      yield* Effect.sleep("10 seconds")
      yield* note(`${name}, ${passed} s so far`)
    }
  })
  const [elapsed, result] = yield* Effect.timed(Effect.raceFirst(effect, waiting))
  if (isNeeded(result)) yield* note(`${name}, ${Math.round(Duration.toSeconds(elapsed))} s`)
  return result
})

export const layerLogger = Logger.layer([
  Logger.make((options) => options.fiber.getRef(Console.Console).error(printable(Logger.formatLogFmt.log(options))))
])
