/** The line that `gatehouse up` prints while servers start. */
import { printableName } from '../../../toolkit/clients/index.ts'
import { printError } from '../../../toolkit/terminal/output.ts'

/** Time before the first line and between two lines. Most servers respond earlier, so nothing is printed. */
const quietMs = 5000

/** Returns a function that prints the names of the servers that have not responded yet. Skips unchanged names. */
export function progressPrinter(): (names: readonly string[]) => void {
  let quietUntil = performance.now() + quietMs
  let printed = ''
  return (names) => {
    const text = names.map(printableName).join(', ')
    if (text === '' || text === printed || performance.now() < quietUntil) return
    printed = text
    quietUntil = performance.now() + quietMs
    printError(`Waiting for ${text} …`)
  }
}
