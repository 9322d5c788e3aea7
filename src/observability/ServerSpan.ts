/** The span of a request, by the semantic conventions of OpenTelemetry for HTTP servers. */
import { type Clock, type Context, type Effect, Exit, Option, Tracer } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { RequestFacts } from "./RequestFacts.ts"
import * as SpanEnd from "./SpanEnd.ts"
import * as TraceParent from "./TraceParent.ts"
import * as Tracing from "./Tracing.ts"
