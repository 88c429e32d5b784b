/** The place in our code where an unexpected error arose; its message could repeat request data and is left out. */
export function placeOf(error: unknown): string {
  const line =
    error instanceof Error ? error.stack?.split('\n').find((text) => /^\s+at /.test(text)) : undefined
  return line?.trim().slice(0, 200) ?? ''
}
