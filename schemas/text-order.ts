/** One order of texts for both halves: by code unit, whatever the locale; equal texts are equal. */
export function byText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
