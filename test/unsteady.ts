/**
 * A full run takes half an hour; one test that lost a race on a busy machine must not hide what the other thousands say.
 * A few files that failed are run again, alone. What fails again has failed; what passes is named as unsteady, with the
 * first failure above it, so that somebody mends it. Many failed files are no accident and are not run again.
 */

/** Files that are run again at most. */
export const mostFiles = 3

export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** What a line of the reporter says of a file that failed; `passed` assertions count again when it is run again. */
export interface FailedFile {
  readonly file: string
  readonly passed: number
}

export interface Run extends Counts {
  readonly failedFiles: readonly FailedFile[]
}

/** ` FAIL  test/x.test.ts 1 failed of 4 121ms`, or without the counts where the process ended before it told them. */
export function readFailedFile(line: string): FailedFile | undefined {
  const [, file, failed, all] = /^ FAIL {2}(\S+) (\d+)(?: failed of (\d+))? /.exec(line) ?? []
  if (file === undefined) return undefined
  return { file, passed: all === undefined ? 0 : Number(all) - Number(failed) }
}

/** The counts of a run, in which those of files that failed are replaced by those of their second run. */
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
  say(`run again, alone: ${files.join(', ')}`)
  const second = await run(files)
  const still = new Set(second.failedFiles.map(({ file }) => file))
  const unsteady = second.failed > 0 && still.size === 0 ? [] : files.filter((file) => !still.has(file))
  if (unsteady.length > 0) say(`unsteady, passed only when run again: ${unsteady.join(', ')}`)
  const counted = failedFiles.reduce((sum, { passed }) => sum + passed, 0)
  return { ...second, passed: first.passed - counted + second.passed, skipped: first.skipped }
}
