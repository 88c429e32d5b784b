/**
 * Builds the audit members for a policy decision: determining policies, failed policies, missing attributes and, if
 * configured, the policy inputs.
 */
import { exactJson, isFields, isRawJson } from '../../../schemas/index.ts'
import { recordedPayload } from './payload.ts'
import type { MaskText } from '../record-mask.ts'

export interface PolicyRecord {
  /** Name or URI in the decision, as the client sent it. */
  readonly id: string
  readonly decision: 'allow' | 'deny'
  readonly reason: readonly string[]
  readonly errors: readonly string[]
  readonly missing: readonly string[]
  readonly setDigest: string
  /** Set when shadow policies would have decided differently. */
  readonly shadow: { readonly decision: 'allow' | 'deny'; readonly reason: readonly string[] } | undefined
  /**
   * Returns the origin that is known when the line is written, which may be more complete than at the time of the
   * decision.
   */
  origin(): PolicyOrigin
  /** Returns the JSON text of the policy inputs, if configured. */
  inputs(): string | undefined
}

interface PolicyOrigin {
  readonly backend?: string | undefined
  /** The original name on the backend. */
  readonly original?: string | undefined
}

/** Size limit for the inputs of one decision; larger inputs are omitted. */
const maxInputs = 16 * 1024
const maxOriginal = 1024

/** Returns the members in the form that is written to the log. */
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
    // For a resource, the URI that the client sent.
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

/** Masks the inputs that describe the call. Claims stay unmasked, like the caller in the rest of the line. */
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
