/** The subtest of the file that runs now. `group.ts` makes it the default export of `tap` for test files. */
import type { Test } from 'tap'

export let currentTest: Test | undefined

export function useTest(test: Test): void {
  currentTest = test
}
