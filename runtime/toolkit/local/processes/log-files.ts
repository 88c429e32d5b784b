/**
 * The output of local processes in files, one per resource, below the folder of the session: `gatehouse logs` reads them.
 *
 * Lines are those of the programs and may hold their secrets: files are for their owner only and go with the session. A
 * file that has grown long becomes `NAME.log.1`, and a new one begins.
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

  /** `onError` is called once; the output is not written any more then. */
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
