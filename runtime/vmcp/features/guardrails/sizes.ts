/** Size limits for arguments and results. Selects the applicable rule, and measures the arguments of a call. */
import type { SizeRule } from '../../../../schemas/index.ts'
import type { JsonObject } from '../../../mcp/index.ts'
import { visibleText } from '../../../observe/index.ts'
import { type Direction, isWithin, scopeOf, type Scope, type Subject } from './rules.ts'

/** The applicable limit and the rule that sets the limit. */
export interface SizeLimit {
  readonly rule: string
  readonly bytes: number
}

export type CallSizes = Readonly<Record<Direction, SizeLimit | undefined>>

export interface CompiledSize {
  readonly settings: SizeRule
  readonly scope: Scope
  readonly except: readonly Scope[]
}

export function compileSizes(rules: readonly SizeRule[]): readonly CompiledSize[] {
  return rules.map((settings) => ({
    settings,
    scope: scopeOf(settings.match ?? {}),
    except: (settings.except ?? []).map(scopeOf),
  }))
}

/** Returns the smallest limits of all applicable rules. If two limits are equal, the first limit is used. */
export function limitsFor(rules: readonly CompiledSize[], subject: Subject): CallSizes {
  let [given, received]: (SizeLimit | undefined)[] = []
  for (const { settings, scope, except } of rules) {
    if (!isWithin(scope, subject) || except.some((one) => isWithin(one, subject))) continue
    const { name: rule, maxArgumentBytes, maxResultBytes } = settings
    given = smaller(given, maxArgumentBytes, rule)
    received = smaller(received, maxResultBytes, rule)
  }
  return { arguments: given, results: received }
}

function smaller(
  limit: SizeLimit | undefined,
  bytes: number | undefined,
  rule: string,
): SizeLimit | undefined {
  return bytes === undefined || (limit && limit.bytes <= bytes) ? limit : { rule, bytes }
}

const maxName = 128

/** Returns the error message for a client. */
export function tooLarge({ rule, bytes }: SizeLimit, direction: Direction, subject: Subject): string {
  const { method, backend, original = '' } = subject
  const called = method === 'tools/call' ? `tool ${visibleText(original.slice(0, maxName))}` : method
  const where = backend === '' ? called : `${called} of backend ${backend}`
  const what = direction === 'results' ? 'the result is' : 'the arguments are'
  return `${where}: ${what} larger than guardrail ${rule} allows (${bytes} bytes)`
}

/** Members of params that contain client data for a backend. `_meta` belongs to the protocol. */
const argumentMembers = ['arguments', 'argument', 'context', 'uri', 'inputResponses'] as const

/** Returns the size of the arguments as JSON, in bytes. */
export function argumentBytes(params: JsonObject): number {
  return argumentMembers.reduce((sum, name) => sum + (params.raw(name)?.length ?? 0), 0)
}
