/**
 * Metacontroller's definitions for tests, from our manifests. Here the API server rejects unknown fields, so that a
 * misspelt field fails.
 */
import { metacontrollerDefinitions } from '../../../manifests/generate/metacontroller-definitions.ts'

const [composite, ...others] = metacontrollerDefinitions

export const compositeControllerCrd = closed(composite)
export const otherMetacontrollerCrds = others

/** Removes the setting that allows unknown fields. */
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
