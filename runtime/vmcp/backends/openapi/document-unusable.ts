import { GatehouseError } from '../../../../schemas/index.ts'

/** No usable document has been read, so the backend has no tools. */
export class DocumentUnusable extends GatehouseError {
  readonly reason: string

  constructor(reason: string) {
    super('BACKEND_FAILED', { detail: `the OpenAPI document cannot be used: ${reason}` })
    this.reason = reason
  }
}

/** Returns the reason why a backend has no tools; undefined if the document is not the cause. */
export function documentReason(error: unknown): string | undefined {
  let cause = error
  for (let depth = 0; depth < 8 && cause instanceof Error; depth++) {
    if (cause instanceof DocumentUnusable) return cause.reason
    cause = cause.cause
  }
  return undefined
}
