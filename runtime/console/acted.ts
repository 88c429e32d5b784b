/** Records each user action in the console as an audit line and an event. */
import { GatehouseError } from '../../schemas/index.ts'
import { type Caller, type Exchange, peerAddress } from '../net/index.ts'
import type { ConsoleRecord, Events } from '../observe/index.ts'
import type { ConsoleView } from './view.ts'

export type ActionType = ConsoleRecord['type']

/** The target of an action. */
export interface ActionSubject {
  readonly target?: string | undefined
  /** Digest of the definition that was approved. */
  readonly digest?: string | undefined
}

export interface ConsoleAction extends ActionSubject {
  readonly type: ActionType
  readonly caller: Caller | undefined
  /** Error of a failed action. */
  readonly error?: unknown
}

export type Acted = (exchange: Exchange, action: ConsoleAction) => void

const maxText = 128

export function actedIn(view: Pick<ConsoleView, 'acted'>, events: Events): Acted {
  return function acted({ req }, { type, caller, target, digest, error }) {
    const outcome = outcomeOf(error)
    view.acted({ type, outcome, source: peerAddress(req), caller, target, digest })
    events.emit('console_action', {
      operation: type.slice('console_'.length),
      outcome,
      user: caller?.subject.slice(0, maxText),
      target: target?.slice(0, maxText),
      digest,
    })
  }
}

function outcomeOf(error: unknown): ConsoleRecord['outcome'] {
  if (error === undefined) return 'success'
  if (!(error instanceof GatehouseError)) return 'error'
  if (error.status === 401 || error.status === 403) return 'denied'
  return error.status < 500 ? 'failure' : 'error'
}
