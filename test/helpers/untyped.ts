/**
 * An untyped value, such as parsed JSON, that takes the type of the variable it is assigned to. For tests only, where a
 * wrong shape fails the test anyway.
 */
export function untyped(value: unknown): ReturnType<typeof JSON.parse> {
  return value
}
