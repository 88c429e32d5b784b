/**
 * Writes JSON-RPC messages: results that carry bytes on unchanged, and errors from the one error table.
 *
 * An error whose id is unknown has no `id` member at all; strict clients refuse `"id":null`.
 * Source: JSON-RPC 2.0 section 5; MCP 2025-11-25, basic, "Responses".
 */
import { GatehouseError } from '../../schemas/index.ts'
import { JsonObject } from './json/object.ts'
import { comma, objectEnd } from './json/bytes.ts'

/** `{"jsonrpc":"2.0","id":…,"result":…}`; `id` and `result` are JSON text. */
export function resultMessage(id: string, result: Buffer | string): Buffer {
  return framed(`{"jsonrpc":"2.0","id":${id},"result":`, bytes(result))
}

/** An object that begins with `head` and ends with the value of its last member. */
function framed(head: string, value: Buffer): Buffer {
  const headBytes = Buffer.byteLength(head)
  const message = Buffer.allocUnsafe(headBytes + value.length + objectEnd.length)
  message.write(head)
  message.set(value, headBytes)
  message.set(objectEnd, headBytes + value.length)
  return message
}

/** As resultMessage, in pieces: a large result is not copied. */
export function resultParts(id: string, result: Buffer): readonly Buffer[] {
  return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":`), result, objectEnd]
}

/** What comes after some members of an object: all that are not called so, without the braces. */
export function otherMembers(object: Buffer, names: readonly string[]): readonly Buffer[] {
  const inner = new JsonObject(object)
    .parts(Object.fromEntries(names.map((name) => [name, undefined])))
    .slice(1, -1)
  return inner.length === 0 ? [] : [comma, ...inner]
}

/** An error whose `error` object is JSON text already, for instance a backend's. */
export function rawErrorMessage(id: string | undefined, error: Buffer | string): Buffer {
  const head = id === undefined ? '{"jsonrpc":"2.0","error":' : `{"jsonrpc":"2.0","id":${id},"error":`
  return Buffer.concat([Buffer.from(head), bytes(error), objectEnd])
}

/** The `error` object of a JSON-RPC answer. Anything but a GatehouseError says no more than "Internal error". */
export function errorObject(error: unknown): { code: number; message: string; data?: unknown } {
  if (!(error instanceof GatehouseError)) return { code: -32603, message: 'Internal error' }
  const object = { code: error.rpcCode, message: error.message }
  return error.data === undefined ? object : { ...object, data: error.data }
}

/** The response to a request: a result, or an error object that is JSON text already. */
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

/** A request; `params` is JSON text. */
export function requestMessage(id: string | number, method: string, params?: Buffer | string): Buffer {
  return call(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}`, params)
}

export function notificationMessage(method: string, params?: Buffer | string): Buffer {
  return call(`{"jsonrpc":"2.0","method":${JSON.stringify(method)}`, params)
}

function call(head: string, params: Buffer | string | undefined): Buffer {
  if (params === undefined) return Buffer.from(`${head}}`)
  if (typeof params === 'string') return Buffer.from(`${head},"params":${params}}`)
  return framed(`${head},"params":`, params)
}

function bytes(value: Buffer | string): Buffer {
  return typeof value === 'string' ? Buffer.from(value) : value
}
