/**
 * Decides which test files share a process, and in which order the processes start.
 *
 * Most files take less CPU time than the start of Node and the imports. Neighbouring files therefore run one after the
 * other in one process (`group.ts`). A file has its own process when its folder starts programs or measures time, when
 * it sets a long timeout, or when it changes state that later files could observe.
 */
import { readFileSync } from 'node:fs'

/** Folders whose files share processes, with the number of files per process. Processes start in this order. */
const sharedFolders: readonly (readonly [folder: string, filesPerProcess: number])[] = [
  ['test/behaviour/', 12],
  ['test/security/', 12],
  ['test/hooks/', 8],
  ['test/property/', 8],
  ['test/unit/', 24],
]

/** Minimum timeout of a long file. */
const longFileMs = 240_000

/** Fake timers, measured CPU, memory or event loops, and changes of the environment, globals or working directory. */
const needsOwnProcess =
  /\bmock\.|[cC]puUsage|memoryUsage|EventLoopDelay|startWatched|process\.(?:chdir|umask)\(|(?:process\.env|globalThis)(?:\[[^\]]+\]|\.\w+) *(?:\?\?)?=[^=]|delete process\.env/

/** Returns the files of each process. Long files start first, so that none runs alone at the end. */
export function scheduleFiles(files: readonly string[]): string[][] {
  const long: { readonly file: string; readonly timeoutMs: number }[] = []
  const alone: string[][] = []
  const shared = sharedFolders.map(([folder, filesPerProcess]) => ({
    folder,
    filesPerProcess,
    files: [] as string[],
  }))
  for (const file of files.toSorted()) {
    const text = readFileSync(file, 'utf8')
    const timeoutMs = Number(/\bt\.setTimeout\(([\d_]+)\)/.exec(text)?.[1]?.replaceAll('_', '') ?? 0)
    const sharing = shared.find(({ folder }) => file.startsWith(folder))
    if (timeoutMs >= longFileMs) long.push({ file, timeoutMs })
    else if (sharing && !needsOwnProcess.test(text)) sharing.files.push(file)
    else alone.push([file])
  }
  const longest = long.toSorted((a, b) => b.timeoutMs - a.timeoutMs).map(({ file }) => [file])
  return [
    ...longest,
    ...shared.flatMap(({ files, filesPerProcess }) => chunks(files, filesPerProcess)),
    ...alone,
  ]
}

function chunks(files: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(files.length / size) }, (_, at) =>
    files.slice(at * size, (at + 1) * size),
  )
}
