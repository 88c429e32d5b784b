/** Detects characters that are not allowed in names of a workflow. */

/** True when the name contains a line break or another invisible character. */
export function hasControlCharacter(name: string): boolean {
  return /[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)
}
