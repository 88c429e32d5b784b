/** Messages between the server and the worker that runs a script. The messages contain JSON as UTF-8 bytes. */

/** A tool for scripts. */
export interface ScriptTool {
  /** The tool's name in the tool list. */
  readonly name: string
  /** Parameters in schema order, for positional arguments. */
  readonly parameters: readonly string[]
}

/** The tools available to a script, keyed by name. */
export interface ToolBinding {
  readonly tools: readonly ScriptTool[]
  /** Function names and the indexes of their tools. */
  readonly functions: readonly (readonly [name: string, tool: number])[]
  /** Ambiguous function names and the names of their tools. */
  readonly ambiguous: readonly (readonly [name: string, tools: readonly string[]])[]
}

export interface ScriptLimits {
  readonly maxSteps: number
  readonly maxBytes: number
  /** Maximum number of tool calls in flight. */
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

/** A tool call from a script. */
export interface ScriptCall {
  readonly tool: string
  /** Arguments as a raw JSON object. */
  readonly args: Uint8Array
  /** Number of bytes that the waiting script can hold in memory, as counted by its meter. */
  readonly held: number
}

/**
 * Result of an inner call. The kind `text` is a JSON string with text that may itself be JSON. The kind `content` is a
 * list of MCP content objects. This kind is used for several content items, or for content other than text. An error
 * ends the script. `unknown` means that the tool does not exist for the caller.
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
      /** JSON text of the value, encoded as a JSON string. */
      readonly text: Uint8Array
      /** The value as JSON, if it is an object. */
      readonly structured: Uint8Array | undefined
    }
  | { readonly kind: 'failed'; readonly message: string }

/**
 * Limits on worker output. The limits apply to a call's arguments and a script's result (in bytes), and to messages (in
 * characters).
 */
export const maxArgumentBytes = 8 * 1024 * 1024
export const maxResultBytes = 16 * 1024 * 1024
/** Maximum number of escapes in a result. Reading a result processes each escape separately. */
export const maxResultEscapes = 2 * 1024 * 1024
export const maxMessageCharacters = 64 * 1024
/** Maximum length of a tool name in a message, in characters. */
export const maxName = 1024

/** Maximum total length of the returned log lines, in characters. */
export const maxLogCharacters = 64 * 1024
