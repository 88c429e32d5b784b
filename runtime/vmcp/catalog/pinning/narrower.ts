/**
 * Checks whether an input schema is narrower than the approved schema. A narrower schema has fewer properties, fewer
 * choices or more required names, but no other changes. A narrower schema contains only approved text.
 */
import { canonicalText, atOnce, JsonObject, scanElements } from '../../../mcp/index.ts'

/** Members that may lose or gain values in a narrower schema. */
const narrowing: ReadonlySet<string> = new Set(['properties', 'required', 'enum'])

/**
 * True if `offered` equals `approved` or is narrower. Both arguments are schemas as JSON text. Never throws for valid
 * JSON.
 */
export function isNarrower(approved: Buffer, offered: Buffer): boolean {
  if (approved[0] !== 0x7b || offered[0] !== 0x7b) return isSame(approved, offered)
  const before = new JsonObject(approved)
  const after = new JsonObject(offered)
  const names = new Set([...before.names(), ...after.names()])
  for (const name of names) {
    const own = before.raw(name)
    const now = after.raw(name)
    const fits = narrowing.has(name) ? isMemberNarrower(name, own, now) : own && now && isSame(own, now)
    if (!fits) return false
  }
  return true
}

function isMemberNarrower(name: string, own: Buffer | undefined, now: Buffer | undefined): boolean {
  switch (name) {
    case 'properties':
      return arePropertiesNarrower(own, now)
    case 'required':
      // Allow more required names, but not fewer. A name that is no longer required could be removed together with its
      // property.
      return own === undefined || (now !== undefined && isSubset(own, now))
    default:
      return own !== undefined && now !== undefined && isSubset(now, own)
  }
}

function arePropertiesNarrower(own: Buffer | undefined, now: Buffer | undefined): boolean {
  if (now === undefined || own === undefined) return now === undefined
  if (own[0] !== 0x7b || now[0] !== 0x7b) return isSame(own, now)
  const before = new JsonObject(own)
  return new JsonObject(now).entries().every(([name, schema]) => {
    const approved = before.raw(name)
    return approved !== undefined && isNarrower(approved, schema)
  })
}

/** True if `all` contains every element of `some`. */
function isSubset(some: Buffer, all: Buffer): boolean {
  if (some[0] !== 0x5b || all[0] !== 0x5b) return isSame(some, all)
  const known = new Set(scanElements(all).map(canonicalSchema))
  return scanElements(some).every((element) => known.has(canonicalSchema(element)))
}

function isSame(a: Buffer, b: Buffer): boolean {
  return a.equals(b) || canonicalSchema(a) === canonicalSchema(b)
}

function canonicalSchema(raw: Buffer): string {
  return atOnce(canonicalText(raw, { schema: true }))
}
