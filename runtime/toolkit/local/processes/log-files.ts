/**
 * Writes the output of local processes to files, one per resource, in the session's folder. `gatehouse logs` reads
 * these files.
 *
 * The output can contain secrets, so only the owner can read the files, and the session deletes them when it ends. A
 * file that exceeds `maxBytes` is renamed to `NAME.log.1`.
 */
import { closeSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const maxBytes = 5 * 1024 * 1024

interface OpenFile {
  readonly descriptor: number
  size: number
}

export class LogFiles {
  readonly folder: string
  readonly #onError: (error: unknown) => void
  readonly #files = new Map<string, OpenFile>()
  #isBroken = false

  /** Calls `onError` once, on the first write error, and stops writing. */
  constructor(folder: string, onError: (error: unknown) => void) {
    this.folder = folder
    this.#onError = onError
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  }

  write(name: string, line: string): void {
    if (this.#isBroken) return
    try {
      const file = this.#fileOf(name)
      file.size += writeSync(file.descriptor, `${line}\n`)
    } catch (error) {
      this.#isBroken = true
      this.#onError(error)
    }
  }

  close(): void {
    for (const { descriptor } of this.#files.values()) closeSync(descriptor)
    this.#files.clear()
  }

  #fileOf(name: string): OpenFile {
    const path = join(this.folder, `${name}.log`)
    let file = this.#files.get(name)
    if (file && file.size > maxBytes) {
      closeSync(file.descriptor)
      renameSync(path, `${path}.1`)
      file = undefined
    }
    file ??= { descriptor: openSync(path, 'a', 0o600), size: 0 }
    this.#files.set(name, file)
    return file
  }
}
