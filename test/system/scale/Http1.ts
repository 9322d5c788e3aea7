/**
 * The least of HTTP/1.1 that a load needs: prepared bytes go out, and of an answer it keeps the status and the size.
 * A request is one that was written; what became of it is never hidden by trying again.
 */
import { connect, type Socket } from "node:net"
import { Data, Effect } from "effect"

/** Nothing listens at the port: no request was sent. */
export class Refused extends Data.TaggedError("Refused")<{ readonly code: string }> {}

/** The connection ended before the answer was whole. */
export class Lost extends Data.TaggedError("Lost")<{ readonly code: string }> {}

/** An answer. */
export interface Reply {
  readonly status: number
  /** The size of head and body together. */
  readonly bytes: number
}

/** A request as bytes. */
export interface Request {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/** The bytes of a request with a body whose length is told. */
export const bytesOf = ({ method = "POST", path, headers = {}, body = "" }: Request) => {
  const content = Buffer.from(body)
  const all = { host: "127.0.0.1", "content-length": String(content.length), ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`), content])
}

const headEnd = "\r\n\r\n"
const lastChunk = "0\r\n\r\n"

/** Reads one answer, however it is cut. The body of an answer that is sent in chunks is JSON: it holds no line end. */
const makeReader = () => {
  let head = ""
  let bytes = 0
  let expected = Infinity
  let tail = ""
  let isRead = false
  return {
    head: () => head,
    /** The answer, once it is whole. */
    push: (chunk: Buffer): Reply | undefined => {
      bytes += chunk.length
      if (!isRead) {
        head += chunk.toString("latin1")
        const end = head.indexOf(headEnd)
        if (end === -1) return undefined
        isRead = true
        tail = head.slice(-lastChunk.length)
        head = head.slice(0, end).toLowerCase()
        const length = /\r\ncontent-length: *(\d+)/.exec(head)?.[1]
        if (length !== undefined) expected = end + headEnd.length + Number(length)
        else if (!head.includes("\r\ntransfer-encoding:")) expected = end + headEnd.length
      } else tail = (tail + chunk.toString("latin1")).slice(-lastChunk.length)
      if (expected === Infinity ? tail !== lastChunk : bytes < expected) return undefined
      return { status: Number(head.slice(9, 12)), bytes }
    }
  }
}

const codeOf = (error: NodeJS.ErrnoException) => error.code ?? error.message

const make = (socket: Socket) => {
  let isOpen = true
  let code = "closed"
  socket.once("close", () => (isOpen = false))
  socket.on("error", (error) => {
    isOpen = false
    code = codeOf(error)
    socket.destroy()
  })
  return {
    socket,
    /** Whether another request may be written. */
    isOpen: () => isOpen,
    close: Effect.sync(() => void socket.destroy()),
    /** Writes a request and waits for its answer. One at a time. */
    ask: (request: Uint8Array) =>
      Effect.callback<Reply, Lost>((resume) => {
        const reader = makeReader()
        const onClose = () => resume(Effect.suspend(() => new Lost({ code })))
        const onData = (chunk: Buffer) => {
          const reply = reader.push(chunk)
          if (reply === undefined) return
          stop()
          if (/\r\nconnection: *close/.test(reader.head())) {
            isOpen = false
            socket.end()
          }
          resume(Effect.succeed(reply))
        }
        const stop = () => socket.off("data", onData).off("close", onClose)
        if (!isOpen) return onClose()
        socket.on("data", onData).once("close", onClose).write(request)
        return Effect.sync(stop)
      })
  }
}

export type Connection = ReturnType<typeof make>

/** Opens a connection. Whoever opens it closes it. */
export const open = (port: number) =>
  Effect.callback<Connection, Refused>((resume) => {
    const socket = connect(port, "127.0.0.1")
    const onError = (error: NodeJS.ErrnoException) => {
      socket.destroy()
      resume(new Refused({ code: codeOf(error) }))
    }
    socket.setNoDelay(true)
    socket.once("error", onError)
    socket.once("connect", () => {
      socket.off("error", onError)
      resume(Effect.succeed(make(socket)))
    })
    return Effect.sync(() => socket.destroy())
  })
