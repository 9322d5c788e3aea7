/** A TCP proxy that can be cut, so that a program loses one of its databases while the database itself stays up. */
import { createServer, connect, type Socket } from "node:net"
import { Effect } from "effect"
import * as Listening from "./Listening.ts"

/** How a cut proxy treats its peers: as a network that swallows everything, or as a broken one. */
type Cut = "swallow" | "reset"

/** A proxy to an address, which may be another one for later connections. It is whole at first. */
export const make = Effect.fnUntraced(function* (target: () => { readonly hostname: string; readonly port: string }) {
  const connections = new Map<Socket, Socket>()
  let state: Cut | "whole" = "whole"

  const accept = (near: Socket) => {
    const { hostname, port: farPort } = target()
    const far = connect(Number(farPort), hostname)
    connections.set(near, far)
    far.on("error", () => far.destroy())
    near.once("close", () => {
      connections.delete(near)
      far.destroy()
    })
    far.once("close", () => near.destroy())
    if (state === "reset") near.resetAndDestroy()
    if (state !== "whole") return
    near.pipe(far)
    far.pipe(near)
  }

  const { port } = yield* Listening.on(createServer({ pauseOnConnect: true }, accept))
  return {
    host: "127.0.0.1",
    port,
    /** Cuts new and existing connections. */
    cut: (how: Cut) =>
      Effect.sync(() => {
        state = how
        for (const [near, far] of connections) {
          if (how === "swallow") {
            near.unpipe().pause()
            far.unpipe().pause()
          } else near.resetAndDestroy()
        }
      })
  }
})

/** A proxy before the server of a URL, and the URL that leads through it. */
export const through = Effect.fnUntraced(function* (direct: string) {
  const target = new URL(direct)
  const proxy = yield* make(() => target)
  return { proxy, url: Object.assign(new URL(direct), { host: `${proxy.host}:${proxy.port}` }).href }
})
