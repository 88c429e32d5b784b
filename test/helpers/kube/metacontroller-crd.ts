/**
 * Metacontroller's definitions for tests: those of our manifests, but an API server with strict validation refuses each field
 * that they do not name, so that a misspelt one of ours shows.
 */
import { metacontrollerDefinitions } from '../../../manifests/generate/metacontroller-definitions.ts'

const [composite, ...others] = metacontrollerDefinitions

export const compositeControllerCrd = closed(composite)
export const otherMetacontrollerCrds = others

/** Without the mark that lets unknown fields pass. */
function closed<T>(value: T): T
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'x-kubernetes-preserve-unknown-fields')
      .map(([key, member]) => [key, closed(member)]),
  )
}
