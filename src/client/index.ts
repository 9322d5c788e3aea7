/** The client of the data API by promises. */
export * as Errors from "../api/Errors.ts"
export * as PracticeData from "./PracticeData.ts"
