/**
 * Repairs the envelope of a server's message if the message has only one possible meaning. An ambiguous message stays
 * invalid. Examples are a message with a different JSON-RPC version, a list of several messages, and a message with
 * both a result and an error.
 */
import { closeArray, isNull, openArray, skipWhitespace } from './bytes.ts'
import type { Changes, JsonObject } from './object.ts'

export type EnvelopeRepair =
  | 'byte_order_mark'
  | 'id_type'
  | 'null_member'
  | 'response_in_list'
  | 'version_missing'

export type OnRepair = (repair: EnvelopeRepair) => void

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])
const space = 0x20

/**
 * Returns the message without a byte order mark and without an enclosing list. A list of several messages yields
 * invalid JSON.
 */
export function unwrapMessage(body: Buffer, onRepair: OnRepair): Buffer {
  let from = 0
  let to = body.length
  if (body.subarray(0, byteOrderMark.length).equals(byteOrderMark)) {
    from = byteOrderMark.length
    onRepair('byte_order_mark')
  }
  from = skipWhitespace(body, from)
  if (body[from] === openArray) {
    while (to > from && (body[to - 1] ?? 0) <= space) to--
    if (body[to - 1] !== closeArray) return body
    from++
    to--
    onRepair('response_in_list')
  }
  return from === 0 && to === body.length ? body : body.subarray(from, to)
}

const wholeNumber = /^(-?(?:0|[1-9]\d*))\.0+$/
const emptyList = /^\[\s*\]$/
/** Maximum length of ids and lists that are repaired. */
const maxRepairBytes = 64

/** Returns new values for the members to repair. The result is empty if the message cannot be repaired. */
export function repairsOf(message: JsonObject, onRepair: OnRepair): Changes {
  const changes: Record<string, Buffer | string | undefined> = {}
  for (const name of ['method', 'params', 'error']) {
    const raw = message.raw(name)
    if (!raw || !(isNull(raw) || (name === 'params' && isEmptyList(raw)))) continue
    changes[name] = undefined
    onRepair('null_member')
  }
  const has = (name: string): boolean => message.raw(name) !== undefined && !Object.hasOwn(changes, name)
  const version = message.raw('jsonrpc')
  // A log line may also have a `method` member.
  if ((!version || isNull(version)) && !has('method')) {
    changes['jsonrpc'] = '"2.0"'
    onRepair('version_missing')
  }
  const result = message.raw('result')
  if (result && (isNull(result) || isEmptyList(result))) {
    changes['result'] = has('method') || has('error') ? undefined : '{}'
    onRepair('null_member')
  }
  const id = message.raw('id')
  const whole = id && id.length <= maxRepairBytes ? wholeNumber.exec(id.toString())?.[1] : undefined
  if (whole !== undefined) {
    changes['id'] = whole
    onRepair('id_type')
  } else if (id && isNull(id) && message.text('method')?.startsWith('notifications/')) {
    changes['id'] = undefined
    onRepair('null_member')
  }
  return changes
}

function isEmptyList(raw: Buffer): boolean {
  return raw[0] === openArray && raw.length <= maxRepairBytes && emptyList.test(raw.toString())
}
