/** Shows a request's progress on standard error: as an updated line on a terminal, otherwise as one line per step. */
import type { CallProgress } from './client.ts'
import { oneLine } from '../../toolkit/terminal/plain-text.ts'

/** The members of the standard error stream that this module uses. */
export interface ProgressOutput {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export class ProgressLine {
  readonly #output: ProgressOutput
  #last = ''

  constructor(output: ProgressOutput) {
    this.#output = output
  }

  readonly show = ({ progress, total, message }: CallProgress): void => {
    const size = total === undefined ? String(progress) : `${progress}/${total}`
    const percent = total !== undefined && total > 0 ? ` ${Math.floor((100 * progress) / total)} %` : ''
    const text = [`${size}${percent}`, message === undefined ? '' : oneLine(message)]
      .filter(Boolean)
      .join(' ')
    if (text === this.#last) return
    if (this.#output.isTTY === true) this.#output.write(`\r\u001b[K${text.slice(0, this.#width)}`)
    else this.#output.write(`${text}\n`)
    this.#last = text
  }

  /** Prints a permanent line above the progress line. */
  printAbove(line: string): void {
    const before = this.#last
    this.clear()
    this.#output.write(`${line}\n`)
    if (before === '' || this.#output.isTTY !== true) return
    this.#output.write(before.slice(0, this.#width))
    this.#last = before
  }

  /** Clears the line to make room for other output. */
  clear(): void {
    if (this.#last !== '' && this.#output.isTTY === true) this.#output.write('\r\u001b[K')
    this.#last = ''
  }

  get #width(): number {
    return Math.max(10, (this.#output.columns ?? 80) - 1)
  }
}
