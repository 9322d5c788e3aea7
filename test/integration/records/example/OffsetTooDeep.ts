import { error, text } from "../../../../src/api/Errors.ts"

/** 400: a page so deep that reaching it would read a million records. */
export class OffsetTooDeep extends error<OffsetTooDeep>()("OffsetTooDeep", 400, {
  detail: text("offset is beyond 1000000: search on from the last updated_at instead")
}) {}
