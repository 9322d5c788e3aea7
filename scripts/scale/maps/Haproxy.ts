/** Replaces the maps of a running haproxy, over its socket for administrators (`stats socket ... level admin`). */
import { connect } from "node:net"
import { Effect, FileSystem, Stream } from "effect"
import { MapsRefused } from "./Groups.ts"

/** A command with its lines, of at most 130 bytes each, has to fit into a buffer of haproxy, 16,384 bytes. */
const linesAtOnce = 120

const refused = (socket: string, reason: string) => new MapsRefused({ message: `haproxy at ${socket}: ${reason}` })

/** Connects to a path, or to a host and a port. */
const open = (socket: string) => {
  const [, host = "", port] = /^([^/]*):(\d+)$/.exec(socket) ?? []
  return port === undefined ? connect(socket) : connect(Number(port), host === "" ? "127.0.0.1" : host)
}

/** Sends one command, and returns what haproxy says. */
const ask = (socket: string, command: string) =>
  Effect.callback<string, MapsRefused>((resume) => {
    let answer = ""
    const connection = open(socket)
    connection
      .setEncoding("utf8")
      .once("connect", () => connection.write(`${command}\n`))
      .on("data", (text: string) => (answer += text))
      .once("error", (cause) => resume(Effect.fail(refused(socket, cause.message))))
      .once("end", () => resume(Effect.succeed(answer.trim())))
    return Effect.sync(() => connection.destroy())
  }).pipe(Effect.timeoutOrElse({ duration: "30 seconds", orElse: () => Effect.fail(refused(socket, "no answer")) }))

/** A command that haproxy answers with nothing. */
const tell = (socket: string, command: string) =>
  Effect.flatMap(ask(socket, command), (answer) => (answer === "" ? Effect.void : Effect.fail(refused(socket, answer))))

/** Gives haproxy the lines of a file as the next version of its map of this name, which is in use once it is committed. */
const prepare = Effect.fnUntraced(function* (socket: string, map: string) {
  const answer = yield* ask(socket, `prepare map ${map}`)
  const version = /^New version created: (\d+)$/.exec(answer)?.[1]
  if (version === undefined) return yield* refused(socket, answer)
  const fs = yield* FileSystem.FileSystem
  yield* fs.stream(map).pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.grouped(linesAtOnce),
    Stream.runForEach((lines) => tell(socket, `add map @${version} ${map} <<\n${lines.join("\n")}\n`))
  )
  return { commit: tell(socket, `commit map @${version} ${map}`) }
})

/**
 * Puts maps into a running haproxy, each in one step. What it has stays in use until all are there.
 *
 * @param socket the path of the socket, or its host and port
 * @param maps paths of files, as haproxy.cfg names them
 */
export const replace = (socket: string, maps: ReadonlyArray<string>) =>
  Effect.flatMap(
    Effect.forEach(maps, (map) => prepare(socket, map)),
    Effect.forEach(({ commit }) => commit, { discard: true })
  )
