/** The structural characters of JSON (RFC 8259 section 2), as bytes. */
export const quoteByte = 0x22
export const backslashByte = 0x5c
export const openObject = 0x7b
export const closeObject = 0x7d
export const openArray = 0x5b
export const closeArray = 0x5d
export const colonByte = 0x3a
export const commaByte = 0x2c

/** True for the raw JSON of null. */
export function isNull(raw: Buffer): boolean {
  return raw[0] === 0x6e
}
