/** Runs one kind of work at a time. Callers that request the same kind share its result. */
export class ExclusiveWork<Kind extends string> {
  #flight: { readonly kind: Kind; readonly done: Promise<void> } | undefined

  async once(kind: Kind, run: () => Promise<void>): Promise<void> {
    while (this.#flight && this.#flight.kind !== kind) await this.#flight.done.catch(() => undefined)
    this.#flight ??= {
      kind,
      done: run().finally(() => {
        this.#flight = undefined
      }),
    }
    await this.#flight.done
  }
}
