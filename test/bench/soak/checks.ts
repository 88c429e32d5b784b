/** Checks the responses to all clients of the soak. */
import type { RpcMessage, WireAnswer } from '../../helpers/mcp/wire.ts'
import { Unexpected } from './ledger.ts'

/** Longer than any deadline of the virtual server. */
const HUNG_MS = 20_000

/** Rejects when there is no response in time: a hung operation. */
export async function inTime<T>(work: Promise<T>, ms = HUNG_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Unexpected(`no response within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the result of a response. Throws when there is none. */
export function resultOf({ status, text, response }: WireAnswer): Record<string, unknown> {
  if (status !== 200 || !response?.result) throw new Unexpected(`${status} ${text.slice(0, 300)}`)
  return response.result
}

/** Returns the text of a tool's result. Throws when the tool failed. */
export function toolText(message: RpcMessage | undefined): string {
  const result = message?.result as { content?: { text?: string }[]; isError?: boolean } | undefined
  const text = result?.content?.[0]?.text
  if (text === undefined || result?.isError) throw new Unexpected(`no text: ${JSON.stringify(message)}`)
  return text
}

export function requireText(response: WireAnswer, wanted: string): void {
  resultOf(response)
  const text = toolText(response.response)
  if (text !== wanted) throw new Unexpected(`${text.slice(0, 100)} instead of ${wanted.slice(0, 100)}`)
}

export function requireStatus({ status, text }: WireAnswer, ...wanted: number[]): void {
  if (!wanted.includes(status))
    throw new Unexpected(`${status} instead of ${wanted.join(' or ')}: ${text.slice(0, 200)}`)
}

/** Checks a response of a backend that may be away. A failure is then expected, but must be a valid response. */
export function fromShaky(response: WireAnswer, wanted: string, shaky: boolean): 'due' | void {
  const result = response.response?.result
  if (result && result['isError'] !== true) return requireText(response, wanted)
  if (!response.response)
    throw new Unexpected(`not even an error: ${response.status} ${response.text.slice(0, 200)}`)
  if (shaky) return 'due'
  throw new Unexpected(`the backend is up: ${response.status} ${response.text.slice(0, 300)}`)
}

export function pick<T>(items: readonly T[]): T {
  const item = items[Math.floor(Math.random() * items.length)]
  if (item === undefined) throw new Error('nothing to pick from')
  return item
}

/** Selects one of the operations by weight. */
export function weighted<T>(choices: readonly (readonly [weight: number, choice: T])[]): T {
  let at = Math.random() * choices.reduce((sum, [weight]) => sum + weight, 0)
  for (const [weight, choice] of choices) {
    at -= weight
    if (at < 0) return choice
  }
  return pick(choices)[1]
}

let serial = 0
/** Returns a unique text. */
export function uniqueText(): string {
  return `text-${++serial}-${Math.random().toString(36).slice(2)}`
}
