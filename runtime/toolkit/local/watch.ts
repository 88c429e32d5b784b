/** Watches manifest files, including files that editors replace and folders that are created later. */
import { watch } from 'chokidar'

/** Quiet period after the last change before files are read. */
const settleMs = 150

export interface FileWatchOptions {
  readonly onChange: () => void
  /** Called when files can no longer be watched, for example because the system allows no more watches. */
  readonly onError: (error: unknown) => void
}

/**
 * Calls `onChange` once after each burst of changes. When all files are watched, resolves with the function that
 * stops watching.
 */
export async function watchFiles(
  paths: readonly string[],
  options: FileWatchOptions,
): Promise<() => Promise<void>> {
  let timer: NodeJS.Timeout | undefined
  const watcher = watch([...paths], {
    ignoreInitial: true,
    ignored: (path) => /[/\\](?:\.[^/\\.][^/\\]*|node_modules)$/.test(path) && !paths.includes(path),
  })
  watcher.on('all', () => {
    clearTimeout(timer)
    timer = setTimeout(options.onChange, settleMs)
  })
  watcher.on('error', options.onError)
  await new Promise<void>((resolve) => watcher.once('ready', resolve))
  return async () => {
    clearTimeout(timer)
    await watcher.close()
  }
}
