/** The contract of a feature that changes which tools clients see (tool search, scripts). */
import type { Link, Operation, Perform } from './operation.ts'

/** One of Gatehouse's own tools. */
export interface OwnTool {
  readonly name: string
  /** Runs the tool. `inside` runs an operation through the checks and all other links inside the feature's surface. */
  run(operation: Operation, inside: Perform): ReturnType<Perform>
}

export interface Feature {
  readonly surface: Link
  /** Tools that clients call by name. Enabling the feature permits these tools, but a policy can still forbid them. */
  readonly tools: readonly OwnTool[]
  /** Returns problems for operators. The texts contain only names and states. */
  readonly problems?: () => readonly string[]
  close(): Promise<void>
}
