/** Characters that no name in a workflow may have. */

/** True for line breaks and everything else that shows nothing in one line. */
export function hasControlCharacter(name: string): boolean {
  return /[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)
}
