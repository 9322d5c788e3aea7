/** Replaces the maps of a running haproxy, over its socket for administrators (`stats socket ... level admin`). */
import { connect } from "node:net"
import { Effect, Stream } from "effect"
import { MapsRefused } from "./Groups.ts"
import { piecesOf } from "./MapFile.ts"

/** A command and its payload have to fit into a buffer of haproxy, 16,384 bytes. */
const payloadBytes = 12_000

/** How long haproxy may take to answer. */
const patience = "30 seconds"

const refused = (socket: string, reason: string) => new MapsRefused({ message: `haproxy at ${socket}: ${reason}` })

/** A path, or a host and a port. */
const targetOf = (socket: string) => {
  const address = /^([^/]*):(\d+)$/.exec(socket)
  return address === null
    ? { path: socket }
    : { host: address[1] === "" ? "127.0.0.1" : address[1], port: Number(address[2]) }
}

/** Sends one command, and returns what haproxy says. */
const ask = (socket: string, command: string) =>
  Effect.callback<string, MapsRefused>((resume) => {
    let answer = ""
    const connection = connect(targetOf(socket), () => connection.write(`${command}\n`))
    connection
      .setEncoding("utf8")
      .on("data", (text: string) => (answer += text))
      .once("error", (cause) => resume(Effect.fail(refused(socket, cause.message))))
      .once("end", () => resume(Effect.succeed(answer.trim())))
    return Effect.sync(() => connection.destroy())
  }).pipe(Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(refused(socket, "no answer")) }))

/** A command that haproxy answers with nothing. */
const tell = (socket: string, command: string) =>
  Effect.flatMap(ask(socket, command), (answer) => (answer === "" ? Effect.void : Effect.fail(refused(socket, answer))))

/** Gives haproxy the lines of a file as the next version of its map of this name, which is in use once it is committed. */
const prepare = Effect.fnUntraced(function* (socket: string, map: string) {
  const answer = yield* ask(socket, `prepare map ${map}`)
  const version = /^New version created: (\d+)$/.exec(answer)?.[1]
  if (version === undefined) return yield* refused(socket, answer)
  yield* Stream.runForEach(piecesOf(map, payloadBytes), (lines) =>
    tell(socket, `add map @${version} ${map} <<\n${lines}`)
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
