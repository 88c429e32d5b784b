import type { MirroredArgument } from '../../../mcp/index.ts'
import type { ArgumentCheck } from './pinning.ts'

/** A tool, prompt, resource or resource template that clients can address. */
export interface CatalogEntry {
  /** Name, URI or URI template that clients use. */
  readonly key: string
  readonly backend: string
  /** Name, URI or URI template that the backend uses. */
  readonly original: string
  /** Definition that clients see in lists. */
  readonly json: Buffer
  /** Definition that session-era clients see, if it differs from `json`. */
  readonly sessionJson?: Buffer
  /** Arguments that are mirrored in headers. Present only for tools. */
  readonly mirrored?: readonly MirroredArgument[]
  /** The check that pinning applies to the arguments of each call. */
  readonly check?: ArgumentCheck
  /** True for a resource that is not in any list. The backend might not have this resource. */
  readonly isUnlisted?: boolean
  /** Support for tasks that a session-era backend declares for the tool. Undefined if the tool does not support tasks. */
  readonly taskSupport?: 'required' | 'optional'
  /** True for a tool that its backend declares read-only or idempotent. */
  readonly repeatable?: boolean
}
