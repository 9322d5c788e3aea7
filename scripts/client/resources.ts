/** The resources of the client as TypeScript. */
import { String as Text } from "effect"
import type { Resource } from "./Document.ts"
import { comment, indented } from "./JsonSchema.ts"

/** `consumption-logs` as `consumptionLogs`. */
const camel = (name: string) => Text.uncapitalize(name.split("-").map(Text.capitalize).join(""))

const psp = /^psp-/

const isPsp = ({ name }: Resource) => psp.test(name)

/** The name of a resource as a member of the client, or of its `psp`. */
const memberName = ({ name }: Resource) => camel(name.replace(psp, ""))

const verbs = ["search", "get", "changes"] as const

/** The `ResourceInfo` of each resource, and their list. */
export const listOf = (resources: ReadonlyArray<Resource>): string => {
  const infos = resources.map(({ endpoints, kind, name, order }) => {
    const existing = verbs.filter((verb) => endpoints[verb] !== undefined)
    return [camel(name), { name, verbs: existing, ...order, ...(kind === "live" && { live: true }) }] as const
  })
  return `const info = ${JSON.stringify(Object.fromEntries(infos), null, 2)} satisfies Record<string, ResourceInfo>

/** The resources of the API, by their names in its paths. */
export const resources: ReadonlyArray<ResourceInfo> = Object.values(info)`
}

const typeOf = ({ endpoints: { get, search }, item, kind }: Resource) => {
  const filters = `Types.${search?.request.name}`
  return {
    live: `LiveResource<Types.${item}, ${filters}>`,
    own: `OwnResource<Types.${item}>`,
    keyed: `KeyedResource<Types.${item}, ${filters}, Types.${get?.request.name}>`,
    records: `RecordResource<Types.${item}, ${filters}>`
  }[kind]
}

const member = (resource: Resource): ReadonlyArray<string> => {
  const { description, kind, name } = resource
  const words = name.replace(psp, "").replaceAll("-", " ")
  const text = kind === "live" ? `The payment processor's ${words} of one clinic, read live.` : description
  return [
    ...comment({ description: text ?? `The ${words}.` }, "response"),
    `readonly ${memberName(resource)}: ${typeOf(resource)}`
  ]
}

const made = (resource: Resource) => `make.${resource.kind}(info.${camel(resource.name)})`

/** The class that the client extends. */
export const clientClass = (resources: ReadonlyArray<Resource>): string => {
  const live = resources.filter(isPsp)
  const others = resources.filter((resource) => !isPsp(resource))
  return [
    "/** The resources of the API, each with its operations. */",
    "export class Resources {",
    ...indented([
      ...others.flatMap(member),
      "/** Live reads of the payment processor account that is connected to a clinic. */",
      "readonly psp: {",
      ...indented(live.flatMap(member)),
      "}",
      "",
      "constructor(make: Make) {",
      ...indented([
        ...others.map((resource) => `this.${memberName(resource)} = ${made(resource)}`),
        "this.psp = {",
        live.map((resource) => `  ${memberName(resource)}: ${made(resource)}`).join(",\n    "),
        "}"
      ]),
      "}"
    ]),
    "}"
  ].join("\n")
}
