import { knownFailure, networkFailureText } from '../../../runtime/net/index.ts'

/** Returns the message that operators see when `work` fails. */
export async function failureText(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'no error'
  } catch (error) {
    const known = knownFailure(error)
    return known ? networkFailureText(known) : String(error)
  }
}
