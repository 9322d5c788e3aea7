/** What the OpenAPI document says beyond the endpoints. */
import { OpenApi } from "effect/http-api"

export const documentation = OpenApi.annotations({ title: "Practice data API", version: "3.0" })
