/**
 * Parses policy texts, each of which may contain several policies. Checks the limits first and then calls the engine.
 *
 * Admission, syncs and the running server all use this module, so they accept the same policies.
 * Source: docs/reference/specification/virtual-server.md#incomingAuth, incomingAuth.authz.policies.
 */
import { LRUCache } from 'lru-cache'
import type { Violation } from '../validation/violations.ts'
import { callEngine, EngineFailure, errorText, type PolicyJson } from './engine.ts'
import { notCedar, textViolation } from './scan.ts'

export interface PoliciesRead {
  /** The individual policies of each text, in order; empty for invalid text. */
  readonly policies: readonly (readonly string[])[]
  /** Problems, with paths such as `policies[3]`. */
  readonly violations: readonly Violation[]
}

const maxTexts = 1000
/** Maximum total length of all texts, in characters. */
const maxTotal = 256 * 1024
/**
 * Number of invalid characters after which the remaining texts are not parsed, because the engine is slow on invalid
 * text.
 */
const maxWrong = 16 * 1024

/** Parses all texts. Never throws. */
export function readPolicies(texts: readonly string[]): PoliciesRead {
  const beyond = boundsMessage(texts)
  if (beyond !== undefined) return { policies: [], violations: [{ path: 'policies', message: beyond }] }
  const policies: (readonly string[])[] = []
  const violations: Violation[] = []
  let wrong = 0
  for (const [index, text] of texts.entries()) {
    const path = `policies[${index}]`
    if (wrong > maxWrong) {
      violations.push({
        path,
        message:
          'was not checked, because the texts before it contain too many errors; later texts were not checked either',
      })
      break
    }
    const read = readText(text)
    policies.push(read.parts)
    wrong += read.wrong ?? 0
    if (read.message !== undefined) violations.push({ path, message: read.message })
  }
  return { policies, violations }
}

/** Returns the limit that a list of texts exceeds, or undefined. */
export function boundsMessage(texts: readonly string[]): string | undefined {
  if (texts.length > maxTexts) return `contains more than ${maxTexts} texts`
  const total = texts.reduce((sum, text) => sum + text.length, 0)
  return total > maxTotal ? `contains more than ${maxTotal} characters in total` : undefined
}

interface TextRead {
  readonly parts: readonly string[]
  readonly message?: string
  /** Number of characters of text that the engine could not parse. */
  readonly wrong?: number
}

/** Caches results, because every sync and every reload parses the same texts again. */
function makeCache<V extends object>(megabytes: number): LRUCache<string, V> {
  return new LRUCache({
    maxSize: megabytes * 1024 * 1024,
    sizeCalculation: (read, text) => 2 * (text.length + JSON.stringify(read).length),
  })
}

const known = makeCache<TextRead>(4)
const forms = makeCache<PolicyJson>(8)

function readText(text: string): TextRead {
  const before = known.get(text)
  if (before) return before
  const violation = textViolation(text)
  if (violation !== undefined) return { parts: [], message: violation }
  try {
    const read = readBounded(text)
    known.set(text, read)
    return read
  } catch (error) {
    if (!(error instanceof EngineFailure)) throw error
    return { parts: [], message: error.verdict, wrong: text.length }
  }
}

function readBounded(text: string): TextRead {
  if (!text.isWellFormed()) return { parts: [], message: 'contains an unpaired surrogate (half a character)' }
  const response = callEngine((engine) => engine.policySetTextToParts(text))
  if (response.type === 'failure')
    return { parts: [], wrong: text.length, message: `${notCedar}: ${errorText(response.errors)}` }
  if (response.policy_templates.length > 0) {
    const message =
      'is a template, which is not supported: write principals and resources instead of ?principal and ?resource'
    return { parts: [], message }
  }
  return response.policies.length === 0
    ? { parts: [], message: 'contains no policy' }
    : { parts: response.policies }
}

/** Returns the JSON form of a policy from `readPolicies`. Throws EngineFailure. */
export function policyJson(policy: string): PolicyJson {
  const before = forms.get(policy)
  if (before) return before
  const response = callEngine((engine) => engine.policyToJson(policy))
  if (response.type === 'failure') throw new EngineFailure(new Error(errorText(response.errors)))
  forms.set(policy, response.json)
  return response.json
}
