/**
 * Detects errors from the beginning and end of a JSON-RPC response, without reading the middle.
 *
 * Protocol errors appear in the first bytes. A failed tool sets `isError`, usually after its content, so the last bytes
 * are checked too. A response with an error flag in the middle counts as a success.
 * Source: docs/reference/specification/virtual-server.md#audit, config.audit.detectApplicationErrors; JSON-RPC 2.0 section 5; MCP
 * 2025-11-25, tools.
 */
import { decodeString, skipSpace, skipString, skipValue, walkMembers } from '../json-prefix.ts'
import { redactText, cutBytes } from '../redact.ts'

/** Number of bytes that are checked at each end. */
export const scannedBytes = 512
const maxMessageBytes = 256

export interface RpcResponse {
  readonly kind: 'result' | 'error'
  /** JSON-RPC error code. */
  readonly code?: number
  /** JSON-RPC error message, redacted, at most 256 bytes. */
  readonly message?: string
  /** True for a result with `isError`. */
  readonly toolError?: boolean
}

/** `head` and `tail` are the two ends of one message. Returns undefined when the message is not a response. */
export function readResponse(head: string, tail: string): RpcResponse | undefined {
  let response: RpcResponse | undefined
  walkMembers(head, skipSpace(head, 0), (name, at) => {
    if (name === 'error' && head.charCodeAt(at) === 0x7b) response = readError(head, at)
    else if (name === 'result') {
      response = { kind: 'result', toolError: saysIsError(head, at) || endsWithIsError(tail, 2) }
    }
    return response === undefined && name !== 'method'
  })
  return response
}

/** True when a bare tool result has `isError`. */
export function isToolError(result: Buffer): boolean {
  const head = result.toString('utf8', 0, scannedBytes)
  if (saysIsError(head, skipSpace(head, 0))) return true
  return (
    result.length > scannedBytes && endsWithIsError(result.toString('utf8', result.length - scannedBytes), 1)
  )
}

/** Parses a JSON-RPC error object, or the beginning of one. */
export function readError(text: string, at = 0): RpcResponse {
  let code: number | undefined
  let message: string | undefined
  walkMembers(text, at, (name, valueAt) => {
    const end = skipValue(text, valueAt)
    if (name === 'code' && end > 0) code = Number(text.slice(valueAt, end))
    if (name === 'message' && text.charCodeAt(valueAt) === 0x22) {
      message = end > 0 ? decodeString(text.slice(valueAt, end)) : text.slice(valueAt + 1)
    }
    return code === undefined || message === undefined
  })
  return {
    kind: 'error',
    ...(code !== undefined && Number.isInteger(code) ? { code } : {}),
    ...(message === undefined ? {} : { message: safeMessage(message) }),
  }
}

/** Returns a message that is safe to record. */
export function safeMessage(message: string): string {
  return cutBytes(redactText(message), maxMessageBytes)
}

function saysIsError(text: string, at: number): boolean {
  let found = false
  walkMembers(text, at, (name, valueAt) => {
    if (name === 'isError') found = text.startsWith('true', valueAt)
    return name !== 'isError'
  })
  return found
}

const isErrorMember = /(?<=[{,\s])"isError"\s*:\s*true(?=[\s,}])/y

/** True when the text ends with a member `isError: true` of the object at depth `closers`. */
function endsWithIsError(tail: string, closers: number): boolean {
  for (let at = tail.indexOf('"isError"'); at >= 0; at = tail.indexOf('"isError"', at + 1)) {
    isErrorMember.lastIndex = at
    if (isErrorMember.test(tail) && closingDepth(tail, isErrorMember.lastIndex) === closers) return true
  }
  return false
}

/**
 * Returns the number of containers that the rest of the text closes, or -1 if the rest leaves a container or string
 * open.
 */
function closingDepth(text: string, from: number): number {
  let depth = 0
  for (let i = from; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 0x22) {
      i = skipString(text, i) - 1
      if (i < 0) return -1
    } else if (c === 0x7b || c === 0x5b) depth++
    else if (c === 0x7d || c === 0x5d) depth--
  }
  return depth > 0 ? -1 : -depth
}
