/** What passes between the server and the worker that runs a script. JSON travels as bytes of UTF-8. */

/** A tool as scripts see it. */
export interface ScriptTool {
  /** As the tool is called in a list. */
  readonly name: string
  /** Its arguments in the order of its schema, for calls without names. */
  readonly parameters: readonly string[]
}

/** What a script can name. */
export interface ToolBinding {
  readonly tools: readonly ScriptTool[]
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

export type ToScriptWorker =
  | {
      readonly kind: 'run'
      readonly script: string
      readonly data: Uint8Array | undefined
      readonly binding: ToolBinding
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
 * How an inner call ended: a value, a text (as a JSON string) that may be JSON, content of other kinds or several ones (a list of MCP content
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
  | {
      readonly kind: 'done'
      /** The JSON of the value as a JSON string. */
      readonly text: Uint8Array
      /** The JSON of the value, when it is an object. */
      readonly structured: Uint8Array | undefined
    }
  | { readonly kind: 'failed'; readonly message: string }

/** What leaves a worker at most: the arguments of a call, the result of a script (bytes), a message (characters). */
export const maxArgumentBytes = 8 * 1024 * 1024
export const maxResultBytes = 16 * 1024 * 1024
/** Whoever reads the result goes through what is escaped in it one by one. */
export const maxResultEscapes = 2 * 1024 * 1024
export const maxMessageCharacters = 64 * 1024
/** The name of a tool in a message, in characters. */
export const maxName = 1024

/** Lines of logs that are returned, and their sum in characters. */
export const maxLogCharacters = 64 * 1024
