/** The documentation of keeping a copy in step. */
import { completeHeader, lagHeader, longestWait, maximumChanges, maximumLimit } from "./records/Requests.ts"

const half = maximumLimit / 2

export const syncDescription = `
## Keep a copy in step

### By changes

\`POST /changes\` is the way to keep a copy: one feed of all resources, in the order of their transactions. No change is skipped, whatever writers do with times and transactions.

1. **Ask** with \`limit\` ${maximumChanges} and the cursor that you saved; the first time without one: you get every record. \`resources\` limits the feed to some.
2. **Apply** a 200: take the items of \`body\` in their order. Insert or replace a \`record\` by its \`id\`, delete a \`removed\` id. Save the copy and \`cursor\` together, in one transaction. After a crash or a restart, resume from what was saved.
3. **Repeat** at once while \`has_more\` is true. When it is false, the copy is up to date: poll again later, or at once with \`wait\` (up to ${longestWait} seconds), and the response arrives as soon as there is a change.
4. **Try again**, with the same cursor: after 503 or 429 when \`Retry-After\` says, after a timeout or a broken connection a few seconds later.
5. **Begin a resource again** after an item with \`reset\`: its table was emptied, or you ask for it for the first time. Its records follow in this response and the next ones. When \`has_more\` is false, delete those that did not.
6. **Start again** after 410: forget the cursor and go to step 1, with an empty copy, or as if each resource had a \`reset\`. The database was restored or upgraded, or lost its last commits in a failover.

A 400 means that the cursor is damaged, or belongs to another feed or organization.

Guarantees:

- Whenever \`is_consistent\` is true, the copy equals a state that the database had: each invoice with all its lines, each payment with its charge. Apply the responses up to that one in one transaction, and whoever queries the copy sees nothing else.
- On a primary, \`is_consistent\` is true whenever \`has_more\` is false, and no open transaction delays the changes of others. A service that reads from a replica shows changes that its replica has, and waits for older transactions: \`${lagHeader}\` is that delay in seconds.
- A record may arrive again, but never an older state of it after a newer one. A transaction that fits into a response is not cut apart.
- Records that are marked as deleted have an item with their \`record\`. Rows that were deleted since your first request have one with \`removed\`, also those that the copy never had.
- \`schema\` changes when a field or a resource is added. The records with the new field follow as changes.
- Writers that disable the triggers of a table are not covered.

\`POST /X/changes\` is the feed of one resource: records in \`body\`, ids in \`removed\`; step 5 is a 410 there. Once the header \`${completeHeader}\` is \`true\`, you have every record that existed when you began without a cursor, except those changed since, which arrive as changes.

### By search alone

If you cannot use changes, allow for three things: a time is stamped before its transaction commits, so that records appear behind a reader; a record that is changed moves to the end of the order, so that those after it move up and an \`offset\` skips one; and times are shown in milliseconds, of which one may hold more records than a page.

The time of a resource is the field that its search is ordered by, and the filter is \`updated_at_since\` or \`modified_since\`.

A round reads the pages one after the other, never at the same time:

1. **Ask** with \`limit\` ${maximumLimit}, with the filter set to the start of the round (the first round has none), and with \`include_deleted: true\` where the search has it.
2. **Apply** each page at once: insert or replace its records by their \`id\`. The last read wins, even if its time is earlier: a transaction that began earlier may commit later.
3. **Go on** with pages that overlap by one record. Where the time T of the last record is later than the filter, or there is no filter yet, set the filter to T, and \`offset\` to the number of this page's records that have the time T, less one. Otherwise add the number of records of the page, less one, to \`offset\`.
4. **Step back** where the first record of a page with an \`offset\` is not one that this round has read with the time of the filter, or there is none: records have moved. Apply the page, but do not go on from it: ask again with \`offset\` ${half} lower, at least 0, until it fits.
5. **End** the round at a page that fits and has less than ${maximumLimit} records. The next round starts some minutes before the last time seen or before the \`Date\` of this round's first response, whichever is earlier. Save that start. A round that was interrupted begins again.

Clinics have no time to ask for, so every round reads all of them: leave out the filter, and take all of them to have one time.

Guarantee: when a round ends, the copy has the last committed state of every record that was not changed while the round was read. That holds if the minutes are more than the longest writing transaction takes, added to how far a replica lags and clocks differ, and if writers stamp the time of their transaction. Deleted rows are not noticed. A round ends if pages are read faster than records are changed.
`.trim()
