/** What passes between the server and the worker that runs a script. JSON travels as bytes of UTF-8. */

/** A tool as scripts see it. */
export interface BoundTool {
  /** As the tool is called in a list. */
  readonly name: string
  /** Its arguments in the order of its schema, for calls without names. */
  readonly parameters: readonly string[]
}

/** What a script can name. */
export interface Binding {
  readonly tools: readonly BoundTool[]
  /** Function names, and the index of the tool behind each. */
  readonly functions: readonly (readonly [name: string, tool: number])[]
  /** Function names that several tools would have, with the names of those. */
  readonly ambiguous: readonly (readonly [name: string, tools: readonly string[]])[]
}

export interface ScriptLimits {
  readonly maxSteps: number
  readonly maxBytes: number
  /** Tool calls in flight at once. */
  readonly maxCalls: number
}

export type ToWorker =
  | {
      readonly kind: 'run'
      readonly script: string
      readonly data: Uint8Array | undefined
      readonly binding: Binding
      readonly limits: ScriptLimits
    }
  | { readonly kind: 'response'; readonly id: number; readonly response: ToolResponse }

/** A call that a script makes. */
export interface ScriptCall {
  readonly tool: string
  /** Raw JSON object. */
  readonly args: Uint8Array
  /** Bytes that the script may hold while it waits, as its meter has them. */
  readonly held: number
}

/**
 * How an inner call ended: a value, a text that may be JSON, content of other kinds or several ones (a list of MCP content
 * objects), nothing, or an error that ends the script; `unknown`: there is no such tool for the caller.
 */
export type ToolResponse =
  | { readonly kind: 'json'; readonly bytes: Uint8Array }
  | { readonly kind: 'text'; readonly bytes: Uint8Array }
  | { readonly kind: 'content'; readonly bytes: Uint8Array }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'error'; readonly message: string }

export type FromWorker =
  | ({ readonly kind: 'call'; readonly id: number } & ScriptCall)
  | { readonly kind: 'print'; readonly line: string; readonly path: readonly number[] }
  | { readonly kind: 'done'; readonly value: Uint8Array; readonly isObject: boolean }
  | { readonly kind: 'failed'; readonly message: string }

/** Lines of logs that are returned, and their sum in characters. */
export const MAX_LOG_CHARACTERS = 64 * 1024
