/**
 * The holders of connections: each valid API key, and strangers. A key may hold a quarter of the connections, and strangers
 * together may hold half of them. Nothing is counted while a quarter or fewer are open.
 */
import { hash } from "node:crypto"

export interface Holder {
  /** The organization of the API key; undefined for strangers. */
  readonly organization: string | undefined
  connections: number
}

/** A connection. It has no holder before its first request. */
export interface Held {
  holder: Holder | undefined
}

const shareOfKey = 0.25
const shareOfStrangers = 0.5

/** The most keys that are remembered while they hold no connection. */
const mostRemembered = 10_000

/** The API key of an `Authorization` header, however that is spelled. */
export const keyOf = (authorization = "") => authorization.slice(authorization.lastIndexOf(" ") + 1)

const idOf = (authorization: string | undefined) => hash("sha256", keyOf(authorization), "base64")

const attribute = (connection: Held, holder: Holder | undefined) => {
  if (connection.holder !== undefined) connection.holder.connections -= 1
  if (holder !== undefined) holder.connections += 1
  connection.holder = holder
}

export const make = (mostConnections: number) => {
  const mostOfKey = Math.max(1, mostConnections * shareOfKey)
  const mostOfStrangers = Math.max(1, mostConnections * shareOfStrangers)
  /** By the hash of the key: valid ones that were used. */
  const holders = new Map<string, Holder>()
  const strangers: Holder = { organization: undefined, connections: 0 }

  const forget = () => {
    for (const [id, { connections }] of holders) if (connections === 0) holders.delete(id)
  }

  return {
    /**
     * Attributes one of the open connections to the sender of its next request. Returns the holder of too many. The first
     * request of a connection with an unknown key is let through: only its handler can tell whether the key is valid.
     */
    claim: (connection: Held, open: number, authorization: string | undefined): Holder | undefined => {
      if (open <= mostOfKey) {
        if (connection.holder !== undefined) attribute(connection, undefined)
        return undefined
      }
      const holder = holders.get(idOf(authorization)) ?? strangers
      const isNew = connection.holder !== holder
      const isExceeded =
        holder === strangers
          ? !isNew && strangers.connections > mostOfStrangers
          : holder.connections + Number(isNew) > mostOfKey
      if (isExceeded) return holder
      attribute(connection, holder)
      return undefined
    },

    /** Attributes a connection to the API key of its request, which belongs to an organization. */
    settle: (connection: Held, authorization: string | undefined, organization: string) => {
      // Not counted.
      if (connection.holder === undefined) return
      const id = idOf(authorization)
      if (holders.size >= mostRemembered && !holders.has(id)) forget()
      const holder = holders.get(id) ?? { organization, connections: 0 }
      holders.set(id, holder)
      attribute(connection, holder)
    },

    release: (connection: Held) => attribute(connection, undefined)
  }
}
