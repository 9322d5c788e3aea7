/** What `send` delivers: the items that the flags name, and those of a file. */
import { Effect, FileSystem, Schema, SchemaIssue, Stdio, Stream } from "effect"
import { InvoiceDeletions } from "../api/IntakeApi.ts"
import { Refused } from "./Refused.ts"
import { misused } from "./Usage.ts"

/** Where items are named. */
export interface Named {
  readonly invoices: ReadonlyArray<string>
  readonly lines: ReadonlyArray<string>
  /** A file of JSON, as the intake takes it; `-` for standard input. */
  readonly files: ReadonlyArray<string>
}

const decode = Schema.decodeEffect(Schema.fromJsonString(InvoiceDeletions))

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

const textOf = Effect.fnUntraced(function* (file: string) {
  if (file !== "-") return yield* Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFileString(file))
  const { stdin } = yield* Stdio.Stdio
  return yield* Stream.mkString(Stream.decodeText(stdin))
})

const readFile = (file: string) =>
  textOf(file).pipe(
    Effect.flatMap((text) => decode(text)),
    Effect.catchTags({
      PlatformError: ({ message }) => new Refused({ message: `${file} cannot be read: ${message}` }),
      SchemaError: ({ issue }) => {
        const [first] = issuesOf(issue).issues
        const where = first?.path?.map(String).join(".") ?? ""
        return new Refused({
          message: `${file} is not what the intake takes. ${where === "" ? "" : `${where}: `}${first?.message ?? ""}`
        })
      }
    })
  )

/** The delivery. */
export const of = Effect.fnUntraced(function* ({ files, invoices, lines }: Named) {
  const read = yield* Effect.forEach(files, readFile)
  const delivery = {
    invoices: [...invoices.map((invoice_id) => ({ invoice_id })), ...read.flatMap((each) => each.invoices ?? [])],
    invoice_lines: [
      ...lines.map((invoice_line_id) => ({ invoice_line_id })),
      ...read.flatMap((each) => each.invoice_lines ?? [])
    ]
  }
  if (delivery.invoices.length + delivery.invoice_lines.length === 0) {
    return yield* misused(["send"], "Name what to delete: --invoice, --invoice-line or --file.")
  }
  return delivery
})
