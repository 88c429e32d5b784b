/**
 * A value from outside, such as JSON, as the standard library hands it out: it takes the type of the variable that it is
 * assigned to. For tests only, where a wrong shape fails the test anyway.
 */
export function untyped(value: unknown): ReturnType<typeof JSON.parse> {
  return value
}
