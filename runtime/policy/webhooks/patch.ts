/**
 * Applies a webhook's JSON Patch to a call or its response, with limits on operations, values and bytes.
 *
 * A patch may change a call's arguments and `_meta`, and the content of a result or error. Members that determine the
 * target, the checks or the receiver are locked: a patch that changes one of them is rejected as a whole. Unchanged
 * members keep their bytes.
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
/** Maximum number of values in the document, which is parsed in one event loop turn. */
const maxValues = 50_000
/** Members that determine a result's kind. */
const lockedResult = ['resultType', 'inputRequests', 'requestState']

/** Returns the patched params. `document` contains `mcp_request`. Parses the response. Rejects with DecisionFailure. */
export async function patchedParams(
  method: string,
  params: JsonObject,
  document: Buffer,
  patch: readonly unknown[],
): Promise<JsonObject> {
  const { before, after } = await applyPatch(document, patch, 'mcp_request')
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
  return parseChecked(params.with(changes))
}

/**
 * Returns the patched response. `document` contains `mcp_response`. Parses the response. Rejects with DecisionFailure.
 */
export async function patchedResponse(
  { kind }: WebhookResponse,
  document: Buffer,
  patch: readonly unknown[],
  misfits?: Misfits,
): Promise<WebhookResponse> {
  const { before, after } = await applyPatch(document, patch, 'mcp_response')
  requireSame(before, after, [kind])
  const [from, to] = [fieldsOf(before[kind]), requireObject(after[kind], kind)]
  const locked = kind === 'result' ? lockedResult : ['code']
  for (const name of locked) if (textOf(from[name]) !== textOf(to[name])) throw lockedMemberChanged(name)
  if (kind === 'error' && typeof to['message'] !== 'string') throw lockedMemberChanged('message')
  if (Array.isArray(from['content']) && !Array.isArray(to['content'])) throw lockedMemberChanged('content')
  const { bytes } = await parseChecked(Buffer.from(JSON.stringify(to)))
  if (kind === 'result' && to['isError'] !== true) await requireFit(from, to, misfits)
  return { kind, body: bytes }
}

/** Checks a patched result, because clients reject a structured result that violates the tool's output schema. */
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
    `the patched structuredContent does not match the tool's outputSchema: ${visibleText(first.slice(0, maxMisfit))}`,
  )
}

async function applyPatch(
  document: Buffer,
  patch: readonly unknown[],
  member: 'mcp_request' | 'mcp_response',
): Promise<{ readonly before: Fields; readonly after: Fields }> {
  if (patch.length > maxOperations)
    throw new DecisionFailure('patch', `the patch has more than ${maxOperations} operations`)
  try {
    await workOn(document, canonicalText(document, { maxValues }))
  } catch (cause) {
    throw new DecisionFailure('oversized', `the document to patch has more than ${maxValues} values`, {
      cause,
    })
  }
  const text = document.toString()
  const before = fieldsOf(fieldsOf(exactJson(text))[member])
  const whole = requireObject(run(exactJson(text), patch), 'the document')
  if (Object.keys(whole).join() !== member) throw lockedMemberChanged('other members')
  return { before, after: requireObject(whole[member], member) }
}

/** Throws DecisionFailure with the index of the operation, but not its values. */
function run(document: unknown, patch: readonly unknown[]): unknown {
  let budget = maxWebhookBytes
  let present = document
  for (const [index, operation] of patch.entries()) {
    try {
      for (const one of inSimpleOperations(present, operation, (bytes) => (budget -= bytes) >= 0))
        present = jsonPatch.applyOperation(present, one, true, true).newDocument
    } catch (cause) {
      throw new DecisionFailure('patch', `cannot apply operation ${index} of the patch`, { cause })
    }
  }
  return present
}

/**
 * Replaces copy and move operations with equivalent operations. Copied values keep their digits, and the total number
 * of copied bytes is bounded.
 */
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
  if (text === undefined || !takes(text.length)) throw new RangeError('missing value, or too many bytes')
  if (given.op === 'move') yield { op: 'remove', path: given.from }
  yield { op: 'add', path: given.path, value: exactJson(text) }
}

/** Throws if a member that is not in `free` has changed. */
function requireSame(before: Fields, after: Fields, free: readonly string[]): void {
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (!free.includes(name) && textOf(before[name]) !== textOf(after[name])) throw lockedMemberChanged(name)
  }
}

/** Throws if a `_meta` member that the protocol defines has changed. */
function requireSameMeta(before: Fields, given: unknown): void {
  const after = given === undefined ? {} : requireObject(given, '_meta')
  const reserved = reservedMetaPrefix.toString()
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const isLocked = name.startsWith(reserved) || name === 'progressToken'
    if (isLocked && textOf(before[name]) !== textOf(after[name])) throw lockedMemberChanged('_meta')
  }
}

function requireObject(value: unknown, what: string): Fields {
  if (isFields(value) && !isRawJson(value)) return value
  throw new DecisionFailure('patch', `the patched ${what} is not an object`)
}

function textOf(value: unknown): string | undefined {
  return JSON.stringify(value)
}

/** Checks the same size and depth limits that apply to messages from clients and backends. */
async function parseChecked(bytes: Buffer): Promise<JsonObject> {
  if (bytes.length > maxWebhookBytes)
    throw new DecisionFailure('patch', `the patched document has more than ${maxWebhookBytes} bytes`)
  try {
    await workOn(bytes, canonicalText(bytes))
    return new JsonObject(bytes)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw new DecisionFailure('patch', 'the patched document is not valid JSON', { cause })
  }
}

function lockedMemberChanged(what: string): DecisionFailure {
  return new DecisionFailure('patch', `the patch must not change ${what.slice(0, 40)}`)
}
