/**
 * Moves the clock of a process under test. Loaded with `node --import`. On SIGUSR2, it reads the offset in milliseconds
 * from the file in TEST_CLOCK_FILE, and reports it on standard error.
 */
import { readFileSync } from 'node:fs'

const RealDate = Date
let aheadMs = 0
let moves = 0

class MovedDate extends RealDate {
  constructor(...from: readonly unknown[]) {
    if (from.length === 0) super(MovedDate.now())
    else super(...(from as [number]))
  }

  static override now(): number {
    return RealDate.now() + aheadMs
  }
}

globalThis.Date = MovedDate as DateConstructor

process.on('SIGUSR2', () => {
  aheadMs = Number(readFileSync(process.env['TEST_CLOCK_FILE'] ?? '', 'utf8'))
  moves += 1
  process.stderr.write(`the clock is ${aheadMs} ms ahead, move ${moves}\n`)
})
