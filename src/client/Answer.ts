/** Promises of results that can also show the response. */

/** A result with the response that held it. */
export interface WithResponse<A> {
  readonly data: A
  readonly status: number
  readonly headers: Headers
  /** The id of the request, which the logs of the service name. */
  readonly requestId: string | undefined
}

/** A promise of a result. */
export interface Answer<A> extends Promise<A> {
  /**
   * The result with its response.
   *
   * @example
   * const { data, headers, requestId } = await client.charges.get("charge_1").withResponse()
   */
  readonly withResponse: () => Promise<WithResponse<A>>
}

export const answerOf = <A>(work: Promise<WithResponse<A>>): Answer<A> => {
  const result = work.then(({ data }) => data)
  const withResponse = () => {
    // A failure is reported by the promise that is returned.
    result.catch(() => {})
    return work.then((whole) => whole)
  }
  return Object.assign(result, { withResponse })
}
