/** The line that `gatehouse up` prints while servers start. */
import { printableName } from '../../../toolkit/clients/index.ts'
import { printError } from '../../../toolkit/terminal/output.ts'

/** Most servers respond before this time, so that nothing is printed. */
const quietMs = 5000

/** Returns a function that prints the names of the servers that have not responded yet, at most once for the same names. */
export function progressPrinter(): (names: readonly string[]) => void {
  const startedAt = performance.now()
  let printed = ''
  return (names) => {
    const text = names.map(printableName).join(', ')
    if (text === '' || text === printed || performance.now() - startedAt < quietMs) return
    printed = text
    printError(`Waiting for ${text} …`)
  }
}
