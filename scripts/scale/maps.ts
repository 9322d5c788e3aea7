/**
 * Writes the maps by which haproxy finds the group of an organization, from the databases of the groups.
 *
 *     node scripts/scale/maps.ts groups.json --folder /etc/haproxy/maps && systemctl reload haproxy
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { writeMaps } from "./groups.ts"

const command = Command.make(
  "maps",
  {
    file: Argument.String("groups.json").pipe(Argument.withDescription("The groups and their databases")),
    folder: Flag.String("folder").pipe(
      Flag.withDefault("/etc/haproxy/maps"),
      Flag.withDescription("Where haproxy.cfg has its maps, /etc/haproxy/maps by default")
    )
  },
  Effect.fn(function* ({ file, folder }) {
    const { keys, organizations } = yield* writeMaps(file, folder)
    yield* Console.log(`${keys} API keys and ${organizations} organizations are in the maps`)
  })
).pipe(Command.withDescription("Write the maps of haproxy from the databases of the groups"))

Command.runWith(command, { version: "1" })(process.argv.slice(2)).pipe(
  Effect.tapErrorTag("MapsRefused", ({ message }) => Console.error(message)),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({ disableErrorReporting: true })
)
