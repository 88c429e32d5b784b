/** An operation's client and session, as the core sees them in both protocol eras. */
import type { Abilities, Ask, AskReply, Era } from '../../mcp/index.ts'
import type { Fields } from '../../../schemas/index.ts'
import { type Caller, localIssuer } from '../../net/index.ts'

/**
 * The capabilities that a client declared, reduced to those that determine whether a backend may send the client a
 * question.
 */
export interface ClientAbilities extends Abilities {
  /** Declared capabilities as a raw JSON object that backends receive. Extensions that are not enabled are omitted. */
  readonly raw: Buffer
  /** A signature that is equal for clients with equal declared capabilities. */
  readonly signature: string
  /**
   * The capabilities, without the members that no protocol revision defines (extensions, experiments). A client can
   * invent any number of such members, while the defined members have few combinations. Undefined if no members are
   * left out.
   */
  readonly plain?: ClientAbilities | undefined
  /** Ids of the enabled extensions that the client declared. */
  readonly extensions: ReadonlySet<string>
}

/** The client as the core sees it during one operation. */
export interface OperationClient {
  readonly era: Era
  readonly protocolVersion: string
  readonly caller: Caller
  readonly abilities: ClientAbilities
  /** Raw `Implementation` object. Undefined if the client sent no such object. */
  readonly info: Buffer | undefined
  /** Request headers on the passthrough allowlist, with lowercase names. */
  readonly headers: Readonly<Record<string, string>>
  /** The session of a session-era client. Each backend keeps one live session for this session. */
  readonly session: ClientSession | undefined
}

/** The client session that a backend connection serves. */
export interface ClientSession {
  readonly id: string
  /** Relays a message that does not belong to an operation in flight. */
  deliver(backend: string, method: string, params: Buffer | undefined): void
  /**
   * Returns the backend session that belongs to this client session. Another replica may have opened that backend
   * session. Undefined if the stored backend session has a different binding.
   */
  resume?(backend: string, binding: string): BackendSession | undefined
  /** Called when a backend has opened a session on behalf of this client session. */
  backendSessionOpened?(backend: string, session: BackendSession): void
  /**
   * True once the session has ended. From then on, backends do not open any sessions or connections for this session.
   */
  readonly isOver?: boolean
  /** Called when a backend has lost the session that it keeps for this client session. */
  backendSessionLost?(backend: string): void
  /** Sends the client a question outside any operation. Rejects if the client cannot be asked. */
  ask(request: Ask, signal: AbortSignal): Promise<AskReply>
}

/** The data required to resume a backend's session. */
export interface BackendSession {
  readonly sessionId: string
  readonly protocolVersion: string
  /** True if the backend accepts `logging/setLevel`. */
  readonly logging: boolean
  /** Extensions that the backend declared, keyed by id. Undefined if it declared none. */
  readonly extensions?: Fields | undefined
  /**
   * Digest of the backend's name, the backend's address, and the requester's identity. The session is used only for
   * this combination.
   */
  readonly binding: string
}

/**
 * Returns the key for counting a caller's work. The result is the caller's key, plus the session id if callers cannot
 * be distinguished. The key may contain a session id and must not be logged.
 */
export function callerOf({ caller, session }: Pick<OperationClient, 'caller' | 'session'>): string {
  return caller.issuer === localIssuer && session ? `${caller.key}\0${session.id}` : caller.key
}
