/** A backend's address, and the sender of a request. */
import type { VmcpConfig } from '../../../config/index.ts'
import type { Caller, Dispatcher } from '../../../net/index.ts'
import type { Deviation } from '../../../observe/index.ts'
import type { CredentialStrategy, OnDemandLogin } from '../../../outgoing/index.ts'
import type { SentHeaders } from './backend-answer.ts'

/** The outgoing strategy that adds credentials to requests. */
export type Credentials = Pick<CredentialStrategy, 'apply' | 'refused'>

/** Settings from `operational` that apply to each request. */
export type RequestLimits = Omit<VmcpConfig['operational'], 'failureHandling' | 'logLevel' | 'timeouts'>

export interface DeviationReport {
  note(deviation: Deviation): void
  clear(deviation: Deviation): void
}

/** A backend's address and the settings for every request to the backend. */
export interface ChannelTarget {
  readonly url: URL
  readonly dispatcher: Dispatcher
  /** The backend's credentials. Undefined if the backend requires no credentials. */
  readonly credentials: Credentials | undefined
  /**
   * The user's login. Undefined if the configuration contains credentials, or if the server does not run on the user's
   * own machine.
   */
  readonly login?: Pick<OnDemandLogin, 'apply' | 'rejected' | 'signInError'> | undefined
  /** Headers from the configuration. */
  readonly headers: Readonly<Record<string, string>>
  /** Limits for each request, as configured by the operator. */
  readonly limits?: RequestLimits | undefined
  /** Headers of recent requests. The values of these headers are masked in the backend's explanations. */
  readonly sentHeaders?: SentHeaders | undefined
  /** Records the backend's deviations from the protocol. */
  readonly deviations?: DeviationReport | undefined
  /** Returns the trace context headers for the current request. */
  readonly trace?: (() => Readonly<Record<string, string>>) | undefined
}

/** The caller on whose behalf a message is sent. */
export interface Sender {
  readonly caller: Caller | undefined
  /** Passed-through headers of the client's request, with lowercase names. */
  readonly headers: Readonly<Record<string, string>>
}

/** The sender of Gatehouse's own requests. */
export const noSender: Sender = { caller: undefined, headers: {} }

/**
 * The sender of the latest request on a connection, whose token is the newest. This sender is used for messages that do
 * not belong to a request, such as responses to the backend's requests, and for the GET stream. All senders on one
 * connection have the same identity or the same credential.
 */
export class LatestSender implements Sender {
  latest: Sender = { caller: undefined, headers: {} }

  get caller(): Sender['caller'] {
    return this.latest.caller
  }

  get headers(): Sender['headers'] {
    return this.latest.headers
  }
}
