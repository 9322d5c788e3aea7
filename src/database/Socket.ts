/** Sockets to a Postgres. */
import { Buffer } from "node:buffer"
import { connect, type Socket } from "node:net"
import { formatHost } from "./ConnectionUrl.ts"

/**
 * The bytes that a socket reads at once. The parser of the client copies them into buffers of 64 KiB: two times this and
 * the beginning of a record fit into one. Of itself Node allocates 64 KiB for each read, for which the parser takes 128:
 * then pages of 1,000 records cost a third more CPU, and six times as many full garbage collections.
 */
const readSize = 30 * 1024

interface Address {
  readonly host: string
  readonly port: number
  readonly isEncrypted: boolean
}

/** Opens a socket. Keepalives find out that a silent server is gone. */
export const open = ({ host, isEncrypted, port }: Address): Socket => {
  const address = host.startsWith("/")
    ? { path: formatHost({ host, port }) }
    : { host, port, keepAlive: true, keepAliveInitialDelay: 30_000, noDelay: true }
  // TLS reads by itself.
  if (isEncrypted) return connect(address)
  const socket: Socket = connect({
    ...address,
    onread: {
      buffer: Buffer.allocUnsafeSlow(readSize),
      // The next read overwrites the bytes: the parser has copied them when this returns, which a test holds.
      callback: (size, buffer) => {
        socket.emit("data", buffer.subarray(0, size))
        return true
      }
    }
  })
  return socket
}
