/**
 * What an audit line says of the decision of policies: which ones determined it, which failed, what was missing, and,
 * where the configuration asks for it, what they were told.
 */
import { exactJson } from '../exact-json.ts'
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
export function policyMembers(record: PolicyRecord | undefined): {
  readonly policy?: unknown
  readonly origin: PolicyOrigin
} {
  if (!record) return { origin: {} }
  const { decision, reason, errors, missing, setDigest, shadow } = record
  const inputs = record.inputs()
  const { backend, original } = record.origin()
  const recorded = inputs === undefined ? undefined : recordedPayload(inputs, { whole: true }, maxInputs)
  return {
    origin: { backend, original: original?.slice(0, maxOriginal) },
    policy: {
      decision,
      reason,
      errors,
      ...(missing.length > 0 ? { missing } : {}),
      setDigest,
      shadow,
      ...(recorded && !recorded.truncated ? { inputs: exactJson(recorded.json) } : {}),
      ...(recorded?.truncated ? { inputsTruncated: true } : {}),
    },
  }
}
