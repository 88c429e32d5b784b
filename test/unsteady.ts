/**
 * Runs a few failed files once more, each in its own process, so that a test that lost a race on a busy machine does
 * not hide the results of the others. A file that passes the second time is reported as unsteady: its test is
 * defective. If many files fail, they probably have a common cause and do not run again.
 */

/** Largest number of failed files that run again. */
export const mostFiles = 3

export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** A failed file, with the passed assertions that a second run counts again. */
export interface FailedFile {
  readonly file: string
  readonly passed: number
}

export interface Run extends Counts {
  readonly failedFiles: readonly FailedFile[]
  /** Files that did not start because their process exited early. */
  readonly notRun: readonly string[]
}

/** Returns the counts of a run after a second run of the files that failed or did not start. */
export async function runAgain(
  first: Run,
  run: (files: readonly string[]) => Promise<Run>,
  say: (line: string) => void,
): Promise<Counts> {
  const { failedFiles } = first
  if (first.failed === 0 || failedFiles.length === 0) return first
  if (failedFiles.length > mostFiles) {
    say(`${failedFiles.length} files failed: more than ${mostFiles} are not run again`)
    return first
  }
  const files = failedFiles.map(({ file }) => file)
  say(`run again, alone: ${[...files, ...first.notRun].join(', ')}`)
  const second = await run([...files, ...first.notRun])
  const still = new Set(second.failedFiles.map(({ file }) => file))
  const unsteady = second.failed > 0 && still.size === 0 ? [] : files.filter((file) => !still.has(file))
  if (unsteady.length > 0) say(`unsteady, passed only when run again: ${unsteady.join(', ')}`)
  const counted = failedFiles.reduce((sum, { passed }) => sum + passed, 0)
  return { ...second, passed: first.passed - counted + second.passed, skipped: first.skipped }
}
