/**
 * Tells whether a schema of arguments asks for less than the approved one: fewer properties, fewer choices, more required
 * names, and nothing else. What a model reads of it is then part of what was approved.
 */
import { canonicalText, atOnce, JsonObject, scanElements } from '../../../mcp/index.ts'

/** Members of a schema whose order and number of values may shrink or grow. */
const narrowing: ReadonlySet<string> = new Set(['properties', 'required', 'enum'])

/** True when `offered` is `approved`, or narrower. Both are JSON text of schemas; never throws for valid JSON. */
export function isNarrower(approved: Buffer, offered: Buffer): boolean {
  if (approved[0] !== 0x7b || offered[0] !== 0x7b) return isSame(approved, offered)
  const before = new JsonObject(approved)
  const after = new JsonObject(offered)
  const names = new Set([...before.names(), ...after.names()])
  for (const name of names) {
    const own = before.raw(name)
    const now = after.raw(name)
    const fits = narrowing.has(name) ? memberNarrower(name, own, now) : own && now && isSame(own, now)
    if (!fits) return false
  }
  return true
}

function memberNarrower(name: string, own: Buffer | undefined, now: Buffer | undefined): boolean {
  switch (name) {
    case 'properties':
      return propertiesNarrower(own, now)
    case 'required':
      // More required names; names that must not be given any more may leave with their property.
      return own === undefined || (now !== undefined && isSubset(own, now))
    default:
      return own !== undefined && now !== undefined && isSubset(now, own)
  }
}

function propertiesNarrower(own: Buffer | undefined, now: Buffer | undefined): boolean {
  if (now === undefined || own === undefined) return now === undefined
  if (own[0] !== 0x7b || now[0] !== 0x7b) return isSame(own, now)
  const before = new JsonObject(own)
  return new JsonObject(now).entries().every(([name, schema]) => {
    const approved = before.raw(name)
    return approved !== undefined && isNarrower(approved, schema)
  })
}

/** Every element of `some` is one of `all`. */
function isSubset(some: Buffer, all: Buffer): boolean {
  if (some[0] !== 0x5b || all[0] !== 0x5b) return isSame(some, all)
  const known = new Set(scanElements(all).map(canonical))
  return scanElements(some).every((element) => known.has(canonical(element)))
}

function isSame(a: Buffer, b: Buffer): boolean {
  return a.equals(b) || canonical(a) === canonical(b)
}

function canonical(raw: Buffer): string {
  return atOnce(canonicalText(raw, { schema: true }))
}
