/** Writes the maps of haproxy from the databases of the groups. */
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Groups from "./Groups.ts"
import * as Haproxy from "./Haproxy.ts"
import * as MapFile from "./MapFile.ts"
import * as Owners from "./Owners.ts"

/**
 * Writes `keys.map` and `organizations.map`, and puts them into running haproxies.
 *
 * @param file the path of `groups.json`
 * @param places the folder of the maps, as haproxy.cfg names it, and the sockets of running haproxies
 * @returns how many keys and organizations they have
 */
export const update = Effect.fnUntraced(
  function* (file: string, { folder, sockets }: { readonly folder: string; readonly sockets: ReadonlyArray<string> }) {
    const groups = yield* Groups.read(file)
    const databases = yield* Owners.open(groups)
    const { homes, lines } = yield* Owners.organizations(databases, groups)
    const keys = yield* MapFile.write(join(folder, "keys.map"), Owners.keys(databases, homes))
    const organizations = yield* MapFile.write(join(folder, "organizations.map"), Stream.fromIterable(lines))
    yield* keys.replace
    yield* organizations.replace
    yield* Effect.forEach(sockets, (socket) => Haproxy.replace(socket, [keys.path, organizations.path]))
    return { keys: keys.count, organizations: organizations.count }
  },
  Effect.catchTag("PlatformError", ({ message }) => new Groups.MapsRefused({ message })),
  Effect.scoped,
  Effect.provide(Reactivity.layer)
)
