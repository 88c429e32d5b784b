/**
 * Applies the JSON Patch of a webhook to a call or its response, within bounds: operations, values, and bytes.
 *
 * A patch may change arguments and `_meta` of a call, and what a result or error holds. What decides where a call goes, how it
 * is checked and who waits for it stays as it is: a patch that changes that is refused as a whole, however it says so. What it
 * leaves alone keeps its bytes.
 * Source: RFC 6902; docs/guides/webhooks.md.
 */
import jsonPatch, { type Operation } from 'fast-json-patch'
import { exactJson, type Fields, fieldsOf, isFields, isRawJson, own } from '../../../schemas/index.ts'
import { canonicalText, JsonError, JsonObject, reservedMetaPrefix, workOn } from '../../mcp/index.ts'
import { visibleText } from '../../observe/index.ts'
import { DecisionFailure } from '../remote/json-post.ts'
import { maxWebhookBytes } from './question.ts'
import { type Misfits, webhookMethods, type WebhookResponse } from './subject.ts'

const maxOperations = 500
const maxMisfit = 200
/** Values in what is patched: so many are read in one turn. */
const maxValues = 50_000
/** Members of a result that say what kind of response it is. */
const lockedResult = ['resultType', 'inputRequests', 'requestState']

/** The params as the patch makes them of `document`, which holds `mcp_request`. Rejects with DecisionFailure. */
export async function patchedParams(
  method: string,
  params: JsonObject,
  document: Buffer,
  patch: readonly unknown[],
): Promise<JsonObject> {
  const { before, after } = await applied(document, patch, 'mcp_request')
  requireSame(before, after, ['params'])
  const [from, to] = [fieldsOf(before['params']), requireObject(after['params'], 'params')]
  const free = own(webhookMethods, method) ?? []
  requireSame(from, to, [...free, '_meta'])
  requireSameMeta(fieldsOf(from['_meta']), to['_meta'])
  const changes: Record<string, string | undefined> = {}
  for (const name of [...free, '_meta']) {
    const text = textOf(to[name])
    if (text === textOf(from[name])) continue
    if (text !== undefined) requireObject(to[name], name)
    changes[name] = text
  }
  return checked(params.with(changes))
}

/** The response as the patch makes it of `document`, which holds `mcp_response`. Rejects with DecisionFailure. */
export async function patchedResponse(
  { kind }: WebhookResponse,
  document: Buffer,
  patch: readonly unknown[],
  misfits?: Misfits,
): Promise<WebhookResponse> {
  const { before, after } = await applied(document, patch, 'mcp_response')
  requireSame(before, after, [kind])
  const [from, to] = [fieldsOf(before[kind]), requireObject(after[kind], kind)]
  const locked = kind === 'result' ? lockedResult : ['code']
  for (const name of locked) if (textOf(from[name]) !== textOf(to[name])) throw touched(name)
  if (kind === 'error' && typeof to['message'] !== 'string') throw touched('message')
  if (Array.isArray(from['content']) && !Array.isArray(to['content'])) throw touched('content')
  const { bytes } = await checked(Buffer.from(JSON.stringify(to)))
  if (kind === 'result' && to['isError'] !== true) await requireFit(from, to, misfits)
  return { kind, body: bytes }
}

/** Clients refuse a structured result that is not as its tool says, so a patch must not make one of it. */
async function requireFit(
  { structuredContent: from }: Fields,
  { structuredContent: to }: Fields,
  misfits: Misfits | undefined,
): Promise<void> {
  const text = textOf(to)
  if (!misfits || text === textOf(from)) return
  const [first] = await misfits(text === undefined ? undefined : Buffer.from(text))
  if (first === undefined) return
  throw new DecisionFailure(
    'patch',
    `after the patch structuredContent does not fit the outputSchema of the tool: ${visibleText(first.slice(0, maxMisfit))}`,
  )
}

async function applied(
  document: Buffer,
  patch: readonly unknown[],
  member: 'mcp_request' | 'mcp_response',
): Promise<{ readonly before: Fields; readonly after: Fields }> {
  if (patch.length > maxOperations)
    throw new DecisionFailure('patch', `a patch has at most ${maxOperations} operations`)
  try {
    await workOn(document, canonicalText(document, { maxValues }))
  } catch (cause) {
    throw new DecisionFailure('oversized', `what is to be patched has more than ${maxValues} values`, {
      cause,
    })
  }
  const text = document.toString()
  const before = fieldsOf(fieldsOf(exactJson(text))[member])
  const whole = requireObject(run(exactJson(text), patch), 'the document')
  if (Object.keys(whole).join() !== member) throw touched('what is outside of it')
  return { before, after: requireObject(whole[member], member) }
}

/** Throws DecisionFailure naming the operation, and nothing of what it holds. */
function run(document: unknown, patch: readonly unknown[]): unknown {
  let budget = maxWebhookBytes
  let present = document
  for (const [index, operation] of patch.entries()) {
    try {
      for (const one of inSimpleOperations(present, operation, (bytes) => (budget -= bytes) >= 0))
        present = jsonPatch.applyOperation(present, one, true, true).newDocument
    } catch (cause) {
      throw new DecisionFailure('patch', `operation ${index} of the patch cannot be applied`, { cause })
    }
  }
  return present
}

/** Values that are copied or moved keep their digits, and copies of copies have an end. */
function* inSimpleOperations(
  document: unknown,
  operation: unknown,
  takes: (bytes: number) => boolean,
): Generator<Operation> {
  const given = operation as Operation
  if (!isFields(operation) || (given.op !== 'copy' && given.op !== 'move')) {
    yield given
    return
  }
  const text = textOf(jsonPatch.getValueByPointer(document, given.from))
  if (text === undefined || !takes(text.length)) throw new RangeError('no such value, or too many bytes')
  if (given.op === 'move') yield { op: 'remove', path: given.from }
  yield { op: 'add', path: given.path, value: exactJson(text) }
}

/** Members beside the free ones are what they were. */
function requireSame(before: Fields, after: Fields, free: readonly string[]): void {
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (!free.includes(name) && textOf(before[name]) !== textOf(after[name])) throw touched(name)
  }
}

/** What the protocol itself keeps in `_meta`. */
function requireSameMeta(before: Fields, given: unknown): void {
  const after = given === undefined ? {} : requireObject(given, '_meta')
  const reserved = reservedMetaPrefix.toString()
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const isLocked = name.startsWith(reserved) || name === 'progressToken'
    if (isLocked && textOf(before[name]) !== textOf(after[name])) throw touched('_meta')
  }
}

function requireObject(value: unknown, what: string): Fields {
  if (isFields(value) && !isRawJson(value)) return value
  throw new DecisionFailure('patch', `after the patch ${what} is no object`)
}

function textOf(value: unknown): string | undefined {
  return JSON.stringify(value)
}

/** As large and deep as anything that clients and backends may send. */
async function checked(bytes: Buffer): Promise<JsonObject> {
  if (bytes.length > maxWebhookBytes)
    throw new DecisionFailure('patch', `after the patch there are more than ${maxWebhookBytes} bytes`)
  try {
    await workOn(bytes, canonicalText(bytes))
    return new JsonObject(bytes)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw new DecisionFailure('patch', 'after the patch the JSON cannot be read', { cause })
  }
}

function touched(what: string): DecisionFailure {
  return new DecisionFailure('patch', `the patch changes ${what.slice(0, 40)}, which it must not`)
}
