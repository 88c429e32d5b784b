import type { MirroredArgument } from '../../../mcp/index.ts'
import type { ArgumentCheck } from './pinning.ts'

/** A tool, prompt, resource or resource template that clients can name. */
export interface CatalogEntry {
  /** What clients call it: name, URI or URI template. */
  readonly key: string
  readonly backend: string
  /** What the backend calls it. */
  readonly original: string
  /** As clients see it in a list. */
  readonly json: Buffer
  /** As clients of the session era see it, where that is another form. */
  readonly sessionJson?: Buffer
  /** Arguments that are mirrored in headers (tools). */
  readonly mirrored?: readonly MirroredArgument[]
  /** Arguments of a call must pass it (pinning). */
  readonly check?: ArgumentCheck
  /** True for a resource that no list contains. Its backend may not have it. */
  readonly isUnlisted?: boolean
  /** True for a tool that its backend declares read-only or idempotent. */
  readonly repeatable?: boolean
}
