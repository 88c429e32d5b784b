/**
 * What an audit line says of the decision of policies: which ones determined it, which failed, what was missing, and,
 * where the configuration asks for it, what they were told.
 */
import { exactJson, isFields, isRawJson } from '../../../schemas/index.ts'
import type { MaskText } from '../record-mask.ts'
import { recordedPayload } from './payload.ts'

export interface PolicyRecord {
  /** Name or URI that the decision is about, as the client named it. */
  readonly id: string
  readonly decision: 'allow' | 'deny'
  readonly reason: readonly string[]
  readonly errors: readonly string[]
  readonly missing: readonly string[]
  readonly setDigest: string
  /** Set when shadow policies would have decided otherwise. */
  readonly shadow: { readonly decision: 'allow' | 'deny'; readonly reason: readonly string[] } | undefined
  /** Where it comes from, as far as that is known when the line is written: more than when the decision was made. */
  origin(): PolicyOrigin
  /** JSON text of what the policies were told, where the configuration asks for it. */
  inputs(): string | undefined
}

interface PolicyOrigin {
  readonly backend?: string | undefined
  /** What the backend calls it. */
  readonly original?: string | undefined
}

/** Bytes of the inputs of one decision; larger ones are left out. */
const maxInputs = 16 * 1024
const maxOriginal = 1024

/** The members of a line, in the form in which they are written. */
export function policyMembers(
  record: PolicyRecord | undefined,
  mask?: MaskText,
): {
  readonly policy?: unknown
  readonly origin: PolicyOrigin
} {
  if (!record) return { origin: {} }
  const { decision, reason, errors, missing, setDigest, shadow } = record
  const inputs = record.inputs()
  const { backend, original: given } = record.origin()
  const original = given?.slice(0, maxOriginal)
  const recorded = inputs === undefined ? undefined : recordedPayload(inputs, { whole: true }, maxInputs)
  return {
    // Of a resource it is the URI that the client named.
    origin: { backend, original: mask && original !== undefined ? mask(original) : original },
    policy: {
      decision,
      reason,
      errors,
      ...(missing.length > 0 ? { missing } : {}),
      setDigest,
      shadow,
      ...(recorded && !recorded.truncated ? { inputs: inputsOf(recorded.json, mask) } : {}),
      ...(recorded?.truncated ? { inputsTruncated: true } : {}),
    },
  }
}

/** What policies know of the call is masked; claims say who called, as the rest of the line does. */
function inputsOf(json: string, mask: MaskText | undefined): unknown {
  const inputs = exactJson(json)
  if (!mask || !isFields(inputs)) return inputs
  const { arguments: given, attributes } = inputs
  return {
    ...inputs,
    ...(given === undefined ? {} : { arguments: maskedDeep(given, mask) }),
    ...(isFields(attributes) ? { attributes: maskedArguments(attributes, mask) } : {}),
  }
}

function maskedArguments(attributes: Readonly<Record<string, unknown>>, mask: MaskText): unknown {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) =>
      name.startsWith('arg_') ? [mask(name), maskedDeep(value, mask)] : [name, value],
    ),
  )
}

function maskedDeep(value: unknown, mask: MaskText): unknown {
  if (typeof value === 'string') return mask(value)
  if (typeof value === 'number' || isRawJson(value)) {
    const text = JSON.stringify(value)
    const masked = mask(text)
    return masked === text ? value : masked
  }
  if (Array.isArray(value)) return value.map((one) => maskedDeep(one, mask))
  if (!isFields(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [mask(name), maskedDeep(inner, mask)]),
  )
}
