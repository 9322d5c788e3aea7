/** Accounts of a processor, for the tests of reading them. */
import { Array } from "effect"
import type { PspObject } from "../../../src/api/Psp.ts"
import type { Accounts } from "../../../src/psp/PspClient.ts"
import { kinds } from "./rules.ts"

/** A key of the processor that is no such thing. */
export const secretKey = "sk_test_0123456789abcdefghijkl"

/** The accounts: with many objects, with its own few, with none, and that of the key itself. */
export const [oak, harbor, empty, platform] = ["acct_1Oakridge", "acct_1Harbor", "acct_1Empty", "acct_1Platform"]

const start = 1_767_600_000

/** The objects made in the same second, so that pages end in the middle of one. */
const atOnce = 8

const many = (prefix: string, count: number, more: (index: number) => object = () => ({})) =>
  Array.makeBy(count, (index): PspObject => ({
    id: `${prefix}_${String(index + 1).padStart(5, "0")}`,
    object: prefix,
    created: start + Math.floor(index / atOnce),
    ...more(index)
  }))

/** Any fields of an object of the processor. */
const odd: object = JSON.parse(`{
  "amount": -0.1, "huge": 9007199254740991, "tiny": 1e-7, "none": null, "empty": "", "yes": true,
  "metadata": {}, "list": [[], {}, null, 0], "0": "a number for a name", "a b": {"\\u0000": "\\ud83d\\ude00 \\u2028 \\"q\\" </script>"},
  "__proto__": {"polluted": true}, "constructor": "x", "toString": 1, "object": "list", "has_more": false, "url": "/v1/x",
  "refunds": {"object": "list", "data": [{"id": "re_1", "error": {"message": "not one"}}], "has_more": true, "url": "/v1/refunds"},
  "fee_decimal": "1.10", "lastResponse": 1, "requestId": "mine", "error": null, "deleted": false
}`)

/** The objects of which a thousand are of a certain time. */
const transactions = many("txn", 1040, (index) => ({ object: "balance_transaction", amount: index }))

const [earliest, latest] = [start + 3, start + 127]

/** A thousand objects and the seconds that they are made in, both included; others are older and newer. */
export const thousand = {
  createdGte: earliest,
  createdLte: latest,
  ids: transactions
    .filter(({ created }) => created >= earliest && created <= latest)
    .map(({ id }) => id)
    .toReversed()
}

export const accounts: Accounts = {
  [oak]: {
    ...Object.fromEntries(kinds.map((kind) => [kind, many(`${kind}-oak`, 20, (index) => (index === 13 ? odd : {}))])),
    "balance-transactions": transactions
  },
  [harbor]: Object.fromEntries(kinds.map((kind) => [kind, many(`${kind}-harbor`, 3)])),
  [empty]: {},
  [platform]: Object.fromEntries(kinds.map((kind) => [kind, many(`${kind}-platform`, 3)]))
}
