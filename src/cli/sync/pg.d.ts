/** The part of the package `pg` that a copy uses. The package has no types of its own. */
declare module "pg" {
  interface Connection {
    query(text: string): void
    sendCopyFromChunk(chunk: Uint8Array): void
    endCopyFrom(): void
  }

  /** A query that handles the messages of the server by itself. */
  interface Submittable {
    submit(connection: Connection): void
    handleCopyInResponse(connection: Connection): void
    handleCommandComplete(): void
    handleReadyForQuery(): void
    handleError(error: unknown): void
  }

  interface Result {
    readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>>
  }

  export class Client {
    constructor(config: object)
    on(event: "error", listener: () => void): this
    connect(): Promise<unknown>
    query(query: Submittable): void
    query(text: string, params: ReadonlyArray<unknown>): Promise<Result>
    end(): Promise<void>
  }
}
