/**
 * The Cedar engine and its shapes. The only file of the runtime that knows the package.
 *
 * The engine is loaded with the first policy: it costs 30 ms and 4 MB that a process without policies does not need.
 * Everything crosses into it as JSON text.
 */
import { createRequire } from 'node:module'
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs'

/** A value as Cedar's JSON form has it. */
export type Value = Cedar.CedarValueJson
export type Attributes = Readonly<Record<string, Value>>
export type PolicyJson = Cedar.PolicyJson
export type EngineFault = Cedar.DetailedError

export interface Uid {
  readonly type: string
  readonly id: string
}

export interface Entity {
  readonly uid: Uid
  readonly attrs: Attributes
  readonly parents: readonly Uid[]
  readonly tags?: Attributes
}

let engine: typeof Cedar | undefined

export function cedar(): typeof Cedar {
  engine ??= createRequire(import.meta.url)('#cedar') as typeof Cedar
  return engine
}

/** Equal for equal entities. A type cannot hold NUL, so no two entities meet. */
export function keyOf({ type, id }: Uid): string {
  return `${type}\0${id}`
}

/** An entity reference in either of its JSON forms. */
export function toUid(value: unknown): Uid | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { type, id, __entity: inner }: { type?: unknown; id?: unknown; __entity?: unknown } = value
  if (inner !== undefined) return toUid(inner)
  return typeof type === 'string' && typeof id === 'string' ? { type, id } : undefined
}

/** What the engine says of a text that it cannot read, in one line. */
export function faultText(faults: readonly EngineFault[]): string {
  const lines = faults.map(({ message, sourceLocations }) => {
    const place = sourceLocations?.[0]
    if (!place) return message
    return `${message} at character ${place.start}${place.label === null ? '' : `, ${place.label}`}`
  })
  return lines.join('; ').slice(0, 400)
}
