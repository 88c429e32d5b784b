/**
 * Writes JSON-RPC messages: results and errors. The bytes of results stay unchanged. Errors come from the error table.
 *
 * An error for an unknown request has no `id` member, because strict clients reject `"id":null`.
 * Source: JSON-RPC 2.0 section 5; MCP 2025-11-25, basic, "Responses".
 */
import { GatehouseError } from '../../schemas/index.ts'
import { JsonObject } from './json/object.ts'
import { comma, objectEnd } from './json/bytes.ts'

/** Returns `{"jsonrpc":"2.0","id":…,"result":…}`. `id` and `result` are JSON text. */
export function resultMessage(id: string, result: Buffer | string): Buffer {
  return Buffer.concat([Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`), bytes(result), objectEnd])
}

/** Like `resultMessage`, but returns pieces, so a large result is not copied. */
export function resultParts(id: string, result: Buffer): readonly Buffer[] {
  return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`), result, objectEnd]
}

/** Returns the members of an object except those in `names`, without braces and with a leading comma. */
export function otherMembers(object: Buffer, names: readonly string[]): readonly Buffer[] {
  const inner = new JsonObject(object)
    .parts(Object.fromEntries(names.map((name) => [name, undefined])))
    .slice(1, -1)
  return inner.length === 0 ? [] : [comma, ...inner]
}

/** Returns an error message for an `error` object in JSON text, such as an error from a backend. */
export function rawErrorMessage(id: string | undefined, error: Buffer | string): Buffer {
  const head = id === undefined ? '{"jsonrpc":"2.0","error":' : `{"jsonrpc":"2.0","id":${id},"error":`
  return Buffer.concat([Buffer.from(head), bytes(error), objectEnd])
}

/**
 * Returns the `error` object of a JSON-RPC response. For an error that is not a GatehouseError, the object contains
 * only "Internal error".
 */
export function errorObject(error: unknown): { code: number; message: string; data?: unknown } {
  if (!(error instanceof GatehouseError)) return { code: -32603, message: 'Internal error' }
  const object = { code: error.rpcCode, message: error.message }
  return error.data === undefined ? object : { ...object, data: error.data }
}

/** Returns the response to a request. The response contains a result, or an error object that is already JSON text. */
export function responseMessage(
  id: string,
  { result, error }: { readonly result?: Buffer | undefined; readonly error?: Buffer | undefined },
): Buffer {
  return result
    ? resultMessage(id, result)
    : rawErrorMessage(id, error ?? JSON.stringify(errorObject(undefined)))
}

export function errorMessage(id: string | undefined, error: unknown): Buffer {
  return rawErrorMessage(id, JSON.stringify(errorObject(error)))
}

/** Returns a request. Returns a notification if `id` is undefined. `params` is JSON text. */
export function requestMessage(
  id: string | number | undefined,
  method: string,
  params?: Buffer | string,
): Buffer {
  const start = id === undefined ? '{"jsonrpc":"2.0",' : `{"jsonrpc":"2.0","id":${id},`
  const head = `${start}"method":${JSON.stringify(method)}`
  if (params === undefined) return Buffer.from(`${head}}`)
  if (typeof params === 'string') return Buffer.from(`${head},"params":${params}}`)
  return Buffer.concat([Buffer.from(`${head},"params":`), params, objectEnd])
}

export function notificationMessage(method: string, params?: Buffer | string): Buffer {
  return requestMessage(undefined, method, params)
}

function bytes(value: Buffer | string): Buffer {
  return typeof value === 'string' ? Buffer.from(value) : value
}
