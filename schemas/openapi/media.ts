/** Classifies media types and selects one from a `content` map. */
import { type Fields, fieldsOf } from '../validation/fields.ts'

export const formMedia = 'application/x-www-form-urlencoded'

/** True for `application/json`, for `+json` types, and for a wildcard that includes JSON. */
export function isJsonMedia(media: string): boolean {
  const essence = essenceOf(media)
  return (
    essence === 'application/json' ||
    essence === '*/*' ||
    essence === 'application/*' ||
    /^application\/[\w.+-]+\+json$/.test(essence)
  )
}

/** True if the type can be sent in a header. Source: RFC 6838, section 4.2. */
export function isMediaType(media: string): boolean {
  return /^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+$/.test(essenceOf(media))
}

export function isTextMedia(media: string): boolean {
  const essence = essenceOf(media)
  return essence.startsWith('text/') || essence.endsWith('/xml') || essence.endsWith('+xml')
}

/** Returns the media type in lower case, without parameters. */
export function essenceOf(media: string): string {
  return (media.split(';', 1)[0] ?? '').trim().toLowerCase()
}

export interface MediaEntry {
  /** The type to send or to accept, without wildcards. */
  readonly media: string
  readonly fields: Fields
}

/** Returns the JSON entry of a `content` map, preferring `application/json`. */
export function jsonEntry(content: Fields): MediaEntry | undefined {
  const entries = Object.entries(content).filter(([media]) => isJsonMedia(media))
  const [media, value] = entries.find(([one]) => essenceOf(one) === 'application/json') ?? entries[0] ?? []
  if (media === undefined) return undefined
  const essence = essenceOf(media)
  return { media: essence.includes('*') ? 'application/json' : essence, fields: fieldsOf(value) }
}
