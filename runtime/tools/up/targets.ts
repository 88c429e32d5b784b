/** Reasons why a client's file must not be changed now. */
import { type ClientId, clientRow, type Host } from '../../toolkit/clients/index.ts'
import { runningOf } from '../../toolkit/client-files/running.ts'

/** `command` is the command to repeat. */
export function whyNotChangeable(client: ClientId, host: Host, command: 'up' | 'down'): string | undefined {
  const { title, rewrittenBy = [] } = clientRow(client)
  return runningOf(rewrittenBy, host) === undefined
    ? undefined
    : `${title} is running and would overwrite the change: quit it and run gatehouse ${command} again, or use --while-running`
}
