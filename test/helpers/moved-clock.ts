/**
 * Loaded into a process under test with `node --import`: moves its clock. SIGUSR2 reads the milliseconds to be ahead
 * from the file that TEST_CLOCK_FILE names, and says so on standard error.
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
