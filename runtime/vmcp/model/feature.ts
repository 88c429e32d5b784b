/** The contract of a feature that changes which tools clients see (tool search, scripts). */
import type { Link, Operation, Perform } from './operation.ts'

/** A tool of the gateway itself. */
export interface OwnTool {
  readonly name: string
  /** `inside` goes through everything that stands inside of the feature's surface, guards included. */
  run(operation: Operation, inside: Perform): ReturnType<Perform>
}

/** Something that changes how clients see the tools. */
export interface Feature {
  readonly surface: Link
  /** Called by their own names, behind the guards; being switched on permits them, a policy can still forbid them. */
  readonly tools: readonly OwnTool[]
  /** What an operator should know: names and states only. */
  readonly problems?: () => readonly string[]
  close(): Promise<void>
}
