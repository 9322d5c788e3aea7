/** The API keys whose connections are counted apart from those of strangers. */
import { assert, it } from "@effect/vitest"
import * as Shares from "../../../src/http/Shares.ts"

it("Past ten thousand keys, those that hold no connection are forgotten, and no other", () => {
  const shares = Shares.make(8)
  const open = (key: string) => {
    const connection: Shares.Held = { holder: undefined }
    shares.claim(connection, 8, `Bearer ${key}`)
    return connection
  }
  const use = (key: string) => {
    const connection = open(key)
    shares.settle(connection, `Bearer ${key}`, "org")
    return connection
  }
  const isKnown = (key: string) => {
    const connection = open(key)
    const isOfKey = connection.holder?.organization === "org"
    shares.release(connection)
    return isOfKey
  }
  use("held")
  for (let index = 1; index < 10_000; index++) shares.release(use(`${index}`))
  assert.deepStrictEqual(["held", "1", "9999", "new"].map(isKnown), [true, true, true, false])
  shares.release(use("9999"))
  assert.isTrue(isKnown("1"))
  shares.release(use("new"))
  assert.deepStrictEqual(["held", "1", "9999", "new"].map(isKnown), [true, false, false, true])
})
